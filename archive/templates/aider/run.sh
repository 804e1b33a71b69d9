#!/bin/sh
# Starts aider on a job (run.sh JOB), or says whether it can start (run.sh --check).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ "$1" = --check ]; then
    python3 "$here/check.py"
    exec aider --version
fi
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }
job=$1
# The files of this folder are the user's own; those of the repository in which it works are hidden (agent.toml).
[ ! -e "$here/.aider.conf.yml" ] || cp "$here/.aider.conf.yml" "$HOME/"
cd "$(field workdir)"
python3 "$here/settings/files.py" "$(field problem)" | xargs -0 aider --model "openai/$OPENAI_MODEL" --yes-always \
    --no-pretty --no-auto-commits --no-gitignore --no-detect-urls --no-show-model-warnings \
    --read "$here/CONVENTIONS.md" --message "$(field problem)"
