#!/bin/sh
# The task of one node: Tare, as a step with all of the node. $1 is the fleet's folder, $2 the node.
set -eu
[ "$SLURMD_NODENAME" = "$2" ] || { echo "this job is for the node $2, and runs on $SLURMD_NODENAME" >&2; exit 1; }
root=
[ "$(id -u)" = 0 ] || root='sudo -n'
# shellcheck disable=SC2086 # no word, or two
exec srun --ntasks=1 --nodes=1 --mem=0 --cpus-per-task="$SLURM_CPUS_ON_NODE" --input=none $root "$1/tare" fleet task "$1" "$2" "$SLURM_JOB_ID"
