#!/bin/sh
# beside.sh NAME SECONDS CODE…: the first run exits with the first code after so many seconds, and so on. When there are
# no more codes, it runs until SIGTERM.
name=$1 seconds=$2
shift 2
here=${0%/*}
echo run >> "$here/runs-$name"
runs=$(wc -l < "$here/runs-$name")
trap 'echo "stopped $name" >> "$here/record"; exit 0' TERM
echo "started $name $$ $PORT$GREETING" >> "$here/record"
[ "$runs" -gt $# ] || {
    shift $((runs - 1))
    sleep "$seconds"
    echo "exits $name $1" >> "$here/record"
    exit "$1"
}
while :; do sleep 0.1; done
