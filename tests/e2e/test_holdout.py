"""What holdout evaluations and their control cost, and that none of it is paid twice."""

import shutil
from dataclasses import replace

import pytest

from tests.support.hosted import KEY, PROVIDERS
from tests.support.program import OFFLINE
from tests.support.suite_on_disk import TASK, make_suite
from tests.support.wire_server import Offline, WireServer

pytestmark = pytest.mark.sandbox

PROVIDER = PROVIDERS["openai"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Two tasks to search on and one to report on; the last cannot be resolved, so that a control tries it again."""
    made = make_suite(tmp_path_factory.mktemp("suite"))
    held_out = made / "tasks" / "totals-doubling-triples"
    shutil.copytree(made / "tasks" / TASK, made / "tasks" / f"{TASK}-again")
    shutil.copytree(made / "tasks" / TASK, held_out)
    shutil.copytree(made / "repos" / "sums", made / "repos" / "totals")
    text = (held_out / "task.toml").read_text()
    (held_out / "task.toml").write_text(text.replace('"search"', '"holdout"').replace('"sums"', '"totals"'))
    hidden = held_out / "tests" / "test_hidden_double.py"
    hidden.write_text(hidden.read_text().replace("double(5), 10", "double(5), 11"))
    return made


@pytest.fixture(scope="module")
def program(dgm):
    """The program, with a provider that bills its calls."""
    with WireServer(brain=Offline(), models=(PROVIDER.own_name,), key=KEY) as server:
        yield replace(dgm, environment={PROVIDER.key_env: KEY}), server


@pytest.fixture(scope="module")
def priced(program, suite):
    """The record of a finished search whose best agent is not the seed."""
    dgm, server = program
    words = ["run", "--name", "priced", "--benchmark", suite, "--set", "sandbox=bubblewrap", "--workers", 1]
    words += ["--policy", "greedy", "--max-evaluations", 3, "--max-usd", 1]
    return dgm.json(*words, *PROVIDER.words(server.url))


def test_holdout_evaluations_are_bounded_priced_and_paid_once(program, priced):
    dgm, server = program
    holdout = dgm.archive / "priced" / "holdout"
    searched = priced["spend"]["usd"]
    assert 0 < searched < 1
    calls = len(server.requests)
    refused = dgm("report", "priced", "--control", code=2)
    assert "further attempt" in refused.stderr
    assert "add --yes to go on" in refused.stderr
    assert (len(server.requests), holdout.exists()) == (calls, False)
    stopped = dgm("report", "priced", "--holdout", "--max-usd", "0.000001", code=3)
    assert "give it more with --max-usd" in stopped.stderr
    assert "search tasks" in stopped.stdout
    shown = dgm("report", "priced", "--holdout").stdout
    assert f"seed 1/1 · best ({dgm.json('report', 'priced')['best']['agent']}) 0/1" in shown
    plain = dgm.json("report", "priced", "--holdout")["holdout"]
    assert (plain["missing"], plain["control"]) == (0, None)
    assert "priced --holdout --control does it" in dgm("report", "priced").stdout

    words = ("report", "priced", "--control", "--yes")
    performed = dgm(*words)
    assert "the control gives the seed up to" in performed.stderr
    found = dgm.json(*words)
    assert found["spend"]["usd"] == searched
    spend, control = found["holdout"]["spend"], found["holdout"]["control"]
    agents = spend["seed_agent"]["usd"] + spend["best"]["usd"] + control["spend"]["usd"]
    checks = sum(line["usd"] for line in spend["by"] if line["role"] == "check")
    assert min(spend["seed_agent"]["usd"], spend["best"]["usd"], checks) > 0
    assert spend["usd"] == pytest.approx(agents + checks, abs=1e-5)
    assert (control["missing"], control["unit"], control["attempts"]) == (0, "usd", 20)
    assert control["affordable"] > 1
    assert control["took"] == control["spend"]["usd"] > 0
    events, calls = dgm("show", holdout, "--events").stdout, len(server.requests)
    assert dgm.json(*words)["holdout"] == found["holdout"]
    assert (dgm("show", holdout, "--events").stdout, len(server.requests)) == (events, calls)


def test_a_control_that_would_show_nothing_is_refused_before_anything_is_spent(dgm, suite):
    words = [
        "--benchmark",
        suite,
        *OFFLINE,
        "--max-evaluations",
        1,
    ]
    dgm.json("run", "--name", "repeating", *words)
    refused = dgm("report", "repeating", "--control", "--yes", code=2)
    assert refused.stderr.count("\n") == 1
    assert "the offline model gives equal answers to equal requests" in refused.stderr
    assert not (dgm.archive / "repeating" / "holdout").exists()
