"""A search whose children all die of one cause ends; the ordinary luck of a search ends none."""

import ast
import itertools
import re
from pathlib import Path

import pytest

from dgm.analysis.budgets import Reason
from dgm.analysis.dead_ends import LUCK, MAY_HELP, UNKNOWN, find_dead_end
from dgm.archive.events import (
    ActionStarted,
    AgentStillborn,
    ChildProposed,
    RunChanged,
    RunStarted,
    RunStopped,
)
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Born, Budget, CommitId, Cost, Entry, Expand, Stillborn
from dgm.policies.limits import BARREN, fertile
from dgm.views.run import RunView
from tests.support.runs.trees import TASKS, Log

ROOT = Path(__file__).parents[3]
NO_FAULT_OF_A_CHILD = {"start"}
"""Stages of a rehearsal, which makes no child."""


class Family(Log):
    """A tree whose children die as told."""

    def __init__(self, agents=1):
        super().__init__()
        self.born()
        for _ in range(agents - 1):
            self.born(0)

    def dies(self, reason="the self-check exits 1: no", stage="check", parent=0, decided="", cause=""):
        action, who = self.tree.next_action, (AgentId(parent),)
        self.add(ActionStarted(action, Expand(who, "self-edit")))
        self.add(
            AgentStillborn(action, Stillborn(who, "self-edit", stage, reason, decided=decided, cause=cause))
        )

    def die(self, times, **how):
        for _ in range(times):
            self.dies(**how)

    def end(self, in_a_row=11):
        return find_dead_end(self.tree, in_a_row)


def test_the_eleventh_death_of_one_cause_ends_the_search_whoever_the_parent():
    family = Family(3)
    family.die(10)
    assert family.end() is None
    family.dies(parent=1, reason="the self-check exits 2: no")
    end = family.end()
    assert (end.times, dict(end.stages), end.last.action) == (11, {"check": 11}, ActionId(11))
    assert end.message.startswith("the search cannot go on: the last 11 children died of one cause")
    assert "limits.check_s" in end.may_help


def test_a_cause_is_a_stage_and_an_exception_whatever_the_reason():
    family = Family(2)
    for number in range(11):
        family.dies(f"SyntaxError: no (a.py, line {number})", parent=number % 2, cause="SyntaxError")
    assert family.end().times == 11
    family.dies(cause="ImportError")
    family.die(9, cause="SyntaxError")
    assert family.end() is None


def test_a_seed_alone_is_given_up_when_it_may_have_no_child_any_more():
    family = Family()
    family.die(BARREN - 1)
    assert family.end() is None
    family.dies()
    assert (family.end().times, family.end().stages) == (BARREN, {"check": BARREN})


def test_a_parent_whose_children_die_only_loses_its_turn():
    family = Family(2)
    family.die(30)
    assert family.end() is None


@pytest.mark.parametrize("in_a_row", [3, 5])
def test_the_number_is_a_setting(in_a_row):
    family = Family()
    family.die(in_a_row - 1)
    assert family.end(in_a_row) is None
    family.dies()
    assert family.end(in_a_row).times == in_a_row
    family.die(20)
    assert family.end(0) is None


def test_deaths_of_several_causes_end_only_a_search_without_any_child():
    family = Family(2)
    for parent in (0, 1):
        family.die(5, parent=parent)
        family.die(5, parent=parent, stage="improve", reason="crashes")
    assert not fertile(family.tree).any()
    assert family.end() is None
    alone = Family()
    alone.die(7)
    alone.die(3, stage="improve", reason="crashes")
    assert alone.end().stages == {"check": 7, "improve": 3}
    assert "no child was ever born, all 10 died (7 check, 3 improve)" in alone.end().message
    assert alone.end().may_help == MAY_HELP["check"]


@pytest.mark.parametrize("stage", sorted(LUCK))
def test_the_luck_of_a_search_ends_one_only_where_no_child_was_ever_born(stage):
    family = Family(2)
    family.die(10, stage=stage)
    family.die(10, stage=stage, parent=1)
    assert family.end() is None
    alone = Family()
    alone.die(10, stage=stage)
    assert alone.end().stages == {stage: 10}


