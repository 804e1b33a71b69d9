"""Each template as a user starts from it: made, checked, and evolved in a search on a provider's wire.

Those of programs are killed in mid-search, resumed, and replayed, today and on another day.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial

import pytest

from dgm.api.own_agent import DEFAULT, TEMPLATES, find_template
from dgm.messages import Reply, Role, Stop, ToolCall
from dgm.models.builtin import command_call, finishing_call
from dgm.paths import seed_names
from tests.agents.packages import CACHE
from tests.agents.running import SUITE, TASK, run_dgm, template_environment
from tests.support.hosted import KEY, PROVIDERS, rows, until
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]
PROVIDER_OF = {
    "anthropic": "anthropic",
    "openai-agents": "openai",
    "claude-code": "anthropic",
    "codex": "openai",
    "opencode": "openai",
    "copilot": "openai",
}
PROMPTS = "prompts/*.md prompt.md agent/prompts.py CLAUDE.md AGENTS.md QWEN.md .clinerules/how-to-work.md"
LOOK = "date; uname -r; ls -l"
"""What it prints is different each time."""
SOLVE = "echo ready > status.txt"
FOLDERS = {
    "claude-code": ".claude",
    "codex": ".codex",
    "opencode": ".opencode",
    "copilot": ".github",
    "qwen-code": ".qwen",
}
"""Template of a program → folder with the user's skills."""
TEAM = "TEAM RULE"
"""Stands in each file of the tasks' repository by which a program could be told something."""
INSTRUCTIONS = (
    *("CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md"),
    *(".github/copilot-instructions.md", ".github/instructions/a.instructions.md"),
    *("QWEN.md", ".clinerules/a.md", ".cline/rules/a.md", "CONVENTIONS.md"),
)
SKILL = "---\nname: {name}\ndescription: {text}\n---\n{text}\n"


class Editor:
    """Looks, then solves the task by one command, or makes a child by one line at the end of the agent's prompt."""

    async def answer(self, request):
        text = "\n".join(message.text for message in request.messages)
        child = re.search(r"Child number: (\d+)", text)
        command = (
            f"for file in {PROMPTS}; do [ ! -f $file ] || echo 'RULE = {child[1]}' >> $file; done"
            if child
            else SOLVE
        )
        if not request.tools and "*file listing*" in text:
            # aider has no tools: it takes whole files from the answer.
            path, line = ("CONVENTIONS.md", f"RULE = {child[1]}") if child else ("status.txt", "ready")
            return Reply(f"{path}\n```\n{line}\n```\n")
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        command = (LOOK, command, "")[min(turn, 2)]
        if command and any(tool.name == "exec" and not tool.parameters for tool in request.tools):
            # Codex runs a text in JavaScript, by which it calls its other tools.
            text = f"text(await tools.exec_command({json.dumps({'cmd': command})}))"
            return Reply("", (ToolCall(f"call_{turn}", "exec", text),), Stop.TOOL_CALLS)
        call = command_call(request.tools, command) if command else finishing_call(request)
        if call is None:
            return Reply("It is done.\nRationale: one more rule.")
        return Reply("", (ToolCall(f"call_{turn}", call[0], json.dumps(call[1])),), Stop.TOOL_CALLS)


@pytest.fixture
def suite(tmp_path):
    """Two tasks, so that three agents have six evaluations."""
    folder = tmp_path / "words"
    shutil.copytree(SUITE, folder)
    workspace = folder / "tasks" / TASK / "workspace"
    for path in INSTRUCTIONS:
        write(workspace / path, TEAM)
    for above in (*FOLDERS.values(), ".agents"):
        write(workspace / above / "skills" / "tidy" / "SKILL.md", SKILL.format(name="tidy", text=TEAM))
        for agents in ("agent/tester.md", "agents/tester.md", "agents/tester.agent.md"):
            write(workspace / above / agents, SKILL.format(name="tester", text=TEAM))
    shutil.copytree(folder / "tasks" / TASK, folder / "tasks" / f"{TASK}-too")
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


QUICK = ("shell", "anthropic", "node")
"""Templates with few packages or none."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.sampled] if name in QUICK else [])
        for name in (template.name for template in TEMPLATES)
        if name == DEFAULT or name not in seed_names()
    ],
)
def test_a_template_is_made_checked_and_evolved(name, suite, tmp_path):
    if not shutil.which("bwrap") or (name == "node" and not shutil.which("node")):
        pytest.skip("bubblewrap or node is not installed")
    if name == "aider" and not any(CACHE.glob("templates/dgm/packages/*/aider")):
        pytest.skip(
            "aider is not installed: 643 MB; dgm agent check does it with XDG_CACHE_HOME set to this cache"
        )
    provider, mine = PROVIDERS[PROVIDER_OF.get(name, "openai-chat")], str(tmp_path / "mine")
    environment = template_environment(provider, tmp_path / "archive")
    dgm = partial(run_dgm, environment)
    dgm("agent", "init", mine, "--template", name)
    if name in FOLDERS:
        skill = tmp_path / "mine" / FOLDERS[name] / "skills" / "tidy" / "SKILL.md"
        write(skill, SKILL.format(name="tidy", text="MY SKILL"))
    said = json.loads(dgm("agent", "check", mine, "--set", "sandbox=bubblewrap", "--json"))
    assert {finding["level"] for finding in said["findings"]} == {"ok"}, said["findings"]
    kills = 2 if find_template(name).program else 0
    with WireServer(key=KEY, models=(provider.own_name,), brain=Editor(), latency_s=0.3) as server:
        bounds = ["--max-evaluations", "6", "--set", "budget.agents=3", "--workers", "2", "--name", "grown"]
        where = ["--agent", mine, "--benchmark", str(suite), "--set", "sandbox=bubblewrap"]
        command = ["run", *where, *bounds, *provider.words(server.url)]
        for _ in range(kills):
            kill_after(4, command, environment, server)
            command = ["resume", "grown"]
        dgm(*command)
    status = json.loads(dgm("status", "grown", "--json"))
    assert (status["agents"], status["evaluations"]["graded"]) == (3, 6), status
    assert re.search(r"^\+RULE = \d", dgm("show", "grown", "1", "--diff"), re.MULTILINE)
    asked = [str(request.body) for request in server.requests]
    solving = [text for text in asked if "Child number: " not in text]
    assert not any(TEAM in text for text in solving)
    if name in FOLDERS:
        assert sum("MY SKILL" in text for text in solving) >= 6
    if find_template(name).program:
        assert any("RULE = 1" in text for text in solving)
        answered = sum(request.reply is not None and not request.check for request in server.requests)
        calls = "from spend where kind = 'model_called'"
        ((recorded,),) = rows(tmp_path / "archive" / "grown", f"select count(*) {calls}")
        assert recorded <= answered <= recorded + 2 * kills, "two workers have a call under way at a kill"
        counts = rows(
            tmp_path / "archive" / "grown", f"select count(*) {calls} and role = 'solve' group by action"
        )
        assert len(set(counts)) == 1, f"killed evaluations paid for as many calls as others: {counts}"
        for module in ("dgm", "tests.agents.another_day"):
            dgm("replay", "grown", "--what", "work", module=module)
            dgm("replay", "grown", "1", "--what", "lineage", module=module)


def kill_after(answers, command, environment, server):
    """Kill a search with SIGKILL when its provider has given so many answers more."""
    before = server.answered
    process = subprocess.Popen(
        [sys.executable, "-m", "dgm", *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        until(lambda: server.answered >= before + answers, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
