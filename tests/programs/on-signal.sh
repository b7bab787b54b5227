#!/bin/sh
# on-signal.sh SIGNAL COMMAND …: prints `ready`, and runs COMMAND at each SIGNAL. An empty COMMAND ignores the signal.
while [ $# -gt 0 ]; do
    # shellcheck disable=SC2064 # The command is expanded when it runs.
    trap "$2" "$1"
    shift 2
done
echo ready
while :; do sleep 0.02; done
