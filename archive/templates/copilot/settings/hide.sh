# Copilot has no switch that leaves out the repository's instructions alone. So they are moved away while it works, and
# back when it ends, also at the time limit; what the agent wrote at the same paths stays.
aside="$HOME/aside"
set -- AGENTS.md CLAUDE.md GEMINI.md .claude .agents .github/copilot-instructions.md .github/instructions .github/skills .github/agents
git ls-files -z -- "$@" | git update-index -z --skip-worktree --stdin || :
for path; do
    [ -e "$path" ] || continue
    mkdir -p "$(dirname "$aside/$path")"
    mv "$path" "$aside/$path"
done
trap '[ ! -d "$aside" ] || cp -R --no-clobber --preserve=mode "$aside/." .' EXIT
trap 'exit 143' TERM
