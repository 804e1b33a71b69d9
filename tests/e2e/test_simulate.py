"""``dgm simulate`` as people use it: compared, killed, gone on with, recorded and replayed."""

import json
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
from dgm.policies.registry import POLICIES, best_agent, open_policy
from dgm.replay.decisions import replay_decisions
from dgm.simulate.contenders import policy_settings
from dgm.simulate.crew import quiet
from dgm.simulate.recorded import open_recording, record
from dgm.simulate.trial import Trial, perform

SMALL = ("--family", "drift", "--family", "broken", "--seeds", "2", "--budget", "30", "--jobs", "2")

DIES_AFTER_THREE = """
import os, signal
from dgm.cli.main import main
from dgm.simulate.results import Results

add, kept = Results.add, []

def add_and_die(*given):
    add(*given)
    kept.append(given)
    if len(kept) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

Results.add = add_and_die
main()
"""

ONE = ("--policy", "hgm", "--family", "drift", "--seeds", "1")
NO_USE = (
    ("--svg", "a.svg"),
    ("--results", "a.jsonl"),
    ("--markdown", "a.md"),
    ("--jobs", "1"),
    ("--reference", "dgm"),
)


def without_times(document):
    for cell in document["cells"]:
        for standing in cell["standings"]:
            del standing["decision_ms"]
    return document


def test_what_there_is_is_listed(dgm):
    listed = dgm.json("simulate", "--list")
    assert {"lineage", "hgm", "oracle"} <= {policy["name"] for policy in listed["policies"]}
    assert {family["group"] for family in listed["families"]} == {
        "reported",
        "reserved",
        "tuning",
        "choosing",
    }
    abouts = [item["about"] for item in listed["policies"]]
    assert len(set(abouts)) == len(abouts)
    assert all(item["about"] for item in (*listed["policies"], *listed["families"]))
    assert "low-retention" in dgm("simulate", "--list").stdout


def test_a_killed_study_goes_on_and_says_the_same(dgm, tmp_path):
    file = tmp_path / "results.jsonl"
    words = ["simulate", "--policy", "random", *SMALL, "--results", str(file)]
    killed = subprocess.run(
        [sys.executable, "-c", DIES_AFTER_THREE, *words],
        env=dgm.variables,
        stdout=subprocess.DEVNULL,
        check=False,
        timeout=240,
    )
    assert killed.returncode == -signal.SIGKILL
    assert file.read_bytes().count(b"\n") == 3
    gone_on = without_times(dgm.json(*words))
    trials = [json.dumps(json.loads(line)["trial"]) for line in file.read_text().splitlines()]
    assert len(trials) == len(set(trials)) == 8
    assert gone_on == without_times(dgm.json(*words[:-2]))


@pytest.mark.parametrize("presses", [1, 8])
def test_a_study_that_is_interrupted_says_how_to_go_on(dgm, tmp_path, presses):
    file = tmp_path / "results.jsonl"
    words = ["simulate", "--policy", "hgm", "--seeds", "200", "--jobs", "2", "--results", str(file)]
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
    while (not file.exists() or file.read_bytes().count(b"\n") < 1) and time.monotonic() < until:
        time.sleep(0.05)
    for _ in range(presses):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (130, "")
    assert "the same command goes on" in err
    assert "Traceback" not in err


def test_files_are_written_for_people(dgm, tmp_path):
    written = ["--svg", tmp_path / "curves.svg", "--markdown", tmp_path / "tables.md"]
    said = dgm("simulate", "--policy", "random", "--policy", "oracle", *SMALL, *written).stdout
    assert "mean of families (2 seeds)" in said
    document = (tmp_path / "tables.md").read_text()
    assert "dgm simulate --policy random --policy oracle" in document
    assert said.count("rest on 2 seeds") == document.count("rest on 2 seeds") == 1
    assert (tmp_path / "curves.svg").read_text().startswith("<svg")


