"""A fold lets others at the interpreter, and can be ended."""

import gc
from pathlib import Path

import pytest

from dgm.archive.events import AgentBorn
from dgm.archive.fold import PAUSE_ROWS, fold
from dgm.archive.log import Log
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Born, CommitId


@pytest.fixture
def store(tmp_path: Path) -> Log:
    with Log.open(tmp_path / "run.db", write=True) as store:
        parents = [(), *((AgentId(agent - 1),) for agent in range(1, 3 * PAUSE_ROWS + 7))]
        store.append_many(
            AgentBorn(ActionId(0), AgentId(agent), Born(those, "op", CommitId("c" * 40), ""))
            for agent, those in enumerate(parents)
        )
    return Log.open(tmp_path / "run.db", write=False)


def test_a_fold_pauses_every_few_rows_and_comes_to_the_same(store: Log) -> None:
    calls: list[None] = []
    paused, plain = Tree(), Tree()
    fold(store, paused, lambda: calls.append(None))
    fold(store, plain)
    assert len(calls) == 3
    assert paused.seq == plain.seq == store.last
    assert paused.depths == plain.depths


def test_a_fold_ends_where_its_pause_says_so(store: Log) -> None:
    class Left(Exception):
        pass

    def leave() -> None:
        raise Left

    tree = Tree()
    with pytest.raises(Left):
        fold(store, tree, leave)
    assert len(tree.agents) == PAUSE_ROWS


@pytest.mark.parametrize("collecting", [True, False])
def test_a_fold_leaves_the_garbage_collector_as_it_found_it(store: Log, collecting: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        fold(store, Tree())
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()
