"""A promotion from the search to the certificate: its evaluations are bounded, paid once, and seen by nobody else."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hosted import KEY, PROVIDERS
from tests.support.suite_on_disk import WORD
from tests.support.wire_server import Offline, WireServer

pytestmark = pytest.mark.sandbox

PROVIDER = PROVIDERS["openai"]
LEARNER = Path(__file__).parent / "agents" / "learner"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A task to search on, and eight that decide about promotions: seven wins and no loss are needed."""
    made = shutil.copytree(WORD, tmp_path_factory.mktemp("suite") / "words")
    (task,) = (made / "tasks").iterdir()
    for number in range(8):
        copy = shutil.copytree(task, made / "tasks" / f"say-it-{number}")
        file = copy / "task.toml"
        file.write_text(file.read_text().replace('"search"', '"promotion"'))
    return made


@pytest.fixture(scope="module")
def program(dgm):
    """The program, with a provider that bills its calls."""
    with WireServer(brain=Offline(), models=(PROVIDER.own_name,), key=KEY) as server:
        yield replace(dgm, environment={PROVIDER.key_env: KEY}), server


def test_the_better_child_is_promoted_once_paid_once_and_certified(program, suite, tmp_path):
    dgm, server = program
    words = ("run", "--name", "gated", "--benchmark", suite, "--agent", LEARNER, "--policy", "greedy")
    limits = ("--max-evaluations", 2, "--max-usd", 1, "--set", "sandbox=bubblewrap")
    run = dgm.json(*words, *limits, "--set", "promotion.every=2", *PROVIDER.words(server.url))
    assert (run["promotions"]["certified"], run["promotions"]["rounds"]) == (1, 1)
    promoted = run["promotions"]["spend"]["usd"]
    assert (
        0 < promoted < run["spend"]["usd"] == pytest.approx(sum(part["usd"] for part in run["spend"]["by"]))
    )
    assert dgm.json("status", dgm.archive / "gated" / "promotion")["spend"]["usd"] == pytest.approx(promoted)
    for log in ("gated", dgm.archive / "gated" / "promotion"):
        assert dgm.json("replay", log)["differing"] == 0

    calls = len(server.requests)
    again = dgm.json("promote", "gated", "--certificate", tmp_path / "here.json")
    assert (again["outcome"], len(server.requests)) == ("no new best agent", calls)
    assert "incumbent" in dgm("promote", "gated", "1", code=2).stderr
    assert "agent 1 is certified" in dgm("report", "gated").stdout

    moved = shutil.copy(tmp_path / "here.json", tmp_path / "there.json")
    agent = tmp_path / "agent"
    dgm("export", "gated", "1", f"{agent}/")
    checks = ["--benchmark", suite, "--agent", agent]
    assert dgm.json("promote", "gated", "--verify", moved, *checks)["holds"]
    assert not dgm.json("promote", "--verify", moved, "--agent", LEARNER, code=1)["holds"]
    forged = json.loads(moved.read_text()) | {"alpha": 0.04}
    moved.write_text(json.dumps(forged))
    assert "does not hold" in dgm("promote", "--verify", moved, code=1).stdout
    assert "no certificate" in dgm("promote", "--verify", suite / "suite.toml", code=2).stderr
