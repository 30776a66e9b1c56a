#!/bin/sh
# Runs a command and succeeds if its exit status is the one expected.
# Usage: expect_exit.sh CODE COMMAND...
# Needs: nothing else.
expected=$1
shift
status=0
"$@" || status=$?
echo "exit status $status, expected $expected"
[ "$status" -eq "$expected" ]
