# A stressor for a fixed time; its figures as YAML: sh run.sh STRESSOR WORKERS SECONDS
set -e
stress-ng --"$1" "$2" --timeout "$3"s --metrics --yaml figures.yaml >&2
cat figures.yaml
