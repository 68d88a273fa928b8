#!/bin/sh
# Runs the seven experiments; ends with 1 if a relation does not hold.
here=$(cd "$(dirname "$0")" && pwd)
failed=0
for experiment in "$here"/[0-9]_*.sh; do
    sh "$experiment" || failed=1
done
[ "$failed" -eq 0 ] && printf '\nall relations hold\n'
exit "$failed"
