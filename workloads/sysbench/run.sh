# sh run.sh TEST THREADS SECONDS: runs sysbench for a fixed time.
set -e
case "$1" in
cpu) set -- cpu "$2" "$3" --cpu-max-prime=10000 ;;
memory) set -- memory "$2" "$3" --memory-block-size=1M --memory-total-size=1000T ;;
esac
test=$1 threads=$2 seconds=$3
shift 3
exec sysbench "$test" --threads="$threads" --time="$seconds" --events=0 "$@" run
