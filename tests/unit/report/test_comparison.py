"""Several runs compared: who is paired with whom, differences, curves, and what is refused."""

import csv
import io
from xml.etree import ElementTree

import pytest

from dgm.analysis.agents import best_of
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Tally, Verdict
from dgm.errors import UserError
from dgm.render.html.figures import COLUMNS, curve_table, draw_comparison, mean_curve
from dgm.render.report_text import render_comparison
from dgm.stats import lower_bound
from dgm.views.comparison import (
    check_comparable,
    compare_runs,
    find_runs,
    group_runs,
    pair_groups,
    pair_tasks,
    read_run,
)
from dgm.views.curve import list_recommendations
from dgm.views.values import TallyView
from tests.support.runs.made import TASKS, make_run

pytestmark = pytest.mark.slow


def settings(policy="hgm", seed=1, **more):
    return Settings.model_validate({"model": "offline", "policy": {"name": policy}, "seed": seed, **more})


@pytest.fixture
def subject(tmp_path):
    """Makes a run and reads it."""

    def make(name, own=None, verdicts=("++-", "+++"), **more):
        folder = make_run(tmp_path / name, own or settings(), verdicts, **more)
        with Run.open(folder) as run:
            return read_run(run)

    return make


def pairs_of(subjects, by):
    return {each.measure: each for each in pair_groups(group_runs(subjects, by))}


def values(pairs):
    return {tuple(pair.key.values()): (pair.first, pair.second) for pair in pairs.pairs}


def test_runs_of_one_seed_are_pairs_and_the_first_group_is_taken_off(subject):
    runs = [
        subject("a1", settings("hgm", 1), ["++++"]),
        subject("b2", settings("greedy", 2), ["----"]),
        subject("a2", settings("hgm", 2), ["+---"]),
        subject("b1", settings("greedy", 1), ["+++-"]),
        subject("b3", settings("greedy", 3), ["++++"]),
    ]
    found = pairs_of(runs, "policy")["rate on search tasks at 4 evaluations"]
    assert (found.first, found.second) == ("hgm", "greedy")
    assert values(found) == {("1",): (1.0, 0.75), ("2",): (0.25, 0.0)}
    assert found.mean == pytest.approx(-0.25)
    assert found.interval == pytest.approx((-0.25, -0.25))


def test_runs_are_held_against_each_other_after_as_many_evaluations(subject):
    runs = [subject("a", settings("hgm"), ["+-------"]), subject("b", settings("greedy"), ["+-"])]
    found = pairs_of(runs, "policy.name")
    assert values(found["rate on search tasks at 2 evaluations"]) == {("1",): (0.5, 0.5)}
    bound = lower_bound(Tally(1, 1))
    assert values(found["lower bound at 2 evaluations"]) == {("1",): (bound, bound)}
    assert found["lower bound at 2 evaluations"].interval is None


def test_other_settings_pair_where_a_seed_is_not_enough(subject):
    runs = [
        subject(f"{policy}{workers}", settings(policy, workers=workers), [verdicts])
        for policy, workers, verdicts in (
            ("hgm", 1, "+-"), ("hgm", 2, "++"), ("greedy", 1, "--"), ("greedy", 2, "+-")
        )
    ]  # fmt: skip
    grouping = group_runs(runs, "policy")
    assert grouping.paired_by == ("seed", "workers")
    (found,) = [each for each in pair_groups(grouping) if each.measure.startswith("rate")]
    assert values(found) == {("1", "1"): (0.5, 0.0), ("1", "2"): (1.0, 0.5)}


def test_two_runs_that_nothing_tells_apart_are_refused(subject):
    runs = [subject("one"), subject("two"), subject("other", settings("greedy"))]
    with pytest.raises(UserError, match=r"one and two have the same policy\.name and the same seed"):
        group_runs(runs, "policy")


@pytest.mark.parametrize(
    ("by", "problem"),
    [
        ("polcy", r"there is no setting polcy \(did you mean 'policy'"),
        ("budget", "a section of the settings; name a setting in it, such as budget.evaluations"),
    ],
)
def test_a_setting_that_is_none_is_refused(subject, by, problem):
    with pytest.raises(UserError, match=problem):
        group_runs([subject("a"), subject("b", settings("greedy"))], by)


def test_runs_of_several_seeds_are_grouped_by_the_one_setting_that_differs(subject):
    runs = [
        subject(f"{policy}{seed}", settings(policy, seed)) for policy in ("hgm", "greedy") for seed in (1, 2)
    ]
    assert compare_runs(runs, None).group_by == "policy.name"
    assert compare_runs(runs[:3], None).group_by is None


def test_without_groups_the_best_agents_are_compared_task_by_task(subject):
    runs = [
        subject("a", verdicts=["++--"]),
        subject("b", verdicts=["+-+-++"]),
        subject("c", verdicts=["++--"]),
    ]
    first, second = pair_tasks(runs)
    assert (first.tasks, first.first, first.pairs) == ("search tasks", "a", 4)
    assert (first.first_tally.resolved, first.second_tally.resolved) == (2, 2)
    assert (first.gained, first.lost) == ((TASKS[2],), (TASKS[1],))
    assert (second.second, second.gained, second.lost) == ("c", (), ())


