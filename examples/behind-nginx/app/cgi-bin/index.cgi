#!/bin/sh
# Says who answers, after as many seconds as it is told to take. The answer leaves in one piece, head and body: whoever is
# killed before has sent nothing, and nginx may still ask another instance.
sleep "${1:-0.05}"
name=$(hostname)
printf 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\n' $((${#name} + 1)) "$name"
