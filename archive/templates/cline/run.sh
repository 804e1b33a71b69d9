#!/bin/sh
# Starts Cline on a job (run.sh JOB), or says whether it can start (run.sh --check).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cline=$here/node_modules/@cline/cli-linux-x64/bin/cline
if [ "$1" = --check ]; then
    python3 "$here/check.py"
    exec "$cline" --version
fi
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }
job=$1
# The files of this folder are the user's own; those of the repository in which it works are hidden (agent.toml).
mkdir -p "$HOME/.cline"
[ ! -e "$here/.clinerules" ] || cp -R "$here/.clinerules" "$HOME/.cline/rules"
for part in skills workflows hooks; do
    [ ! -d "$HOME/.cline/rules/$part" ] || mv "$HOME/.cline/rules/$part" "$HOME/.cline/"
done
"$cline" auth openai --apikey "$OPENAI_API_KEY" --modelid "$OPENAI_MODEL" --baseurl "$OPENAI_BASE_URL"
cd "$(field workdir)"
exec "$cline" --provider openai-compatible --model "$OPENAI_MODEL" --auto-approve true -- "$(field problem)"
