#!/bin/bash
# Sends PID 1 every signal that the supervisor does not handle: all but SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGINT and
# SIGQUIT. Then it prints `all are sent`.
for signal in ILL TRAP ABRT BUS FPE KILL SEGV PIPE ALRM CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH \
    IO PWR SYS 32 33 34 40 64; do
    kill "-$signal" 1
    kill "-$signal" 1
done
for ((i = 0; i < 200; i++)); do kill -CHLD 1; done
echo all are sent
