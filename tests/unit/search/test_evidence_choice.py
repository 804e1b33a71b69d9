"""What an operator may see is drawn once, from the log up to that moment, and drawn the same again."""

import json
from collections import Counter
from random import Random

import pytest

from dgm.archive.events import ActionStarted, RunStarted, TaskGraded
from dgm.archive.run import Run, evaluations_of
from dgm.config import Settings
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    Cost,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    Finding,
    FindingKind,
    Tally,
    Task,
    TaskId,
    Verdict,
)
from dgm.meta.issue import ENTRIES
from dgm.protocols import Needs
from dgm.search.prepare import CASES, choose_evidence, read_brief

pytestmark = pytest.mark.slow

TASKS = tuple(TaskId(f"task-{n:02}") for n in range(12))
YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        made.append(RunStarted(Budget(), TASKS))
        born(made)
        yield made


def born(run, *parents):
    number = len(run.tree.agents)
    commits = [run.tree.agents[parent].commit for parent in parents]
    commit = run.repository.commit({"agent.py": Entry(b"%d" % number)}, commits)
    run.append(run.birth(Born(tuple(map(AgentId, parents)), "op", commit, "why"), ActionId(0)))


def grade(run, agent, verdicts, **traces):
    """One evaluation for each character: ``+`` resolved, ``-`` unresolved, a blank for a task that is not tried."""
    found = []
    for task, sign in zip(TASKS, verdicts, strict=False):
        if sign == " ":
            continue
        action = run.tree.next_action
        run.append(ActionStarted(action, Evaluate(AgentId(agent), task)))
        cost = Cost(traces={name: run.traces.put(data) for name, data in traces.items()})
        verdict = YES if sign == "+" else NO
        run.append(TaskGraded(action, Evaluation(AgentId(agent), task, 0, verdict, "r", 0.0, cost)))
        found.append(action)
    return found


def choose(run, what=None, needs=None, action=None, seed=0, **sections):
    settings = Settings(seed=seed, **sections)
    what = what or Expand((AgentId(0),), "op")
    return choose_evidence(
        run, run.tree, ActionId(action or run.tree.next_action), what, needs or Needs(), settings
    )


def as_it_was(run, parent, seed):
    """The parent's cases by a draw of its own."""
    mine = evaluations_of(run, AgentId(parent))
    rng = Random(f"{seed}/{run.tree.next_action}/evidence")
    shown = []
    for verdict, most in ((NO, 6), (YES, 1)):
        fitting = [action for action, evaluation in mine.items() if evaluation.verdict is verdict]
        shown += rng.sample(fitting, min(most, len(fitting)))
    return tuple(sorted(shown))


@pytest.mark.parametrize("seed", range(5))
def test_the_parents_own_cases_are_those_that_were_drawn_before(run, seed):
    mine = grade(run, 0, "-+--+----+--")
    born(run, 0)
    grade(run, 1, "+-+-")
    wide = choose(run, seed=seed)
    assert tuple(action for action in wide.evidence if action in mine) == as_it_was(run, 0, seed)
    assert wide.shown == (1,)


def test_what_came_after_the_first_start_is_not_seen(run):
    grade(run, 0, "--+")
    action, first = run.tree.next_action, choose(run)
    run.append(ActionStarted(action, first))
    late = grade(run, 0, "   -+")
    again = choose(run, action=action)
    assert again == first
    assert not {*late} & {*again.evidence}


def test_the_nearest_ancestors_are_shown_and_then_the_best_of_the_others(run):
    for parent in (0, 1, 2, 3, 0, 0, 0):
        born(run, parent)
    for agent, verdicts in ((0, "+---"), (5, "+--"), (6, "++++"), (7, "+++-")):
        grade(run, agent, verdicts)
    shown = choose(run, Expand((AgentId(4),), "op"), evidence={"ancestors": 2, "others": 2}).shown
    assert shown == (3, 2, 6, 7)
    assert choose(run, Expand((AgentId(4),), "op"), evidence={"ancestors": 0, "others": 0}).shown == ()


