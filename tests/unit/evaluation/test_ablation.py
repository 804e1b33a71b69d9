"""The effect of a part, from the verdicts with it and without it."""

import pytest

from dgm.domain import AgentId, Evaluation, TaskId, Usage, Verdict
from dgm.evaluation.ablation import Effect, fewest_tasks, judge_parts, tasks_to_show
from dgm.evaluation.schedule import AgentResult
from dgm.stats import mcnemar


def result(*attempts):
    """Verdicts of an agent: for each attempt a text with a letter for each task (+, -, or . without a verdict)."""
    graded = [
        Evaluation(
            AgentId(0),
            TaskId(str(task)),
            attempt,
            Verdict.RESOLVED if mark == "+" else Verdict.UNRESOLVED,
            "",
        )
        for attempt, marks in enumerate(attempts)
        for task, mark in enumerate(marks)
        if mark != "."
    ]
    return AgentResult(AgentId(0), graded, {}, 0, Usage())


def judge(complete, **without):
    tokens = dict.fromkeys(without, 7)
    return {each.part: each for each in judge_parts(complete, without, tokens)}


def test_useful_harmful_and_useless_parts_are_told_apart():
    judged = judge(
        result("+" * 10 + "-" * 10),
        useful=result("-" * 20),
        useless=result("+" * 10 + "-" * 10),
        harmful=result("+" * 20),
    )
    assert {part: each.effect for part, each in judged.items()} == {
        "useful": Effect.HELPS,
        "useless": Effect.NOT_SHOWN,
        "harmful": Effect.HURTS,
    }
    assert judge(result("++++++++--"), part=result("-" * 10))["part"].effect is Effect.HELPS
    assert judge(result("+" * 30), part=result("+" * 20 + "-" * 10))["part"].effect is Effect.HELPS
    useful = judged["useful"]
    assert (useful.with_part, useful.without_part, useful.pairs, useful.tasks) == (10, 0, 20, 20)
    assert (useful.difference, useful.tokens) == (0.5, 7)
    assert useful.p == pytest.approx(3 * mcnemar(0, 10))
    assert useful.interval[0] > 0.2


def test_the_same_difference_is_no_effect_among_more_parts():
    same = result("+" * 7)
    alone = judge(same, part=result("-" * 7))
    among = judge(same, part=result("-" * 7), **{f"other{number}": same for number in range(9)})
    assert (alone["part"].effect, among["part"].effect) == (Effect.HELPS, Effect.NOT_SHOWN)
    assert among["part"].p == pytest.approx(10 * alone["part"].p)


def test_only_attempts_with_both_verdicts_count_and_a_task_counts_once():
    judged = judge(result("++-.", "+++."), part=result("+-.+", "--.+"))["part"]
    # Task 0: one of two attempts; task 1: both; the others have no pair.
    assert (judged.tasks, judged.pairs, judged.with_part, judged.without_part) == (2, 4, 4, 1)
    assert judged.difference == pytest.approx((0.5 + 1.0) / 2)
    assert judged.effect is Effect.NOT_SHOWN


def test_a_task_weighs_as_much_as_its_attempts_differ():
    judged = judge(result("++-", "++-"), part=result("--+", "---"))["part"]
    # 2 + 2 - 1: half of all signs give a sum of 3 or more, or -3 or less.
    assert judged.p == pytest.approx(0.5)


def test_without_any_pair_nothing_is_shown():
    judged = judge(result("..."), part=result("+++"))["part"]
    assert (judged.effect, judged.p, judged.interval) == (Effect.NOT_SHOWN, 1.0, (-1.0, 1.0))


@pytest.mark.parametrize("parts", [1, 3, 10, 25])
def test_fewer_than_the_fewest_tasks_can_show_nothing(parts):
    fewest = fewest_tasks(parts)
    assert parts * mcnemar(0, fewest) <= 0.05 < parts * mcnemar(0, fewest - 1)


def test_more_parts_take_more_tasks():
    assert fewest_tasks(1) < tasks_to_show(1) < tasks_to_show(5)
