"""Children that were not born: what they were stays, where an expansion that was ordered meanwhile names it."""

import pytest

from dgm.archive.adopt import verify
from dgm.archive.live import ApprovalAnswer, put_answer
from dgm.archive.packed import unpack
from dgm.archive.run import Run
from dgm.domain import ActionId, Born, Stillborn
from dgm.errors import ArchiveCorrupt
from dgm.exports.pack import pack
from dgm.search.prepare import AgentIndex
from tests.support.runs.approving import (
    NOBODY,
    Killed,
    Maker,
    answering,
    founded,
    killed_at,
    left_over,
    searched,
)

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def run(tmp_path):
    """One whose second child was ordered while the first waited, which was rejected then."""
    with founded(tmp_path / "run") as made:
        answers = {ActionId(1): ApprovalAnswer(False), ActionId(2): ApprovalAnswer(True)}
        searched(made, 2, answering(made, answers), novelty="similarity")
        yield made


def edits(run, by):
    """What the second child was compared with, as a replay finds it."""
    seq, what = run.store.starts_of_action(ActionId(2))[-1]
    parent = run.tree.agents[what.parents[0]]
    siblings = AgentIndex(run).siblings(parent.id, seq)
    return {name: by.diff(parent.commit, commit) for name, commit in siblings.items()}


def test_an_unpacked_run_still_has_the_edit_of_a_rejected_sibling(run, tmp_path):
    then = edits(run, run.repository)
    assert list(then) == ["the child of action 1"]
    assert b"-seed\n+1\n" in then["the child of action 1"]
    pack(run.folder, tmp_path / "a.dgm", NOBODY)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back") as back:
        assert edits(back, back.repository) == then


class Dead(Maker):
    """Makes children that do not start."""

    async def perform(self, action, what):
        made = await super().perform(action, what)
        return Stillborn(made.parents, "op", "check", "no") if isinstance(made, Born) else made


def test_of_an_expansion_that_comes_to_nothing_when_it_is_performed_again_nothing_stays(tmp_path):
    with founded(tmp_path / "again") as made:
        with pytest.MonkeyPatch.context() as patched:
            killed_at(made, "after the diff", patched)
            with pytest.raises(Killed):
                searched(made, 1)
        put_answer(made.folder, ActionId(1), ApprovalAnswer(True))
        assert left_over(made)[0] == ["1", "1.diff"]
        searched(made, 1, maker=Dead)
        assert dict(made.tree.stillborn) == {"check": 1}
        assert left_over(made) == ([], {})


def test_the_commit_of_a_rejected_child_hangs_on_a_ref(run):
    verify(run.folder)
    assert list(run.repository.waiting_refs()) == [1]
    run.repository.forget_waiting(ActionId(1))
    with pytest.raises(ArchiveCorrupt, match="the child of action 1: its ref is None"):
        verify(run.folder)