def test_of_two_parents_neither_is_shown_beside_them_and_both_have_cases(run):
    for parent in (0, 1, 0):
        born(run, parent)
    first, second, third = (grade(run, agent, "+-") for agent in (2, 3, 1))
    chosen = choose(run, Expand((AgentId(2), AgentId(3)), "op"))
    assert chosen.shown == (1, 0)
    assert {*first, *second, *third} == {*chosen.evidence}


def test_relatives_that_solve_what_the_parent_does_not_come_first(run):
    for _ in range(4):
        born(run, 0)
    grade(run, 0, "+++---")
    grade(run, 1, "+++---")
    better = grade(run, 2, "------")
    better = grade(run, 3, "---++-")
    grade(run, 4, "---+--")
    chosen = choose(run, needs=Needs(relatives=2), evidence={"others": 0, "failures": 6})
    assert chosen.shown == (3, 4)
    assert {better[3], better[4]} <= {*chosen.evidence}


def test_of_each_agent_shown_a_few_cases_are(run):
    born(run, 0)
    grade(run, 0, "-" * 12)
    theirs = grade(run, 1, "++++++------")
    chosen = choose(run)
    assert len({*theirs} & {*chosen.evidence}) == CASES


def test_members_of_the_archive_are_the_best_and_the_most_different_ones(run):
    for _ in range(5):
        born(run, 0)
    grade(run, 0, "++++++------")
    grade(run, 1, "+++++++-----")
    grade(run, 2, "++++++------")
    grade(run, 3, "------+++---")
    grade(run, 4, "---------+++")
    grade(run, 5, "+++++-------")
    chosen = choose(run, needs=Needs(archive=4), evidence={"others": 0})
    assert chosen.shown[:2] == (1, 2)
    assert {*chosen.shown[2:]} == {3, 4}


def test_an_overview_shows_the_best_and_the_newest_agents_in_turn(run):
    for _ in range(5):
        born(run, 0)
    for agent, verdicts in enumerate(("+--", "++++", "-", "+++", "--")):
        grade(run, agent, verdicts)
    assert choose(run, needs=Needs(overview=3)).shown == (1, 4, 3)
    assert choose(run, Expand((AgentId(4),), "op"), Needs(overview=9)).shown == (0, 1, 3, 2)


def test_an_overview_is_of_the_moment_when_the_expansion_was_first_started(run):
    born(run, 0)
    grade(run, 0, "-")
    grade(run, 1, "-+")
    needs, action, what = Needs(overview=3), run.tree.next_action, Expand((AgentId(1),), "op")
    run.append(ActionStarted(action, what))
    grade(run, 0, " ++")
    files = read_brief(run, Problems(), action, what, Settings().evidence, needs).evidence
    titles, *rows = (line.split("\t") for line in files["archive.tsv"].data.decode().splitlines())
    # The child's rate is drawn from its parent's 1/3 to (1 + 2/3) / 4.
    assert [dict(zip(titles, row, strict=True)) for row in rows] == [
        {
            "agent": "1",
            "parents": "0",
            "operator": "op",
            "solved": "1",
            "evaluations": "2",
            "clade_solved": "1",
        }
        | {"clade_evaluations": "2", "clade_gain": "", "clade_expansions": "0", "stillborn_children": "0"}
        | {"tokens": "0", "usd": "0.0000", "change": "why"},
        {
            "agent": "0",
            "parents": "",
            "operator": "op",
            "solved": "0",
            "evaluations": "1",
            "clade_solved": "1",
        }
        | {
            "clade_evaluations": "3",
            "clade_gain": "+0.000",
            "clade_expansions": "1",
            "stillborn_children": "0",
        }
        | {"tokens": "0", "usd": "0.0000", "change": "why"},
    ]
    assert json.loads(files["budget.json"].data)["evaluations"] == {"used": 3, "limit": None, "left": None}
    assert b"- `archive.tsv` (" in files["README.md"].data
    assert "archive.tsv" not in read_brief(run, Problems(), action, what, Settings().evidence).evidence


