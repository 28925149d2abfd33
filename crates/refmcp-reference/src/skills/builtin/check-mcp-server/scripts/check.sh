#!/bin/sh
# Checks a server and keeps the report: check.sh URL, or check.sh COMMAND ARGUMENT…
set -u
case "${1:-}" in
    "") echo "usage: check.sh URL | check.sh COMMAND ARGUMENT..." >&2; exit 1 ;;
    http://* | https://* | ws://* | wss://* | sse+http*) set -- "$1" ;;
    *) set -- -- "$@" ;;
esac
exec refmcp check --save report.md --save report.json "$@"
