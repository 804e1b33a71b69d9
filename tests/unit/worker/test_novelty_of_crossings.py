"""What the gate ``novelty`` holds a child against, by how many parents it has."""

import asyncio

import pytest

from dgm.archive.events import ActionStarted, RunStarted
from dgm.archive.repository import merge_snapshots, patch
from dgm.archive.run import Run
from dgm.config import GateSettings
from dgm.domain import ActionId, AgentId, Born, Budget, Entry, Expand, Tally
from dgm.errors import AgentFault
from dgm.meta.similarity import check_novel
from dgm.protocols import Brief, Member
from dgm.search.prepare import AgentIndex
from dgm.worker.worker import edits_before
from tests.support.runs.trees import TASKS

pytestmark = pytest.mark.starts_processes

SEED = {"a.py": Entry(b"".join(b"def f%d(x):\n    return x + %d\n\n" % (n, n) for n in range(40)))}


def changed(source, old, new):
    assert source["a.py"].data.count(old) == 1
    return {"a.py": Entry(source["a.py"].data.replace(old, new))}


ONE = changed(SEED, b"return x + 3\n", b"return x * 3 + one_thing(x)\n")
TWO = changed(SEED, b"return x + 33\n", b"y = other_thing(x, 5)\n    return y - 33\n")
BOTH = merge_snapshots(SEED, ONE, TWO).files


@pytest.fixture
def run(tmp_path):
    """The seed, and its children 1 and 2."""
    with Run.create(tmp_path / "run", {"settings": {}}) as made:
        made.append(RunStarted(Budget(), TASKS))
        born(made, (), SEED)
        born(made, (0,), ONE)
        born(made, (0,), TWO)
        yield made


def born(run, parents, source):
    action = run.tree.next_action
    numbers = tuple(map(AgentId, parents))
    if parents:
        run.append(ActionStarted(action, Expand(numbers, "op")))
    commit = run.repository.commit(source, [run.tree.agents[parent].commit for parent in parents])
    run.append(run.birth(Born(numbers, "op", commit, ""), action if parents else ActionId(0)))


def checked(run, parents, child, shown=()):
    """Passes a child through the gate as vetting does."""
    action = run.tree.next_action
    what = Expand(tuple(map(AgentId, parents)), "op", shown=tuple(map(AgentId, shown)))
    started, repository = run.append(ActionStarted(action, what)), run.repository
    siblings = AgentIndex(run).siblings(what.parents[0], started.seq)

    def member(number):
        agent = run.tree.agents[number]
        before = run.tree.agents[agent.parents[0]].commit if agent.parents else None
        change = repository.diff(before, agent.commit) if before else b""
        return Member(agent, repository.source(agent.commit), Tally(), change=change)

    brief = Brief([member(each) for each in parents], {}, {}, 1, members=[member(each) for each in shown])
    edit = patch(brief.parents[0].source, child)
    others = edits_before(brief, siblings, repository.diff)
    asyncio.run(check_novel(edit, others, GateSettings().novelty_threshold, None))


def test_a_clean_merge_is_no_copy_of_what_it_merges(run):
    checked(run, (1, 2), BOTH)
    checked(run, (2, 1), BOTH, shown=(1,))


def test_the_same_merge_again_is_one(run):
    born(run, (1, 2), BOTH)
    with pytest.raises(AgentFault, match="a near copy of the edit of agent 3"):
        checked(run, (1, 2), BOTH)


def test_a_parent_that_is_a_sibling_too_does_not_count(run):
    checked(run, (0, 1), ONE)


def test_a_child_of_one_parent_is_held_against_agents_that_were_shown(run):
    with pytest.raises(AgentFault, match="a near copy of the edit of agent 2"):
        checked(run, (1,), BOTH, shown=(2,))
