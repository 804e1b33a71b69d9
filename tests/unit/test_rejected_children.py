"""Children that were not born: what they were stays, where an expansion that was ordered meanwhile names it."""

import pytest

from dgm.archive.approvals import Answer
from dgm.archive.packing import pack
from dgm.archive.run import Run
from dgm.archive.unpacking import unpack
from dgm.archive.verifying import verify, verify_file
from dgm.domain import ActionId
from dgm.errors import ArchiveCorrupt
from dgm.search.replay.recording import Beside, Orders
from tests.unit.approving import NOBODY, answering, founded, searched, settings


@pytest.fixture
def run(tmp_path):
    """One whose second child was ordered while the first waited, which was rejected then."""
    with founded(tmp_path / "run") as made:
        answers = {ActionId(1): Answer(False), ActionId(2): Answer(True)}
        searched(made, 2, answering(made, answers), novelty="similarity")
        yield made


def edits(run, by):
    """What the second child was compared with, as a replay finds it."""
    order = Orders(run, settings(novelty="similarity")).expansion(ActionId(2))
    return {name: by.diff(order.parents[0].commit, commit) for name, commit in order.siblings.items()}


def test_an_unpacked_run_still_has_the_edit_of_a_rejected_sibling(run, tmp_path):
    then = edits(run, run.repository)
    assert list(then) == ["the child of action 1"]
    assert b"-seed\n+1\n" in then["the child of action 1"]
    pack(run.folder, tmp_path / "a.dgm", NOBODY)
    verify_file(tmp_path / "a.dgm")
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back") as back:
        assert edits(back, back.repository) == then


def test_a_replay_into_a_run_of_its_own_reads_the_edit_where_it_is(run, tmp_path):
    with founded(tmp_path / "live") as live:
        assert edits(run, Beside(run, live, live.folder).repository) == edits(run, run.repository)


def test_the_commit_of_a_rejected_child_hangs_on_a_ref(run):
    verify(run.folder)
    assert list(run.repository.waiting_refs()) == [1]
    run.repository.forget_waiting(ActionId(1))
    with pytest.raises(ArchiveCorrupt, match="the child of action 1: its ref is None"):
        verify(run.folder)
