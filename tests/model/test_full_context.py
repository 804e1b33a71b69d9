"""A model that is still loading, and one whose context is full."""

import shutil
from pathlib import Path

import pytest

from dgm.domain import Verdict
from tests.model.conftest import ALIAS
from tests.model.record import Record
from tests.model.server import find_weights, serving
from tests.support.suite_on_disk import copy_word_suite

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]
SOLID = Path(__file__).parents[2] / "archive" / "seeds" / "solid"
LONG_PAST = '''"""The agent in the middle of a long conversation."""

import json
import sys

from agent import loop, memory, tools

with open(sys.argv[1]) as file:
    job = json.load(file)
toolbox = tools.Toolbox(job["workdir"])
session = loop.Session(job, toolbox)
for number in range(8):
    turn = memory.Turn({}, "I read on.\\n\\n```bash\\ncat status.txt\\n```", [])
    turn.results = ["one two three four " * 200]
    session.history.turns.append(turn)
code = session.run()
toolbox.close()
sys.exit(code)
'''


@pytest.fixture(scope="module")
def loading(dgm, tmp_path_factory):
    """A server whose context is soon full and that has just begun to load; the command that asks it is imported."""
    dgm("doctor", "--model", "offline")
    with serving(find_weights(), ALIAS, tmp_path_factory.mktemp("small") / "log", context=2048) as server:
        server.wait_for(503)
        yield server


@pytest.fixture(scope="module")
def checked(dgm, loading):
    """What the command said that asked while the server loaded."""
    return dgm("doctor", *loading.options)


@pytest.fixture
def loaded(loading, checked):
    """The server, once it has answered."""
    return loading


def evaluate(dgm, server, agent, benchmark):
    into = dgm.archive / benchmark.name
    words = ["--benchmark", benchmark, "--split", "search", "--set", "sandbox=bubblewrap", "--workers", 1]
    words += ["--set", "limits.calls=8", "--set", "limits.output_tokens=40", "--set", "limits.time_factor=20"]
    dgm("evaluate", agent, *words, *server.options, "--into", into)
    return Record.read(into)


def test_a_model_that_loads_is_waited_for(checked, loaded):
    assert "answers (a check of" in checked.stdout + checked.stderr
    assert loaded.read_health() == 200


def test_the_agent_makes_a_full_conversation_shorter_and_goes_on(dgm, loaded, tmp_path):
    agent = tmp_path / "agent"
    shutil.copytree(SOLID, agent, ignore=shutil.ignore_patterns("__pycache__"))
    (agent / "agent" / "long_past.py").write_text(LONG_PAST)
    manifest = agent / "agent.toml"
    manifest.write_text(manifest.read_text().replace('"-m", "agent"]', '"-m", "agent.long_past"]'))
    found = evaluate(dgm, loaded, agent, copy_word_suite(tmp_path / "long-past", 1))
    (graded,) = found.graded
    assert graded.verdict is not Verdict.INVALID
    told = [call.reply.error for call in found.calls]
    assert told[0] == "context_length_exceeded"
    assert not told[-1]
    sizes = [len(str(call.messages)) for call in found.calls if call.reply.error]
    assert sizes == sorted(sizes, reverse=True)


def test_a_problem_that_no_context_holds_is_the_agents_to_lose(dgm, loaded, tmp_path):
    benchmark = copy_word_suite(tmp_path / "long-problem", 1)
    (problem,) = benchmark.glob("tasks/*/problem.md")
    problem.write_text(problem.read_text() + "The plant is large and old. " * 400)
    found = evaluate(dgm, loaded, "solid", benchmark)
    assert [graded.verdict for graded in found.graded] == [Verdict.UNRESOLVED]
    assert {call.reply.error for call in found.calls} == {"context_length_exceeded"}
