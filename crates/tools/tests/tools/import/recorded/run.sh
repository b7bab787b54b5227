# sh run.sh NAME SECONDS CODE…: the first run exits with the first code after so many seconds, and so on. When there are
# no more codes, it runs until a signal. STOP is the number of seconds between the signal and the end, STUBBORN ignores
# signals, and END is the exit code after a signal.
name=$1 seconds=$2
shift 2
here=${0%/*}
echo run >> "$here/runs-$name"
runs=$(wc -l < "$here/runs-$name")
say() { echo "$*" >> "$here/record"; }
got() {
    say "signal $name $1"
    [ -n "$STUBBORN" ] && return
    sleep "${STOP:-0}"
    say "stopped $name"
    exit ${END:-0}
}
for s in TERM INT HUP QUIT USR1 USR2; do trap "got $s" $s; done
say "started $name"
[ "$runs" -gt $# ] || {
    shift $((runs - 1))
    sleep "$seconds"
    say "exits $name $1"
    exit "$1"
}
while :; do sleep 0.1; done
