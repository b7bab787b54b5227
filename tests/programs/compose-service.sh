#!/bin/sh
# compose-service.sh NAME CODE…: the first run exits with the first code, and so on. When there are no more codes, it
# runs until SIGTERM or SIGINT. `runs-NAME` is written last: a check of the health looks for it.
name=$1
shift
for signal in TERM INT; do trap "echo 'stopped $name by $signal' >> /record/record; exit 0" $signal; done
echo "started $name" >> /record/record
echo run >> "/record/runs-$name"
runs=$(wc -l < "/record/runs-$name")
[ "$runs" -gt $# ] || {
    shift $((runs - 1))
    echo "exits $name $1" >> /record/record
    exit "$1"
}
while :; do sleep 0.1; done
