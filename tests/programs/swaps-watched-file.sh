#!/bin/sh
# Replaces the file `own/watched` by a link to a file of its own, and when that has been read by a link to `root/secret`.
cd "$CONTAINERPILOT_TEST/own" || exit
echo public > public
ln -s "$PWD/public" new
mv -T new watched
while ! grep -q public ../out; do sleep 0.05; done
ln -s "$CONTAINERPILOT_TEST/root/secret" new
mv -T new watched
sleep 1000
