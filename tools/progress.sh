#!/bin/sh
# progress.sh LOG WORDS COMMAND...: says what is done, with a dot every two seconds, and how long it took. The command's output goes to
# LOG, and is shown where it fails; the exit code is the command's.
log=$1 words=$2
shift 2
printf '%s ' "$words"
began=$(date +%s)
"$@" >"$log" 2>&1 &
command=$!
trap 'kill $command 2>/dev/null; echo; exit 130' INT TERM
(while sleep 2; do printf .; done) &
dots=$!
wait $command
code=$?
kill $dots 2>/dev/null
wait $dots 2>/dev/null
if [ $code -eq 0 ]; then
    echo " done in $(($(date +%s) - began)) s"
else
    echo " failed after $(($(date +%s) - began)) s:"
    tail -n 20 "$log" >&2
fi
exit $code
