#!/bin/sh
# Starts a program of the command line on a job: run.sh JOB, or run.sh --check.
# Put your own program in the last line. It gets the task as text, and works in the folder in which it is started.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
job=${1:?the path of a job file, or --check}

if [ "$job" = --check ]; then
    # It ends with 0 where the program can start; no model is there.
    exec python3 "$here/program/coder.py" --help
fi

# A field of the job file.
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }

task="$(field problem)

$(cat "$here/prompt.md")"
cd "$(field workdir)"
# The options are words, so they are not quoted.
# shellcheck disable=SC2046
exec python3 "$here/program/coder.py" $(cat "$here/options") --model "$(field model)" "$task"