def test_tables_are_printed_before_a_file_fails_and_leave_what_was_there(dgm, tmp_path):
    file = tmp_path / "curves.svg"
    file.write_text("before")
    words = ("simulate", *ONE, "--budget", "20", "--jobs", "1", "--svg", file)
    dgm(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["curves.svg"]
    assert file.read_text().startswith("<svg")
    file.write_text("before")
    (tmp_path / "full").symlink_to("/dev/full")
    done = dgm(*words[:-1], tmp_path / "full", code=2)
    assert "hgm" in done.stdout
    assert "cannot be written" in done.stderr


def test_help_of_the_cost_says_what_may_be_given(dgm):
    text = dgm("simulate", "--help").stdout
    assert "x>=0" in text
    assert "x>=-1" not in text


@pytest.mark.parametrize("cost", [0.0, 1.0])
def test_a_search_is_the_same_whether_it_is_recorded_or_not(tmp_path, cost):
    trial = Trial("lineage", "drift", 2000, budget=60, expansion_cost=cost)
    with open_recording(tmp_path / "run", trial) as run:
        record(run, trial)
        kept = perform(trial)
        assert (len(run.tree.agents), run.tree.evaluations) == (kept.agents, kept.evaluations)
        assert best_agent(policy_settings("lineage"), run.tree) == kept.recommended


@pytest.mark.parametrize(
    "words",
    [
        ("--seeds", "x"),
        ("--seeds", "5:5"),
        ("--seeds", "99999999999999999999"),
        ("--policy", "hgm+name=dgm"),
        ("--results", "here.txt", "--markdown", "../{here}/here.txt"),
        ("--svg", "here.txt", "--markdown", "./here.txt"),
        ("--list", "--policy", "hgm"),
        *(("--record", "somewhere", *ONE, *words) for words in NO_USE),
        ("--record", "/proc/x/y", *ONE),
        ("--record", "/dev/null/x/y", *ONE),
        ("--family", "nix"),
        ("--policy", "nix"),
        ("--policy", "hgm+gate=nix"),
        ("--policy", "hgm+alpha"),
        ("--policy", "lineage+alpha=0.5"),
        ("--reference", "hgm+alpha=0.5+gate=staged"),
        ("--record", "somewhere", "--policy", "dgm+alpha=0.5", "--family", "drift", "--seeds", "1"),
        ("--reference", "nix"),
        ("--budget", "0"),
        ("--expansion-cost", "-1"),
        ("--workers", "0"),
        ("--failures", "1"),
        ("--svg", "/no/such/folder/curves.svg"),
        ("--svg", "/proc/curves.svg"),
        ("--markdown", ""),
        ("--record", "somewhere"),
        ("--record", "somewhere", "--policy", "oracle", "--family", "drift", "--seeds", "1"),
    ],
)
def test_bad_input_is_one_line(dgm, words, tmp_path):
    words = [word.format(here=tmp_path.name) for word in words]
    done = dgm("simulate", *words, code=2, cwd=tmp_path)
    assert not list(tmp_path.iterdir())
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--family", "drfit"), "did you mean 'drift'?"),
        (("--seeds", "9:3"), "the range runs backwards"),
        (("--seeds", "5:5"), "the range is empty"),
    ],
)
def test_what_is_wrong_is_named(dgm, words, message):
    assert message in dgm("simulate", *words, code=2).stderr


def test_a_recorded_search_is_a_run_like_any_other(dgm, tmp_path):
    folder = tmp_path / "run"
    words = ["simulate", "--policy", "hgm", "--family", "drift", "--seeds", "7:8", "--budget", "40"]
    first = dgm.json(*words, "--record", folder)
    assert first["state"] == "goal reached"
    assert dgm.json(*words, "--record", folder) == first
    assert dgm.json("status", folder)["evaluations"] == first["evaluations"]
    assert "★" in dgm("tree", folder).stdout
    assert dgm.json("lineage", folder, "best")["lineage"][0]["id"] == 0
    assert dgm("log", folder).stdout.count("\n") > 40
    assert "nature.json" in dgm("diff", folder, 1).stdout
    assert dgm.json("replay", folder)["identical"]
    assert "is simulated" in dgm("resume", folder, code=2).stderr
    assert "another trial" in dgm(*words[:-1], "50", "--record", folder, code=2).stderr


def test_a_recorded_search_that_an_outage_ends_fails_and_goes_on(dgm, tmp_path):
    shaky = ("--budget", "20", "--failures", "0.95")
    words = ["simulate", *ONE[:-1], "1:2", *shaky, "--record", tmp_path / "run"]
    ended = dgm(*words, code=1)
    assert "(infrastructure failed" in ended.stdout
    assert ended.stderr == (
        "the infrastructure failed too often (--failures); nothing recorded is lost; the same command goes on\n"
    )
    before = dgm.json("status", tmp_path / "run")["evaluations"]["graded"]
    dgm(*words, code=1)
    assert dgm.json("status", tmp_path / "run")["evaluations"]["graded"] > before


def test_what_asks_agents_to_work_says_that_a_recorded_search_has_none(dgm, tmp_path):
    folder = tmp_path / "run"
    dgm("simulate", *ONE[:-1], "7:8", "--budget", "40", "--record", folder)
    assert "--holdout" not in dgm("report", folder, "--html", tmp_path / "page.html").stdout
    assert "--holdout" not in (tmp_path / "page.html").read_text()
    for words in (
        ("report", folder, "--holdout"),
        ("replay", folder, "--what", "lineage"),
        ("replay", folder, "--what", "lineage", "--live", "offline"),
        ("replay", folder, "--what", "evaluations"),
        ("replay", folder, "--what", "evaluations", "--live", "offline"),
        ("evaluate", f"{folder}:best"),
        ("solve", f"{folder}:best", tmp_path, "mend it"),
    ):
        said = dgm(*words, code=2).stderr
        assert "is simulated" in said and f"dgm replay {folder}" in said
        assert len(said.splitlines()) == 1


def _killed_after(folder, trial, events):
    """What a process does that dies in the middle of a recording."""
    quiet()

    def die(recorded):
        nonlocal events
        events -= 1
        if events == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_recording(folder, trial) as run:
        record(run, trial, die)


@pytest.mark.parametrize("policy", sorted(POLICIES))
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
    with open_recording(tmp_path / "run", trial) as run:
        record(run, trial)
    with Run.open(tmp_path / "run") as run:
        settings = Settings.model_validate(run.config["settings"])
        found = replay_decisions(run, open_policy(settings), settings)
        assert run.tree.stop_reason in (Reason.GOAL.value, Reason.NOTHING_LEFT.value)
        assert len(run.tree.agents) > 1
    assert (found.differing, found.first) == (0, None)
    assert found.asked > 20
