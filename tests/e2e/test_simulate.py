"""``dgm simulate`` as people use it: compared, interrupted, recorded and replayed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from dgm.analysis.budgets import Reason
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.errors import Infrastructure
from dgm.policies.registry import POLICIES, best_agent, open_policy
from dgm.replay.decisions import replay_decisions
from dgm.simulation.policies import contender_settings
from dgm.simulation.recorded import record_trial
from dgm.simulation.trial import Trial, perform, quiet

ONE = ("--policy", "hgm", "--family", "drift", "--worlds", "7:8", "--budget", "20")


def test_policies_are_compared_and_printed(dgm):
    words = ("simulate", "--policy", "random", "--family", "drift", "--family", "broken")
    small = (*words, "--worlds", "2", "--budget", "30")
    text = dgm(*small).stdout
    assert "random" in text and "mean of families: 2 worlds" in text
    assert {row["policy"] for row in dgm.json(*small)["standings"]} == {"random", "hgm"}


def test_an_interrupted_study_leaves_a_file_to_continue_from(dgm, tmp_path):
    file = tmp_path / "trials.csv"
    words = ["simulate", "--policy", "hgm", "--worlds", "200", "--csv", str(file)]
    # Tests that run in the background of a shell would hand down that Ctrl-C is to be ignored.
    process = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-m", "dgm", *words],
        env=dgm.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while (not file.exists() or file.read_bytes().count(b"\n") < 2) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert file.read_bytes().count(b"\n") >= 2


@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_a_search_is_the_same_whether_it_is_recorded_or_not(tmp_path, cost):
    trial = Trial("lineage", "drift", 2000, budget=60, expansion_cost=cost)
    record_trial(tmp_path / "run", trial)
    result = perform(trial)
    with Run.open(tmp_path / "run") as run:
        assert (len(run.tree.agents), run.tree.evaluations) == (result.agents, result.evaluations)
        assert best_agent(contender_settings("lineage").policy, run.tree) == result.recommended


def test_a_recorded_search_is_a_run_like_any_other(dgm, tmp_path):
    folder = tmp_path / "run"
    dgm("simulate", *ONE, "--record", folder)
    status = dgm.json("status", folder)
    dgm("simulate", *ONE, "--record", folder)
    assert dgm.json("status", folder)["evaluations"] == status["evaluations"]
    assert "★" in dgm("show", folder).stdout
    assert dgm.json("show", folder, "best", "--lineage")["lineage"][0]["agent"] == 0
    assert dgm.json("replay", folder)["identical"]
    assert "another trial" in dgm("simulate", *ONE[:-1], "50", "--record", folder, code=2).stderr
    assert "is simulated" in dgm("resume", folder, code=2).stderr
    for words in (("report", folder, "--holdout"), ("evaluate", f"{folder}:best")):
        assert "is simulated" in dgm(*words, code=2).stderr


def test_a_recorded_search_that_an_outage_ends_can_be_continued(tmp_path):
    trial, counts = Trial("hgm", "drift", 1, budget=20, failures=0.95), []
    for _ in range(2):
        with pytest.raises(Infrastructure, match="failed too often"):
            record_trial(tmp_path / "run", trial)
        with Run.open(tmp_path / "run") as run:
            counts.append(run.tree.evaluations)
    assert counts[0] < counts[1]


def _killed_after(folder, trial, events):
    """Die in the middle of a recording."""
    quiet()

    def die(recorded):
        nonlocal events
        events -= 1
        if events == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    record_trial(folder, trial, die)


@pytest.mark.parametrize(
    "policy",
    [pytest.param(name, marks=[] if name == "lineage" else pytest.mark.sampled) for name in sorted(POLICIES)],
)
def test_decisions_replay_after_two_deaths_with_twenty_workers(policy, tmp_path):
    # Room for the seed on all of its 60 tasks and for children after that, which is when the last policies make them;
    # the second death comes when they do.
    trial = Trial(policy, "broken", 11, budget=100, expansion_cost=1.0, workers=20, failures=0.05)
    for events in (45, 100):
        process = multiprocessing.get_context("fork").Process(
            target=_killed_after, args=(tmp_path / "run", trial, events)
        )
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
    quiet()
    record_trial(tmp_path / "run", trial)
    with Run.open(tmp_path / "run") as run:
        settings = Settings.model_validate(run.config["settings"])
        found = replay_decisions(run, open_policy(settings), settings)
        assert run.tree.stop_reason in (Reason.GOAL.value, Reason.NOTHING_LEFT.value)
        assert len(run.tree.agents) > 1
    assert (found.differing, found.first) == (0, None)
    assert found.asked > 20
