#!/bin/sh
# Starts Qwen Code on a job (run.sh JOB), or says whether it can start (run.sh --check).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
node=$(echo "$here"/node_modules/node-linux-*/bin/node)
qwen=$here/node_modules/@qwen-code/qwen-code/cli.js
if [ "$1" = --check ]; then
    python3 "$here/check.py"
    exec "$node" "$qwen" --version
fi
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }
job=$1
# The files of this folder are the user's own; those of the repository in which it works are hidden (agent.toml).
export QWEN_CODE_SYSTEM_SETTINGS_PATH="$here/settings/system.json" # they win over .qwen/settings.json
mkdir -p "$HOME/.qwen"
for name in QWEN.md AGENTS.md .qwen/.; do [ ! -e "$here/$name" ] || cp -R "$here/$name" "$HOME/.qwen/"; done
python3 "$here/check.py" "$here/.qwen/settings.json" > "$HOME/.qwen/settings.json"
cd "$(field workdir)"
# --liftoff-only: otherwise it takes 1.8 GB to compile its parser of shell commands, and is killed for memory.
exec "$node" --liftoff-only "$qwen" --yolo --auth-type openai --model "$OPENAI_MODEL" --prompt="$(field problem)"