def test_attempts_at_the_parents_tasks_are_shown_together_those_that_ended_otherwise_first(run):
    for _ in range(3):
        born(run, 0)
    own = grade(run, 0, "--+-")
    theirs = [grade(run, agent, verdicts) for agent, verdicts in ((1, "-"), (2, "-+"), (3, "- + +"))]
    narrow = {"others": 3, "failures": 0, "successes": 0}
    for seed in range(5):
        chosen = {*choose(run, needs=Needs(attempts=1), seed=seed, evidence=narrow).evidence}
        assert {own[1], theirs[1][1]} <= chosen
        assert len({*own} & chosen) == 1
    assert {*own[:3]} <= {*choose(run, needs=Needs(attempts=3), evidence=narrow).evidence}
    assert not {*own} & {*choose(run, evidence=narrow).evidence}


def entries(run, draws=600, **more):
    return Counter(
        (what.aim, what.case)
        for what in (
            choose(run, needs=Needs(failures=1, aims=ENTRIES), seed=seed, **more) for seed in range(draws)
        )
    )


def test_without_empty_patches_or_long_conversations_a_quarter_is_about_chance(run):
    failed = grade(run, 0, "--+", patch=b"a patch")
    found = entries(run)
    assert {case for aim, case in found if aim == "unresolved"} == {*failed[:2]}
    assert {aim for aim, _ in found} == {"unresolved", "stochastic"}
    # 600 draws of 1/4: 150 expected, sd 10.6; seeds are fixed, so this cannot fail by chance.
    assert 115 < found["stochastic", 0] < 185


def test_entries_have_the_shares_of_the_program_that_they_come_from(run):
    wrong = grade(run, 0, "-", patch=b"a patch")
    empty = grade(run, 0, " -", patch=b"")
    full = grade(run, 0, "  -", patch=b"p", circumstances=json.dumps({"context": True}).encode())
    found = entries(run)
    by_aim = Counter()
    for (aim, case), count in found.items():
        by_aim[aim] += count
        assert {"empty": [*empty], "context": [*full], "stochastic": [0]}.get(aim, [*wrong, *full]).count(
            case
        ) == 1
    expected = {"empty": 1 / 4, "stochastic": 3 / 16, "context": 9 / 64, "unresolved": 27 / 64}
    assert all(abs(by_aim[aim] / 600 - share) < 0.06 for aim, share in expected.items()), by_aim


def test_fewer_than_a_tenth_of_empty_patches_are_no_entry(run):
    grade(run, 0, "+++++++++++", patch=b"p")
    grade(run, 0, " " * 11 + "-", patch=b"")
    born(run, 0)
    assert {aim for aim, _ in entries(run, 100)} == {"unresolved", "stochastic"}


def test_the_case_is_always_among_the_evidence(run):
    grade(run, 0, "-" * 12, patch=b"")
    for seed in range(20):
        chosen = choose(run, needs=Needs(failures=1, aims=ENTRIES), seed=seed, evidence={"failures": 1})
        assert chosen.case == 0 or chosen.case in chosen.evidence


def test_an_aim_that_the_policy_has_chosen_stands_and_others_are_not_drawn(run):
    grade(run, 0, "--")
    assert (
        choose(run, Expand((AgentId(0),), "op", aim="context"), Needs(aims=("loop", "context"))).aim
        == "context"
    )
    assert choose(run, needs=Needs(aims=("loop", "tools"))).aim == ""
    born(run, 0)
    nothing = choose(run, Expand((AgentId(1),), "op"), Needs(failures=1, aims=ENTRIES))
    assert (nothing.aim, nothing.case) == ("", 0)


def test_a_parents_verdicts_are_those_of_its_first_attempts(run):
    grade(run, 0, "+-")
    for attempt, verdict in ((1, NO), (2, NO)):
        action = run.tree.next_action
        run.append(ActionStarted(action, Evaluate(AgentId(0), TASKS[0], attempt)))
        run.append(TaskGraded(action, Evaluation(AgentId(0), TASKS[0], attempt, verdict, "r")))
    action, what = run.tree.next_action, Expand((AgentId(0),), "op")
    run.append(ActionStarted(action, what))
    (parent,) = read_brief(run, None, action, what, Settings().evidence).parents
    assert parent.verdicts == {TASKS[0]: YES, TASKS[1]: NO}
    assert parent.own == Tally(1, 3)


