#!/bin/sh
# Starts OpenCode on a job (run.sh JOB), or says whether it can start (run.sh --check).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
opencode=$(echo "$here"/node_modules/opencode-linux-*/bin/opencode)
if [ "$1" = --check ]; then
    python3 "$here/check.py"
    exec "$opencode" --version
fi
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }
job=$1
# The files of this folder are the user's own; those of the repository in which it works are hidden (agent.toml).
mkdir -p "$HOME/.config/opencode"
for name in AGENTS.md .opencode/.; do [ ! -e "$here/$name" ] || cp -R "$here/$name" "$HOME/.config/opencode/"; done
python3 "$here/check.py" "$here/opencode.json" > "$HOME/.config/opencode/opencode.json"
case $OPENAI_MODEL in claude-*) provider=anthropic ;; gpt-*) provider=openai ;; *) provider=other ;; esac
OPENCODE_CONFIG_CONTENT=$(sed "s|MODEL|$OPENAI_MODEL|" "$here/settings/provider.json")
export OPENCODE_CONFIG_CONTENT
cd "$(field workdir)"
exec "$opencode" run --auto --title job --model "$provider/$OPENAI_MODEL" -- "$(field problem)"
