#!/bin/sh
# Answers with the name of the instance, after the given number of seconds. Head and body are sent in one write: an instance
# that is killed earlier has sent nothing, and nginx can repeat the request on another one.
sleep "${1:-0.05}"
name=$(hostname)
printf 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\n' $((${#name} + 1)) "$name"