def test_a_birth_a_child_that_waits_and_a_persons_no_are_no_deaths_in_a_row():
    family = Family(2)
    family.die(10)
    family.born(1)
    family.dies(parent=1)
    assert family.end() is None
    family.die(9, parent=2)
    action = family.tree.next_action
    family.add(ActionStarted(action, Expand((AgentId(1),), "self-edit")))
    family.add(ChildProposed(action, Born((AgentId(1),), "self-edit", CommitId("c" * 40), "")))
    family.dies(parent=1)
    assert len(family.tree.deaths) == 1
    family.dies(parent=1, stage="rejected", decided="a person")
    assert len(family.tree.deaths) == 1


def test_a_session_begins_with_no_death_and_after_a_dead_end_with_fertile_agents():
    family = Family()
    family.die(10)
    family.add(RunStopped(Reason.CANNOT_GO_ON.value))
    assert family.end()
    family.add(RunStarted(Budget(evaluations=100), TASKS, resumed=True))
    assert family.end() is None
    assert fertile(family.tree).all()
    family.die(9)
    assert family.end() is None
    family.dies()
    assert family.end()


@pytest.mark.parametrize(("changed", "again"), [("limits", True), ("models", True), ("benchmark", False)])
def test_a_change_of_settings_lets_barren_agents_try_again(changed, again):
    family = Family()
    family.die(10)
    family.add(RunStopped(Reason.GOAL.value))
    family.add(RunStarted(Budget(evaluations=200), TASKS, resumed=True))
    assert not fertile(family.tree).any()
    family.add(RunChanged({changed: {"check_s": 60.0}}))
    assert fertile(family.tree).all() == again


def stages_raised():
    """Every stage that an ``AgentFault`` is raised with where children are made and vetted."""
    found = set()
    for path in itertools.chain(
        *((ROOT / "dgm" / name).rglob("*.py") for name in ("meta", "search", "sandboxes"))
    ):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "AgentFault":
                first = node.args[0]
                found.add(first.value if isinstance(first, ast.Constant) else "novelty")
    return found


def test_every_stage_has_words_that_name_settings():
    assert stages_raised() - NO_FAULT_OF_A_CHILD <= set(MAY_HELP)
    sections = Settings.model_fields
    for words in (*MAY_HELP.values(), UNKNOWN):
        for section, name in re.findall(r"\b([a-z]+)\.([a-z_]+)\b", words.replace("agent.toml", "")):
            assert name in sections[section].annotation.model_fields, words


@pytest.mark.starts_processes
def test_status_tells_what_children_died_of_and_what_the_last_one_printed(tmp_path):
    with Run.create(
        tmp_path / "run", {"settings": Settings().model_dump(mode="json"), "sandbox": "none"}
    ) as run:
        run.append(RunStarted(Budget(evaluations=100), TASKS))
        commit = run.repository.commit({"agent.py": Entry(b"seed")}, ())
        run.append(run.birth(Born((), "seed", commit, ""), ActionId(0)))
        printed = run.traces.put(b"one\n\n\x1b[31mKeyError\n", limit=None)
        cost = Cost(traces={"output": printed, "log": printed})
        for number in range(1, BARREN + 1):
            run.append(ActionStarted(ActionId(number), Expand((AgentId(0),), "self-edit")))
            dead = Stillborn((AgentId(0),), "self-edit", "check", f"the self-check exits {number}", cost)
            run.append(AgentStillborn(ActionId(number), dead))
        assert RunView.load(run).dead_end is None
        run.append(RunStopped(Reason.CANNOT_GO_ON.value))
        view = RunView.load(run)
    assert view.state == "cannot go on"
    assert view.dead_end.times == BARREN
    assert view.dead_end.output == ("one", "\x1b[31mKeyError")
    assert "limits.check_s" in view.dead_end.may_help
