#!/bin/sh
# lines.sh COUNT: prints `line 0`, `line 1` and so on, each with a write of its own.
i=0
while [ "$i" -lt "$1" ]; do
    echo "line $i"
    i=$((i + 1))
done