def test_holdout_tasks_are_compared_if_both_runs_have_verdicts_on_them(subject):
    verdicts = (
        {TASKS[0]: Verdict.RESOLVED, TASKS[1]: last} for last in (Verdict.UNRESOLVED, Verdict.RESOLVED)
    )
    runs = [
        run.model_copy(update={"holdout_verdicts": holdout, "holdout": TallyView.of(tally)})
        for run, holdout, tally in zip(
            (subject("a"), subject("b", settings("greedy"))),
            verdicts,
            (Tally(1, 1), Tally(2, 0)),
            strict=True,
        )
    ]
    assert [pairs.tasks for pairs in pair_tasks(runs)] == ["holdout tasks", "search tasks"]
    assert values(pairs_of(runs, "policy")["holdout rate"]) == {("1",): (0.5, 1.0)}


def test_runs_on_different_suites_are_refused(subject):
    with pytest.raises(UserError, match="a and b were judged by different suites"):
        check_comparable([subject("a"), subject("b", suite="2")])


def test_an_evaluation_is_no_search(tmp_path):
    with Run.open(make_run(tmp_path / "holdout")) as run, pytest.raises(UserError, match="not a search"):
        read_run(run)


def test_a_curve_is_what_the_policy_recommended_then(tmp_path):
    folder = make_run(tmp_path / "a", settings("lineage"), ["+-+-", "++", "-"])
    with Run.open(folder) as run:
        points = list_recommendations(run)
        best = best_of(run)
        assert (points[-1].agent, points[-1].lower_bound) == (best, lower_bound(run.tree.own(best)))
        assert [point.evaluations for point in points] == [1, 2, 3, 4, 5, 6, 7, 7]
        few = list_recommendations(run, most=2)
    assert [point.evaluations for point in few] == [4, 7]
    assert few[-1] == points[-1]


def test_the_table_is_what_the_curves_are(subject):
    runs = [subject("a", settings("hgm", 5), ["+-"], usd=0.25), subject("=b", settings("greedy", 6), ["++"])]
    rows = list(csv.DictReader(io.StringIO(curve_table(compare_runs(runs, None)))))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == sum(len(run.curve) for run in runs)
    assert {(row["run"], row["policy"], row["seed"]) for row in rows} == {
        ("a", "hgm", "5"),
        ("'=b", "greedy", "6"),
    }
    last = [row for row in rows if row["run"] == "a"][-1]
    assert (last["evaluations"], float(last["usd"]), last["rate"]) == ("2", 0.5, "0.5")


def test_the_figure_has_each_run_and_the_means(subject):
    runs = [subject(f"r{seed}", settings("hgm", seed), ["+-+"], usd=0.1) for seed in (1, 2)]
    view = compare_runs([*runs, subject("<x>&", settings("greedy"), ["++"])], "policy")
    root = ElementTree.fromstring(draw_comparison(view).file("run a, policy b, seed 1"))
    texts = [part.text or "" for part in root.iter()]
    assert {"evaluations", "USD spent", "hgm (2 runs)", "greedy", "run a, policy b, seed 1", "<x>&"} <= {
        *texts
    }
    assert len([part for part in root.iter() if part.tag.endswith("path")]) == 2 * (2 + 1 + 1)


def test_a_mean_goes_as_far_as_every_run(subject):
    runs = [subject("a", settings(seed=1), ["++++"]), subject("b", settings(seed=2), ["--"])]
    mean = mean_curve(runs, lambda point: point.evaluations)
    assert [place for place, _ in mean] == [1, 2]
    assert mean[-1][1] == pytest.approx((lower_bound(Tally(2, 0)) + lower_bound(Tally(0, 2))) / 2)


def test_runs_without_a_verdict_are_named_and_break_nothing(subject):
    runs = [subject("a", settings("hgm"), ["+"]), subject("b", settings("greedy"), [], reason="")]
    view = compare_runs(runs, "policy")
    assert view.pairs_of_runs[0].mean is None
    assert "without a verdict, so in no curve and no pair by score: b" in view.notes
    assert "not finished, as they stand now: b" in view.notes
    document = view.model_dump(mode="json")
    assert [(run["run"], run["policy"], run["seed"]) for run in document["runs"]] == [
        ("a", "hgm", 1),
        ("b", "greedy", 1),
    ]
    assert not {"settings", "search_verdicts"} & {*document["runs"][0]}
    draw_comparison(view).file()


def test_names_and_patterns_stand_for_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    for name in ("s-hgm-0", "s-greedy-0", "s-hgm-1"):
        make_run(tmp_path / name)
    assert [folder.name for folder in find_runs(["s-hgm-1", "s-*"])] == ["s-hgm-1", "s-greedy-0", "s-hgm-0"]
    with pytest.raises(UserError, match="no run matches 'x-\\*'"):
        find_runs(["x-*"])
    with pytest.raises(UserError, match="s-hgm-0 is named twice"):
        find_runs(["s-hgm-0", "s-hgm-0"])
    with pytest.raises(UserError, match="did you mean 's-hgm-"):
        find_runs(["s-hgm-9"])


def test_a_comparison_on_a_terminal(subject, snapshot_text):
    runs = [
        subject(f"{policy}{seed}", settings(policy, seed), ["+-+", "-"])
        for policy in ("hgm", "greedy")
        for seed in (1, 2)
    ]
    tasks = [subject("one", verdicts=["++++"]), subject("two", verdicts=["+--+"])]
    snapshot_text(
        "comparison",
        render_comparison(compare_runs(runs, None)),
        render_comparison(compare_runs(tasks, None)),
    )
