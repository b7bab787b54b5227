#!/bin/sh
# Makes `own/w` a file, nothing and a pipe in turn.
cd "$CONTAINERPILOT_TEST/own" || exit
while :; do
    echo $$ > w
    sleep 0.03
    mv w v
    mkfifo w
    sleep 0.03
    rm w
done
