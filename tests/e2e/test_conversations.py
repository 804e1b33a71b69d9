"""An agent with a title, a helper and a compaction is whole in transcript, export and evidence, each word once."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from dgm import assemble
from dgm.archive.events import AgentBorn
from dgm.config import BudgetSettings, Settings
from dgm.domain import AgentId, Evaluate, Expand, Usage
from dgm.messages import Reply, Stop, ToolCall
from dgm.meta.operators import needs_of
from dgm.search.loop import Search
from dgm.search.prepare import RunController
from tests.e2e.test_markers import Steps
from tests.support import marked
from tests.support.hosted import KEY, PROVIDERS
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.sampled, pytest.mark.sandbox, pytest.mark.slow]

AGENT = Path(__file__).parent / "agents" / "busy"
COMMANDS = [f"step {number}" for number in range(7)]
TASK = marked.TASKS[0]


class Numbered:
    """Calls a tool with the next number, where there is one; a title has the word, an editor its rationale."""

    def __init__(self):
        self.commands = iter(COMMANDS)

    async def answer(self, request):
        usage = Usage(1, 100, 10)
        if not request.tools:
            return Reply("A fitting title", usage=usage)
        if any("<rationale>" in message.text or "Rationale" in message.text for message in request.messages):
            return Reply("DONE\nRationale: look twice", usage=usage)
        if command := next(self.commands, ""):
            call = ToolCall(f"call_{command[-1]}", "bash", json.dumps({"command": command}))
            return Reply(f"I run {command}.", (call,), Stop.TOOL_CALLS, usage)
        return Reply("DONE", usage=usage)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with one evaluation of the agent and one child of it."""
    folder, provider = tmp_path_factory.mktemp("busy"), PROVIDERS["openai-chat"]
    with (
        pytest.MonkeyPatch.context() as patch,
        WireServer(brain=Numbered(), key=KEY, models=(provider.own_name,)) as server,
    ):
        patch.setenv(provider.key_env, KEY)
        settings = Settings(
            benchmark=str(marked.make(folder / "suite")),
            sandbox="bubblewrap",
            workers=1,
            seed_agent=str(AGENT),
            budget=BudgetSettings(evaluations=100),
            vetting={"probes": 0},
            model=provider.model,
            providers={provider.section: {"base_url": f"{server.url}/v1", "backoff_s": 0.01, "api": "chat"}},
        )
        parts = assemble.parts_of(settings)
        steps = [Evaluate(AgentId(0), TASK), Expand((AgentId(0),), "self-edit")]

        async def search(run):
            async with assemble.open_worker(run, settings, parts) as worker:
                controller = RunController(run, settings, needs_of(worker.operators))
                await Search(controller, Steps(steps), worker, settings).go()

        with assemble.create(folder / "run", settings, parts) as made:
            asyncio.run(search(made))
            yield made


def test_the_transcript_has_each_turn_of_all_conversations_once(run, dgm):
    (attempt,) = dgm.json("show", run.folder, "seed", "--task", TASK)["attempts"]
    threads = attempt["transcript"]["threads"]
    main, title, _ = threads
    assert [thread["calls"] for thread in threads] == [6, 1, 2]
    assert len(main["segments"]) == 2
    assert main["prompts"][0]["system"].startswith("You are a coding agent.")
    assert [tool["name"] for tool in main["prompts"][0]["tools"]] == ["bash"]
    assert title["prompts"][0]["tools"] == []
    turns = [
        (number, turn)
        for number, thread in enumerate(threads, 1)
        for segment in thread["segments"]
        for turn in segment["turns"]
    ]
    calls = [(number, tool["arguments"]) for number, turn in turns for tool in turn["tools"]]
    assert [(thread, json.loads(arguments)["command"]) for thread, arguments in calls] == [
        *((1, f"step {number}") for number in (0, 1, 4, 5, 6)),
        *((3, f"step {number}") for number in (2, 3)),
    ]
    texts = [turn["text"] for _, turn in turns]
    assert not any("Always look before you leap." in text for text in texts)
    assert sum("HELPER: find the test" in text for text in texts) == 1
    shown = dgm("show", run.folder, "seed", "--task", TASK).stdout
    assert shown.count("Always look before you leap.") == 1_000
    assert shown.count("HELPER: find the test") == 1
    assert [len(re.findall(f"result of {command}\\b", shown)) for command in COMMANDS] == [
        1,
        1,
        1,
        0,
        1,
        0,
        1,
    ]


def test_the_export_has_each_step_once(run, dgm, tmp_path):
    dgm("export", run.folder, f"{tmp_path}/out/", "--what", "trajectories")
    (path,) = (tmp_path / "out").glob("*.json")
    steps = json.loads(path.read_text())["steps"]
    called = [call["arguments"]["command"] for step in steps for call in step.get("tool_calls", ())]
    assert sorted(called) == COMMANDS
    assert {step["extra"]["thread"] for step in steps} == {1, 2, 3}


def test_evidence_begins_with_actions(run):
    outcome = run.outcome(2).event
    assert isinstance(outcome, AgentBorn), outcome
    printed = run.traces.get(outcome.outcome.cost.traces["log"]).decode()
    conversation = printed[printed.index("<conversation.md") :]
    head = conversation.splitlines()[0]
    assert "system prompt and tool definitions: 30,709 characters" in head
    assert "`prompts.md`" in head
    assert '`bash` {"command": "step 0"}' in conversation
    assert "You are a coding agent." in printed[printed.index("<prompts.md") :]
    whole = run.traces.get(run.outcome(1).event.outcome.cost.traces["conversation"]).decode()
    # What the agent made of steps 3 and 5 was never sent: the helper had ended, and the context was made anew.
    assert re.findall(r"result of (step \d)", whole) == [f"step {number}" for number in (0, 1, 4, 6, 2)]
    assert len(whole) < 5_000
    assert "## system" not in whole
