#!/bin/sh
# exit_recorder.sh LOG COMMAND [ARG...]
#
# Runs COMMAND with this script's stdin and stdout and writes its fate to LOG.
# The SDKs start the server themselves and none tells how it ended, so the scenarios
# start the server through this script and read LOG for `clean_exit`:
#   started PID        the server runs
#   signalled PID      the SDK lost patience and sent a signal, passed on to the server
#   exited PID CODE    the server ended (128 + n: by signal n)
log=$1
shift
exec 3<&0
"$@" <&3 3<&- &
pid=$!
exec 3<&- </dev/null
trap 'echo "signalled $pid" >>"$log"; kill -TERM "$pid"' TERM INT HUP
echo "started $pid" >>"$log"
wait "$pid"
code=$?
while kill -0 "$pid" 2>/dev/null; do # a signal ends the wait, not the server
    wait "$pid"
    code=$?
done
echo "exited $pid $code" >>"$log"
exit "$code"
