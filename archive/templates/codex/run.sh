#!/bin/sh
# Starts Codex on a job (run.sh JOB), or says whether it can start (run.sh --check).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
codex=$(echo "$here"/node_modules/@openai/codex-linux-*/vendor/*/bin/codex)
if [ "$1" = --check ]; then
    python3 "$here/check.py"
    exec "$codex" --version
fi
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$job" "$1"; }
# The files of this folder are the user's own; instructions and skills of the repository in which it works are hidden.
job=$1; export CODEX_HOME="$here/.codex"
[ ! -e "$here/AGENTS.md" ] || cp "$here/AGENTS.md" "$CODEX_HOME/"
python3 "$here/check.py" "$CODEX_HOME/config.toml" > "$HOME/config.toml" && mv "$HOME/config.toml" "$CODEX_HOME/"
cd "$(field workdir)"
hidden=$(find "$PWD/.codex" "$PWD/.agents" -name SKILL.md -printf '{path="%p", enabled=false},' 2> /dev/null || :)
case $OPENAI_MODEL in gpt-*) window='' ;; *) window='-c model_context_window=128000' ;; esac
exec "$codex" exec $window --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --model "$OPENAI_MODEL" \
    -c 'model_providers.dgm={name="dgm", base_url="'"$OPENAI_BASE_URL"'", env_key="OPENAI_API_KEY"}' \
    -c model_provider=dgm -c web_search=disabled -c project_doc_max_bytes=0 -c "skills.config=[$hidden]" -- "$(field problem)"
