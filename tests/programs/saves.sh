#!/bin/sh
# Adds its pid to the file `pids`. At SIGTERM it adds to `signals`, waits for the file `go`, prints `saved` and exits.
cd "$CONTAINERPILOT_TEST" || exit
trap 'echo TERM >> signals; until [ -e go ]; do sleep 0.02; done; echo saved; exit 0' TERM
echo $$ >> pids
while :; do sleep 0.02; done
