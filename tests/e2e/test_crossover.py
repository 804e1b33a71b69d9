"""Two agents that solve different tasks have a child that solves both's: sandboxes, worker, commit, commands."""

import shutil
import subprocess

import pytest

from dgm.archive.snapshots import write_folder
from dgm.config import resolve
from dgm.domain import AgentId, Evaluate, Expand, TaskId, Verdict
from tests.support.fields import ancestor, specialist
from tests.support.runs.planned import PATIENT, begun, patient_suite, performed

pytestmark = pytest.mark.sandbox

FIRST = ("intervals", "inventory", "ledger", "settings")
SECOND = ("graphs", "router", "schedule", "semver", "textwrapper", "tokens")
OF_FIRST = (
    "intervals-empty-day-has-no-free-time",
    "intervals-shared-time-too-long",
    "intervals-touching-hides-overlap",
    "inventory-last-day-refused",
    "inventory-second-line-oversold",
    "ledger-balance-gone-after-reconcile",
    "ledger-instalment-off-by-amount",
    "ledger-shares-add-up-to-more",
    "settings-default-is-ignored",
    "settings-one-site-changes-another",
)
OF_SECOND = (
    "graphs-unreachable-goal",
    "router-number-in-path-and-query",
    "schedule-east-taken-for-west",
    "schedule-neighbours-reported",
    "semver-answers-change-the-index",
    "semver-tenth-candidate-order",
    "textwrapper-columns-half-used",
    "textwrapper-report-remarks-shifted",
    "tokens-between-rule-too-generous",
    "tokens-division-crash",
)
QUICK = ("ledger-shares-add-up-to-more", "schedule-neighbours-reported")
A, B, CHILD = map(AgentId, (1, 2, 3))


def crossed(folder, scratch, tasks):
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
        [Evaluate(agent, TaskId(task)) for task in tasks for agent in (A, B)],
        [Expand((A, B), "crossover")],
        [Evaluate(CHILD, TaskId(task)) for task in tasks],
    ]
    with begun(folder, settings, made) as run:
        performed(run, settings, rounds)
        agents = list(run.tree.agents)
        assert len(agents) == 4, [event.event for event in run.store.read(0)][-3:]
        solved = {
            agent: {task for task in tasks if run.tree.verdict(agent, TaskId(task)) is Verdict.RESOLVED}
            for agent in (A, B, CHILD)
        }
    return agents, solved


def check(dgm, scratch, name, tasks, least):
    """The whole of it: who solves what, what is in the repository, and what the commands print."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    run = dgm.archive / name
    agents, solved = crossed(run, scratch, tasks)
    assert solved[A] == {task for task in tasks if task in OF_FIRST}
    assert solved[B] == {task for task in tasks if task in OF_SECOND}
    assert len(solved[CHILD]) >= least, sorted(set(tasks) - solved[CHILD])
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

    (row,) = (line for line in dgm("show", name).stdout.splitlines() if "crossover" in line)
    assert f"{CHILD} " in row and f"crossover of {A} and {B}" in row
    records = dgm.json("show", name)["agents"]
    assert records[CHILD]["parents"] == [A, B]
    assert CHILD in records[A]["children"] and CHILD in records[B]["children"]
    steps = dgm.json("show", name, CHILD, "--lineage")["lineage"]
    assert [step["agent"] for step in steps] == [0, A, CHILD]
    assert steps[-1]["parents"] == [A, B]
    rows = dgm("show", name, CHILD, "--lineage").stdout.splitlines()
    assert f"crossover of {A} and {B}" in rows[-1]


@pytest.mark.slow
def test_the_child_of_two_agents_solves_what_either_solves(dgm, tmp_path):
    check(dgm, tmp_path, "crossed", QUICK, len(QUICK))


@pytest.mark.minutes
@pytest.mark.timeout(1500)
def test_the_child_solves_eighteen_of_twenty_tasks_of_which_each_parent_solves_ten(dgm, tmp_path):
    check(dgm, tmp_path, "crossed-of-twenty", (*OF_FIRST, *OF_SECOND), 18)
