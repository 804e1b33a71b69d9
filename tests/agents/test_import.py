"""A user's ``.claude`` folder: imported, evolved, exported as a patch, applied, and run outside dgm."""

import json
import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from dgm.messages import Reply, Role, Stop, ToolCall
from dgm.models.builtin import command_call
from tests.agents.packages import CACHE
from tests.agents.running import MCP_SERVER, SUITE, TASK, run_dgm, template_environment
from tests.support.hosted import KEY, PROVIDERS
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]
RULE = "Write the word into status.txt at once."
SKILL = "description: Say ready in the file at once."
HOOK = "#!/bin/sh\necho HOOK-SAYS-GREEN\n"
FILES = {
    "CLAUDE.md": "# Conventions\n\nRun the tests before you finish. See @docs/style.md for the style.\n",
    "docs/style.md": "STYLE-IS-SHORT\n",
    ".claude/skills/notes/SKILL.md": "---\nname: notes\ndescription: SKILL-OF-NOTES\n---\nCall recall.\n",
    ".claude/skills/word/SKILL.md": "---\nname: word\ndescription: Say a word.\n---\nWrite it.\n",
    ".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: AGENT-THAT-REVIEWS\n---\nLook for mistakes.\n",
    ".claude/hooks/start.sh": HOOK,
    ".claude/settings.json": json.dumps(
        {
            "env": {"SERVICE_TOKEN": "hunter2hunter2"},
            "permissions": {"allow": ["Bash(python3:*)"], "deny": ["WebSearch", "WebFetch"]},
            "hooks": {
                "SessionStart": [
                    {
                        "hooks": [
                            {"type": "command", "command": 'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/start.sh'}
                        ]
                    }
                ]
            },
        },
        indent=2,
    ),
    ".mcp.json": json.dumps(
        {"mcpServers": {"notes": {"command": "python3", "args": ["tools/notes/server.py"]}}}
    ),
    "tools/notes/server.py": MCP_SERVER,
    "status.txt": "waiting\n",
}
OPTIONS = ("--print", "--dangerously-skip-permissions", "--mcp-config", ".mcp.json", "--model")
REACHES = (
    "STYLE-IS-SHORT",
    "SKILL-OF-NOTES",
    "AGENT-THAT-REVIEWS",
    "HOOK-SAYS-GREEN",
    "NOTE-OF-THE-SERVER",
)


class Coder:
    """Solves a task once a rule says so, after a call of the MCP server; each child gets one rule more."""

    async def answer(self, request):
        text = "\n".join(message.text for message in request.messages)
        child = re.search(r"Child number: (\d+)", text)
        edit = (
            f"echo '{RULE} ({child and child[1]})' >> CLAUDE.md; "
            f"sed -i 's/^description: Say.*/{SKILL}/' .claude/skills/word/SKILL.md"
        )
        work = edit if child else "echo ready > status.txt" if RULE in text else "ls"
        calls = [command_call(request.tools, work)]
        if not child and "mcp__notes__recall" in text:
            calls = [
                ("ToolSearch", {"query": "select:mcp__notes__recall"}),
                ("mcp__notes__recall", {}),
                *calls,
            ]
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        if turn >= len(calls) or calls[turn] is None:
            return Reply("It is done.\nRationale: one more rule.")
        name, arguments = calls[turn]
        return Reply("", (ToolCall(f"call_{turn}", name, json.dumps(arguments)),), Stop.TOOL_CALLS)


def write_repository(folder):
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "Begin")


def git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def requests_text(server):
    return "\n".join(json.dumps(record.body) for record in server.requests if record.method == "POST")


def test_a_claude_folder_is_evolved_and_comes_back_as_a_patch(tmp_path):
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    repository, suite, mine = tmp_path / "repository", tmp_path / "words", tmp_path / "mine"
    write_repository(repository)
    shutil.copytree(SUITE, suite)
    for number in range(3):
        shutil.copytree(suite / "tasks" / TASK, suite / "tasks" / f"{TASK}-{number}")
    provider = PROVIDERS["anthropic"]
    dgm = partial(run_dgm, template_environment(provider, tmp_path / "archive"))
    made = json.loads(
        dgm("agent", "init", mine, "--template", "claude-code", "--repository", repository, "--json")
    )
    assert len(made["imported"]["taken"]) == len(FILES) - 1
    with WireServer(key=KEY, models=(provider.own_name,), brain=Coder()) as server:
        bounds = ["--max-evaluations", "12", "--set", "budget.agents=3", "--workers", "2", "--name", "grown"]
        where = ["--agent", mine, "--benchmark", suite, "--set", "sandbox=bubblewrap"]
        dgm("run", *where, *bounds, *provider.words(server.url))
        inside = requests_text(server)
    assert [word for word in REACHES if word not in inside] == []
    assert "hunter2hunter2" not in inside
    status = json.loads(dgm("status", "grown", "--json"))
    assert (status["agents"], status["evaluations"]["graded"]) == (3, 12), status

    dgm("export", "grown", "best", tmp_path / "better.patch")
    git(repository, "apply", str(tmp_path / "better.patch"))
    assert RULE in (repository / "CLAUDE.md").read_text()
    assert SKILL in (repository / ".claude/skills/word/SKILL.md").read_text()

    (claude,) = Path(CACHE, "templates", "dgm", "packages").glob(
        "npm-*/@anthropic-ai/claude-code-linux-*/claude"
    )
    (tmp_path / "home").mkdir()
    with WireServer(key=KEY, models=(provider.own_name,), brain=Coder()) as server:
        subprocess.run(
            [claude, *OPTIONS, provider.own_name, "--", "The status is out of date."],
            cwd=repository,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "IS_SANDBOX": "1"}
            | {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY},
            stdin=subprocess.DEVNULL,
            check=True,
            capture_output=True,
            timeout=300,
        )
        outside = requests_text(server)
    assert (repository / "status.txt").read_text() == "ready\n"
    assert [word for word in (*REACHES, RULE) if word not in outside] == []
