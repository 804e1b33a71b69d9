from collections.abc import Iterator
from pathlib import Path

import pytest

from dgm.analysis.accounts import Accounts, Purpose
from dgm.archive.events import AgentStillborn, ChildProposed
from dgm.archive.run import Run
from dgm.domain import ActionId, AgentId, Born, Evaluate, Expand, Stillborn, Usage
from tests.support.runs.paid import IMPROVE, ONE, SOLVE, TASKS, PaidRun, small

pytestmark = pytest.mark.slow


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[PaidRun]:
    made = small(tmp_path / "archive" / "paid")
    yield made
    made.run.close()


def calls(usage: Usage) -> int:
    return usage.calls


def test_every_call_is_in_one_account(paid: PaidRun) -> None:
    accounts = Accounts(paid.run)
    total = sum((accounts.of(agent.id).total for agent in paid.run.tree.agents), Usage())
    assert calls(total) == calls(paid.run.tree.spend) == 20
    assert total.usd == pytest.approx(paid.run.tree.spend.usd)


def test_an_agent_is_made_evaluated_and_has_children_that_do_not_live(paid: PaidRun) -> None:
    accounts = Accounts(paid.run)
    found = {
        agent: [calls(accounts.of(AgentId(agent)).of(purpose)) for purpose in Purpose] for agent in range(3)
    }
    # Making; evaluating, invalid and lost tries included; stillborn children; what is under way.
    assert found == {0: [0, 3, 4, 0], 1: [2, 4, 0, 0], 2: [5, 0, 0, 2]}


def test_a_child_that_waits_is_unfinished_until_it_is_said_to_be_stillborn(paid: PaidRun) -> None:
    action = paid.start(Expand((AgentId(1),), "self-edit"))
    paid.call(action, 3, IMPROVE)
    child = Born((AgentId(1),), "self-edit", paid.run.tree.agents[1].commit, "")
    paid.run.append(ChildProposed(action, child))

    def found() -> list[int]:
        account = Accounts(paid.run).of(AgentId(1))
        return [calls(account.of(purpose)) for purpose in (Purpose.STILLBORN, Purpose.UNFINISHED)]

    assert found() == [0, 3]
    dead = Stillborn((AgentId(1),), "self-edit", "rejected", "too long", decided="a person")
    paid.run.append(AgentStillborn(action, dead))
    assert found() == [3, 0]


def test_an_expansion_that_is_to_be_performed_again_is_unfinished(paid: PaidRun) -> None:
    action = Accounts(paid.run).of(AgentId(2)).lines[-1].action
    paid.lost(action)
    assert calls(Accounts(paid.run).of(AgentId(2)).of(Purpose.UNFINISHED)) == 2
    paid.again(action, Expand((AgentId(2),), "self-edit"))
    paid.lost(action, final=True)
    assert calls(Accounts(paid.run).of(AgentId(2)).of(Purpose.STILLBORN)) == 2


def test_a_clade_counts_each_descendant_once(paid: PaidRun) -> None:
    accounts = Accounts(paid.run)
    assert [calls(accounts.clade(AgentId(agent))) for agent in range(3)] == [20, 13, 7]


def test_an_action_is_told_by_role_and_model(paid: PaidRun) -> None:
    accounts = Accounts(paid.run)
    assert accounts.action(ActionId(1))[SOLVE].input_tokens == 3000
    assert calls(accounts.action(ActionId(4))[SOLVE]) == 3
    assert accounts.action(ActionId(99)) == {}
    paid.call(ActionId(4), 1, IMPROVE)
    assert list(Accounts(paid.run).action(ActionId(4))) == [SOLVE, IMPROVE]


def test_cached_written_and_reasoning_tokens_are_kept_apart(paid: PaidRun) -> None:
    usage = Accounts(paid.run).action(ActionId(1))[SOLVE]
    assert (usage.cached_tokens, usage.written_tokens, usage.reasoning_tokens) == (750, 150, 180)
    rows = paid.run.store.query("SELECT DISTINCT cached_tokens, written_tokens, reasoning_tokens FROM spend")
    assert rows == [(ONE.cached_tokens, ONE.written_tokens, ONE.reasoning_tokens)]


def test_finer_counts_that_were_never_told_are_zero(paid: PaidRun) -> None:
    action = paid.start(Evaluate(AgentId(2), TASKS[0]))
    paid.call(action, 1, usage=Usage(1, 10, 1))
    assert Accounts(paid.run).action(action)[SOLVE] == Usage(1, 10, 1)
    assert paid.run.store.query("SELECT cached_tokens FROM spend WHERE action = ?", (action,)) == [(0,)]


def test_refusals_are_those_of_the_agent_at_work(paid: PaidRun) -> None:
    paid.refused(ActionId(1))
    paid.refused(ActionId(3))
    paid.refused(ActionId(2), "too_many_calls")
    paid.refused(ActionId(4))
    accounts = Accounts(paid.run)
    assert [(each.code, each.times, each.action) for each in accounts.refusals(AgentId(0))] == [
        ("model_not_found", 2, 1),
        ("too_many_calls", 1, 2),
    ]
    assert [each.action for each in accounts.refusals(AgentId(1))] == [4]
    assert list(accounts.refusals(AgentId(2))) == []


def test_a_reader_sees_what_its_tree_has_read(paid: PaidRun) -> None:
    with Run.open(paid.run.folder) as reader:
        paid.evaluated(2, 0, calls=7)
        assert calls(Accounts(reader).clade(AgentId(0))) == 20
        reader.follow()
        assert calls(Accounts(reader).clade(AgentId(0))) == 27
