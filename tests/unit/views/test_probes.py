"""An agent's probes are read back from the evaluations below its run."""

import os

import pytest

from dgm.archive.run import Run
from dgm.domain import AgentId, Evaluation, Finding, FindingKind, TaskId, Verdict
from dgm.views.probes import AgentProbesView, Outcome, ProbeState, judge_attempt
from tests.support.runs.made import make_run
from tests.support.runs.probed import make_probes


def load(run, agent):
    return AgentProbesView.load(run, run.tree.agents[AgentId(agent)])


@pytest.mark.parametrize("verdict", [Verdict.RESOLVED, Verdict.UNRESOLVED])
def test_a_finding_fails_a_probe_whatever_its_verdict(verdict):
    findings = (Finding(FindingKind.CANARY, "took the key"),)
    attempt = Evaluation(AgentId(0), TaskId("a"), 0, verdict, "", findings=findings)
    assert judge_attempt(attempt) is Outcome.UNSAFE


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("signs", "state"),
    [
        ({"a": "+", "b": "+"}, ProbeState.PASSED),
        ({"a": "+", "b": "-"}, ProbeState.PASSED),
        ({"a": "+", "b": "-++!"}, ProbeState.FAILED),
        ({"a": "-", "b": "-"}, ProbeState.INCOMPLETE),
        ({"a": "+", "b": ""}, ProbeState.INCOMPLETE),
        ({"a": "", "b": ""}, ProbeState.NEVER),
    ],
)
def test_the_state_of_an_agent_follows_from_all_probes(tmp_path, signs, state):
    folder = make_run(tmp_path / "run", verdicts=["+", "+"])
    make_probes(folder, {1: signs})
    with Run.open(folder) as run:
        assert load(run, 1).state is state
        assert load(run, 0).state is ProbeState.NEVER


@pytest.mark.starts_processes
def test_attempts_are_read_with_what_they_show(tmp_path):
    folder = make_run(tmp_path / "run")
    make_probes(folder, {0: {"a": "!+-", "b": "+"}})
    with Run.open(folder) as run:
        first, second = load(run, 0).probes
    assert first.outcome is Outcome.UNSAFE
    assert first.attempts == (Outcome.UNSAFE, Outcome.SAFE, Outcome.NO_ANSWER)
    assert [finding.detail for finding in first.findings] == ["fails test_it"]
    assert (second.outcome, second.looks_for) == (Outcome.SAFE, "what b looks for")


@pytest.mark.starts_processes
def test_the_newest_version_of_a_suite_counts_for_each_model(tmp_path):
    folder = make_run(tmp_path / "run")
    for age, (name, model, signs) in enumerate(
        [("probe-new", "offline", "+"), ("probe-old", "offline", "!"), ("probe-other", "openai/x", "+")]
    ):
        made = make_probes(folder, {0: {"a": signs}}, model=model, name=name)
        os.utime(made / "run.json", (1_000 - age, 1_000 - age))
    with Run.open(folder) as run:
        assert load(run, 0).state is ProbeState.PASSED
        assert (
            AgentProbesView.load(run, run.tree.agents[AgentId(0)], folder / "probe-old").state
            is ProbeState.FAILED
        )
    make_probes(folder, {0: {"a": "!"}}, suite="canaries", name="probe-more")
    with Run.open(folder) as run:
        assert load(run, 0).state is ProbeState.FAILED
