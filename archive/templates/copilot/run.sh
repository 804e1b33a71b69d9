#!/bin/sh
# Starts GitHub Copilot CLI on a job (run.sh JOB), or says whether it can start (run.sh --check).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
copilot=$(echo "$here"/node_modules/@github/copilot-linux-*/copilot)
if [ "$1" = --check ]; then
    python3 "$here/check.py"
    exec test -x "$copilot"
fi
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }
job=$1
. "$here/settings/provider.sh"
# The files of this folder are the user's own; those of the repository in which it works are hidden (agent.toml).
mkdir -p "$HOME/.copilot"
for name in .github/skills .github/agents .github/instructions; do [ ! -e "$here/$name" ] || cp -R "$here/$name" "$HOME/.copilot/"; done
cat "$here/AGENTS.md" "$here/.github/copilot-instructions.md" > "$HOME/.copilot/copilot-instructions.md" 2> /dev/null || :
cd "$(field workdir)"
exec "$copilot" --allow-all --no-ask-user --prompt "$(field problem)"
