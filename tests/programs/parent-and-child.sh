#!/bin/sh
# Prints `ready` when it has a child, and both print at SIGHUP that they got it. The parent ends the child, and exits.
child() {
    trap 'echo child got HUP' HUP
    trap 'exit 0' USR1
    : > "$CONTAINERPILOT_TEST/child"
    while :; do sleep 0.02; done
}
child &
trap 'kill -USR1 $!; wait $!; echo parent got HUP; exit 0' HUP
until test -e "$CONTAINERPILOT_TEST/child"; do sleep 0.02; done
echo ready
while :; do sleep 0.02; done