def test_probes_are_tasks_that_every_parent_has_always_resolved(run):
    for parent in (0, 0):
        born(run, parent)
    grade(run, 1, "+++-")
    grade(run, 2, " ++-+")
    action = run.tree.next_action
    run.append(ActionStarted(action, Evaluate(AgentId(1), TASKS[1], 1)))
    run.append(TaskGraded(action, Evaluation(AgentId(1), TASKS[1], 1, NO, "r")))
    both = Expand((AgentId(1), AgentId(2)), "op")
    assert choose(run, both).probes == (TASKS[2],)
    assert {*choose(run, Expand((AgentId(1),), "op")).probes} == {TASKS[0], TASKS[2]}
    assert len(choose(run, Expand((AgentId(2),), "op"), vetting={"probes": 1}).probes) == 1
    assert choose(run, both, vetting={"probes": 0}).probes == ()


def test_what_a_cheat_did_is_no_evidence(run):
    honest = grade(run, 0, "-+-")
    cheat = run.tree.next_action
    run.append(ActionStarted(cheat, Evaluate(AgentId(0), TASKS[5])))
    found = (Finding(FindingKind.CANARY, "took it"),)
    run.append(TaskGraded(cheat, Evaluation(AgentId(0), TASKS[5], 0, YES, "r", findings=found)))
    born(run, 0)
    commit = run.repository.commit({"agent.py": Entry(b"cheat")}, [run.tree.agents[0].commit])
    in_edit = (Finding(FindingKind.CHECKS_EVADED, "a hook", "agent.py:1"),)
    run.append(run.birth(Born((AgentId(0),), "op", commit, "why", findings=in_edit), ActionId(0)))
    grade(run, 1, "+")
    grade(run, 2, "++++")
    what = choose(run, evidence={"others": 2})
    assert cheat not in what.evidence
    assert set(honest) <= set(what.evidence)
    assert what.shown == (1,)
    run.append(ActionStarted(run.tree.next_action, what))
    action = ActionId(run.tree.next_action - 1)
    brief = read_brief(run, Problems(), action, what, Settings().evidence)
    assert (brief.parents[0].own.n, TASKS[5] in brief.parents[0].verdicts) == (3, False)
    assert b"left out because an agent cheated in them: 1." in brief.evidence["README.md"].data


class Problems:
    def task(self, task):
        return Task(task, "made-up", f"mend {task}", "python", "/work/t", 60)


def test_a_group_pools_the_cases_of_all_its_members(run):
    for _ in range(3):
        born(run, 0)
    own = grade(run, 1, "-+")
    partners = grade(run, 2, "---------+++")
    grade(run, 3, "++++++++++++")
    alone = choose(run, Expand((AgentId(1),), "op"), evidence={"ancestors": 0, "others": 0})
    assert {*alone.evidence} == {*own}
    what = Expand((AgentId(1),), "op", group=(AgentId(2), AgentId(1)))
    pooled = choose(run, what, evidence={"ancestors": 0, "others": 1})
    assert (pooled.group, pooled.shown) == ((2, 1), (2, 3))
    of_partner = Counter(partners.index(action) < 9 for action in pooled.evidence if action in partners)
    assert of_partner[True] >= 6 and of_partner[False] >= 1
    assert {*own} <= {*pooled.evidence}


def test_an_operator_that_needs_a_success_sees_one_of_each_agent_that_has_any(run):
    born(run, 0)
    seeds = grade(run, 0, "+-----------")
    grade(run, 1, " -")
    what = Expand((AgentId(1),), "op")
    seen = [seeds[0] in choose(run, what, Needs(successes=1), seed=seed).evidence for seed in range(10)]
    assert all(seen)
    assert not all(seeds[0] in choose(run, what, seed=seed).evidence for seed in range(10))


def test_an_operator_may_want_more_ancestors_than_the_settings_show(run):
    for parent in range(4):
        born(run, parent)
        grade(run, parent, "-")
    what = Expand((AgentId(4),), "op")
    assert choose(run, what, Needs(ancestors=3), evidence={"ancestors": 1, "others": 0}).shown == (3, 2, 1)
