#!/bin/sh
# Replaces the folder `own/logs` of its log file by a link to `root`, then writes many lines, and creates `own/done`.
cd "$CONTAINERPILOT_TEST/own" || exit
while ! [ -s logs/app.log ]; do echo first; done
ln -s "$CONTAINERPILOT_TEST/root" new
i=0
# While the folder is away, a rotation makes a new one.
until mv -T new logs 2> /dev/null; do
    mv -T logs "old$i"
    i=$((i + 1))
done
i=0
while [ $i -lt 2000 ]; do
    echo 'root ALL=(ALL) NOPASSWD: ALL'
    i=$((i + 1))
done
touch done
sleep 1000
