#!/bin/sh
# Starts Claude Code on a job (run.sh JOB), or says whether it can start (run.sh --check).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
claude=$(echo "$here"/node_modules/@anthropic-ai/claude-code-linux-*/claude)
if [ "$1" = --check ]; then
    python3 "$here/check.py"
    exec "$claude" --version
fi
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }
job=$1
# The files of this folder are the user's own; those of the repository in which it works are hidden.
mkdir -p "$HOME/.claude"
cp -R $(ls -d "$here"/* | grep -v node_modules) "$here/.claude/." "$HOME/.claude/"
python3 "$here/check.py" "$here/.mcp.json" > "$HOME/.claude/mcp.json"
sed -i 's|CLAUDE_PROJECT_DIR\([}"\\]*/\.claude/\)|HOME\1|g' "$HOME/.claude/settings.json"
case $ANTHROPIC_MODEL in claude-*) ;; *) export CLAUDE_CODE_AUTO_COMPACT_WINDOW=128000 ;; esac
cd "$(field workdir)"
exec "$claude" --print --dangerously-skip-permissions --setting-sources user \
    --mcp-config "$HOME/.claude/mcp.json" --strict-mcp-config -- "$(field problem)"
