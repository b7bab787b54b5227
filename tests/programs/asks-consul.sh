#!/bin/bash
# asks-consul.sh IP: adds its pid to the file `web.pids`. At SIGTERM it writes to the file `answer` what the Consul
# agent at IP says about the service `web`.
cd "$CONTAINERPILOT_TEST" || exit
ask() {
    exec 3<>"/dev/tcp/$1/8500"
    printf 'GET /v1/health/service/web HTTP/1.0\r\n\r\n' >&3
    cat <&3 > answer
    exit 0
}
# shellcheck disable=SC2064 # The address is expanded now.
trap "ask $1" TERM
echo $$ >> web.pids
while :; do sleep 0.05; done
