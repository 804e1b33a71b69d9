"""A user's ``.claude`` folder, ablated with the real Claude Code: the harmful and the useless section are named."""

import json
import shutil
from functools import partial

import pytest

from tests.agents.running import MCP_SERVER, run_dgm, template_environment
from tests.support.ablated import INSTRUCTIONS, Obedient, make_tickets
from tests.support.hosted import KEY, PROVIDERS
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]
TICKETS = 10
"""Where the model reads the harmful section, it gets 9 of them wrong: the fewest that show it among 8 parts."""
HOOK = {"type": "command", "command": 'sh "$CLAUDE_PROJECT_DIR/.claude/hooks/note.sh"'}
FILES = {
    "CLAUDE.md": INSTRUCTIONS,
    ".claude/skills/release/SKILL.md": "---\nname: release\ndescription: Write release notes.\n---\nList changes.\n",
    ".claude/skills/dates/SKILL.md": "---\nname: dates\ndescription: Format dates.\n---\nUse ISO 8601.\n",
    ".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: Reviews a change.\n---\nRead the diff.\n",
    ".claude/hooks/note.sh": "echo a command ran >> /tmp/notes\n",
    ".claude/settings.json": json.dumps({"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [HOOK]}]}}),
    ".claude/mcp/notes.py": MCP_SERVER,
    ".mcp.json": json.dumps(
        {"mcpServers": {"notes": {"command": "python3", "args": ["${HOME}/.claude/mcp/notes.py"]}}}
    ),
}
SECTIONS = ("CLAUDE.md#Archive", "CLAUDE.md#Tone", "CLAUDE.md#Reports")
OTHERS = (".claude/skills/release", ".claude/skills/dates", ".claude/agents/reviewer.md", ".mcp.json#notes")


def test_a_harmful_and_a_useless_section_of_a_claude_folder_are_named(tmp_path):
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    provider, mine = PROVIDERS["anthropic"], tmp_path / "mine"
    dgm = partial(run_dgm, template_environment(provider, tmp_path / "archive"))
    dgm("agent", "init", mine, "--template", "claude-code")
    for path, text in FILES.items():
        (mine / path).parent.mkdir(parents=True, exist_ok=True)
        (mine / path).write_text(text)
    suite = make_tickets(tmp_path / "tickets", TICKETS)
    with WireServer(key=KEY, models=(provider.own_name,), brain=Obedient(TICKETS)) as server:
        words = ["agent", "ablate", mine, "--benchmark", suite]
        words += ["--set", "sandbox=bubblewrap", "--set", "workers=2"]
        words += ["--max-usd", 5, *provider.words(server.url), "--json"]
        first = json.loads(dgm(*words))
        paid = server.answered
        assert json.loads(dgm(*words))["parts"] == first["parts"]
        assert server.answered == paid
    parts = {each["part"]: each for each in first["parts"]}
    hook = next(part for part in parts if part.startswith(".claude/settings.json#PostToolUse"))
    assert parts.keys() == {*SECTIONS, *OTHERS, hook}
    assert {part for part, each in parts.items() if each["effect"] == "hurts"} == {"CLAUDE.md#Reports"}
    assert {part for part, each in parts.items() if each["effect"] == "no effect shown"} == parts.keys() - {
        "CLAUDE.md#Reports"
    }
    assert [parts[part]["without_part"] for part in SECTIONS] == [0, 1, TICKETS]
    assert [parts[part]["with_part"] for part in parts] == [1] * len(parts)
    # What the model reads of each part in its first turn; a hook adds nothing to it.
    assert all(parts[part]["tokens"] > 0 for part in (*SECTIONS, *OTHERS))
    assert parts[hook]["tokens"] == 0
