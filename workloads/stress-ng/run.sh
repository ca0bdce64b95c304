# sh run.sh STRESSOR WORKERS SECONDS: runs a stressor for a fixed time and prints its figures as YAML.
set -e
stress-ng --"$1" "$2" --timeout "$3"s --metrics --yaml figures.yaml >&2
cat figures.yaml
