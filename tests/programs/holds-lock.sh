#!/bin/bash
# holds-lock.sh FILE MACHINE: adds a line with the term of the lock, MACHINE and the time to FILE until it is killed,
# and a line to FILE.overlaps if another one does so at the same time.
exec 9>> "$1.locked"
flock -n 9 || echo $$ >> "$1.overlaps"
# shellcheck disable=SC2034 # The second number of the file is not used.
while read -r now idle < /proc/uptime; do
    echo "$CONTAINERPILOT_LOCK_PRIMARY $2 $now" >> "$1"
    sleep 0.05
done
