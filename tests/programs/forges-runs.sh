#!/bin/sh
# Starts processes whose environment says that they belong to runs of other jobs, and prints `ready`.
# As a child, the supervisor has another pid than 1.
for pid in 1 $PPID; do
    for run in 1 2 3 4 5 6 7 8 9; do
        for forged in "$pid-$run" "$pid-$run-0"; do
            CONTAINERPILOT_RUN=$forged setsid sh -c 'trap "" TERM; sleep 1000' &
        done
    done
done
echo ready
