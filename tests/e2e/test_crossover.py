"""Two agents that solve different tasks have a child that solves both's: sandboxes, worker, commit, commands."""

import subprocess

import pytest

from dgm.archive.snapshots import write_folder
from dgm.config import resolve
from dgm.domain import AgentId, Evaluate, Expand, TaskId, Verdict
from tests.support.fields import ancestor, specialist
from tests.support.runs.planned import PATIENT, begun, patient_suite, performed

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]

FIRST = ("intervals", "inventory", "ledger", "settings")
SECOND = ("graphs", "router", "schedule", "semver", "textwrapper", "tokens")
TASKS = ("ledger-shares-add-up-to-more", "schedule-neighbours-reported")
"""One that the first agent solves, and one that the second does."""
A, B, CHILD = map(AgentId, (1, 2, 3))


def crossed(folder, scratch):
    """A run of the ancestor, the two made of it, their crossover, and the evaluations of these three; closed."""
    (scratch / "seed").mkdir()
    write_folder(ancestor(), scratch / "seed")
    flags = {
        "seed_agent": str(scratch / "seed"),
        "benchmark": patient_suite(scratch / "suite"),
        "operator": "self-edit+crossover",
        "sandbox": "bubblewrap",
        "model": "offline",
        "workers": 2,
    }
    settings = resolve(None, PATIENT, flags)
    made = [
        (specialist(fields, change), f"works on {fields[0]} and the like")
        for fields, change in ((FIRST, "line-ends"), (SECOND, "log-results"))
    ]
    rounds = [
        [Evaluate(agent, TaskId(task)) for task in TASKS for agent in (A, B)],
        [Expand((A, B), "crossover")],
        [Evaluate(CHILD, TaskId(task)) for task in TASKS],
    ]
    with begun(folder, settings, made) as run:
        performed(run, settings, rounds)
        agents = list(run.tree.agents)
        assert len(agents) == 4, [event.event for event in run.store.read(0)][-3:]
        solved = {
            agent: {task for task in TASKS if run.tree.verdict(agent, TaskId(task)) is Verdict.RESOLVED}
            for agent in (A, B, CHILD)
        }
    return agents, solved


@pytest.mark.slow
def test_the_child_of_two_agents_solves_what_either_solves(dgm, tmp_path):
    run = dgm.archive / "crossed"
    agents, solved = crossed(run, tmp_path)
    assert solved == {A: {TASKS[0]}, B: {TASKS[1]}, CHILD: {*TASKS}}
    child = agents[CHILD]
    assert (child.parents, child.operator) == ((A, B), "crossover")
    assert child.rationale.startswith("Both agents' changes in one program")
    git = ["git", "--git-dir", str(run / "agents.git")]
    body = subprocess.run(
        [*git, "cat-file", "-p", child.commit], capture_output=True, text=True, check=True
    ).stdout
    said = [line.removeprefix("parent ") for line in body.splitlines() if line.startswith("parent ")]
    assert said == [agents[A].commit, agents[B].commit]
    table = subprocess.run(
        [*git, "show", f"{child.commit}:agent/fields.py"], capture_output=True, text=True, check=True
    )
    assert all(f'    "{field}",\n' in table.stdout for field in (*FIRST, *SECOND))

    records = dgm.json("show", "crossed")["agents"]
    assert records[CHILD]["parents"] == [A, B]
    assert CHILD in records[A]["children"] and CHILD in records[B]["children"]
    steps = dgm.json("show", "crossed", CHILD, "--lineage")["lineage"]
    assert [step["agent"] for step in steps] == [0, A, CHILD]
    assert steps[-1]["parents"] == [A, B]
