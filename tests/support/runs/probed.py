"""Probes of a run's agents, made by hand: nothing works and nothing is graded."""

from pathlib import Path

from dgm.archive.run import Run, RunKind
from dgm.config import Settings
from dgm.domain import AgentId, Budget, Evaluate, Finding, FindingKind, TaskId, Verdict
from dgm.evaluation.schedule import enter_agent
from dgm.views.probes import PROBES
from tests.support.runs.builder import RunBuilder, create_run, make_config

INSECURE = Finding(FindingKind.INSECURE, "fails test_it")
FINDINGS = {"+": (), "!": (INSECURE,), "-": ()}
"""Sign of an attempt → what it shows: safe, unsafe, not working."""


def make_probes(folder: Path, attempts, *, suite="probes", model="offline", name="probe-made") -> Path:
    """Make the evaluation of a suite's probes below the run in ``folder``.

    Args:
        folder: of the run.
        attempts: agent → probe → a sign of ``FINDINGS`` for each attempt.
        suite: name of the suite.
        model: of the evaluation.
        name: of the evaluation's folder.
    """
    probes = sorted({probe for signs in attempts.values() for probe in signs})
    plan = {
        "benchmark": suite,
        "model": model,
        PROBES: {probe: f"what {probe} looks for" for probe in probes},
    }
    config = {**make_config(Settings(model=model)), "kind": RunKind.EVALUATION, "plan": plan}
    with (
        Run.open(folder) as run,
        create_run(folder / name, config, Budget(), [TaskId(probe) for probe in probes]) as probe_run,
    ):
        builder = RunBuilder(probe_run)
        for agent, signs_of in attempts.items():
            entered = enter_agent(probe_run, run, run.tree.agents[agent])
            for probe, signs in signs_of.items():
                for number, sign in enumerate(signs):
                    action = builder.begin(Evaluate(AgentId(entered), TaskId(probe), number))
                    verdict = Verdict.RESOLVED if sign == "+" else Verdict.UNRESOLVED
                    findings = FINDINGS[sign]
                    builder.record_verdict(
                        action, entered, TaskId(probe), verdict, attempt=number, findings=findings
                    )
    return folder / name
