"""Runs held against each other: who is paired with whom, differences, curves, and what is refused."""

import csv
import io
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from dgm.experiments.naming import NamedRuns, find_runs
from dgm.experiments.sweep_file import read_sweep
from dgm.experiments.sweep_folder import SweepFolder
from dgm.experiments.sweep_plan import plan_runs

from dgm.analysis.best import best_of
from dgm.archive.run import Run
from dgm.cli.compare_rows import comparison_lines
from dgm.comparison.curves import COLUMNS, CurveGroup, curve_csv, curve_picture, mean_curve
from dgm.comparison.grouping import group
from dgm.comparison.moments import recommendations
from dgm.comparison.notes import comparison_notes
from dgm.comparison.pairs import HOLDOUT, SEARCH, pair_seeds, pair_tasks
from dgm.comparison.record import comparison_record
from dgm.comparison.subjects import check_comparable, read_subject
from dgm.config import Settings
from dgm.domain import Tally, Verdict
from dgm.errors import UserError
from dgm.show.spans import plain_text
from dgm.stats import lower_bound
from tests.support.runs.made import TASKS, make_run

pytestmark = pytest.mark.slow


def settings(policy="hgm", seed=1, **more):
    return Settings.model_validate({"model": "offline", "policy": {"name": policy}, "seed": seed, **more})


@pytest.fixture
def subject(tmp_path):
    """Makes a run and reads it."""

    def make(name, own=None, verdicts=("++-", "+++"), variant=None, **more):
        folder = make_run(tmp_path / name, own or settings(), verdicts, **more)
        with Run.open(folder) as run:
            return read_subject(run, variant)

    return make


def pairs_of(subjects, by):
    return {each.measure: each for each in pair_seeds(group(subjects, by))}


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
    assert found.pairs == {("1",): (1.0, 0.75), ("2",): (0.25, 0.0)}
    assert found.mean == pytest.approx(-0.25)
    assert found.interval == pytest.approx((-0.25, -0.25))


def test_runs_are_held_against_each_other_after_as_many_evaluations(subject):
    runs = [subject("a", settings("hgm"), ["+-------"]), subject("b", settings("greedy"), ["+-"])]
    found = pairs_of(runs, "policy.name")
    assert found["rate on search tasks at 2 evaluations"].pairs == {("1",): (0.5, 0.5)}
    bound = lower_bound(Tally(1, 1))
    assert found["lower bound at 2 evaluations"].pairs == {("1",): (bound, bound)}
    assert found["lower bound at 2 evaluations"].interval is None


def test_other_settings_pair_where_a_seed_is_not_enough(subject):
    runs = [
        subject(f"{policy}{workers}", settings(policy, workers=workers), [verdicts])
        for policy, workers, verdicts in (
            ("hgm", 1, "+-"), ("hgm", 2, "++"), ("greedy", 1, "--"), ("greedy", 2, "+-")
        )
    ]  # fmt: skip
    grouping = group(runs, "policy")
    assert grouping.paired_by == ("seed", "workers")
    (found,) = [each for each in pair_seeds(grouping) if each.measure.startswith("rate")]
    assert found.pairs == {("1", "1"): (0.5, 0.0), ("1", "2"): (1.0, 0.5)}


def test_two_runs_that_nothing_tells_apart_are_refused(subject):
    runs = [subject("one"), subject("two"), subject("other", settings("greedy"))]
    with pytest.raises(UserError, match=r"one and two have the same policy\.name and the same seed"):
        group(runs, "policy")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("polcy", r"no such setting \(did you mean 'policy'"),
        ("budget", "a section of the settings; name one of it, such as budget.evaluations"),
        ("variant", "run a is of no sweep"),
    ],
)
def test_a_setting_that_is_none_is_refused(subject, by, said):
    with pytest.raises(UserError, match=said):
        group([subject("a"), subject("b", settings("greedy"))], by)


def test_without_groups_the_best_agents_are_compared_task_by_task(subject):
    runs = [
        subject("a", verdicts=["++--"]),
        subject("b", verdicts=["+-+-++"]),
        subject("c", verdicts=["++--"]),
    ]
    first, second = pair_tasks(runs)
    assert (first.tasks, first.found.first, first.found.second) == (SEARCH, Tally(2, 2), Tally(2, 2))
    assert (first.found.gained, first.found.lost) == ((TASKS[2],), (TASKS[1],))
    assert (second.second.name, second.found.gained, second.found.lost) == ("c", (), ())


def test_holdout_tasks_are_compared_where_both_were_examined(subject, tmp_path):
    good = {TASKS[0]: Verdict.RESOLVED, TASKS[1]: Verdict.RESOLVED}
    bad = {TASKS[0]: Verdict.RESOLVED, TASKS[1]: Verdict.UNRESOLVED}
    runs = [replace(subject("a"), holdout=bad), replace(subject("b", settings("greedy")), holdout=good)]
    assert [each.tasks for each in pair_tasks(runs)] == [HOLDOUT, SEARCH]
    assert pairs_of(runs, "policy")["holdout rate"].pairs == {("1",): (0.5, 1.0)}


def test_runs_on_different_suites_are_refused(subject):
    runs = [subject("a"), subject("b", suite="2")]
    with pytest.raises(UserError, match="a and b were judged by different suites"):
        check_comparable(runs)


def test_an_evaluation_is_no_search(tmp_path):
    with Run.open(make_run(tmp_path / "holdout")) as run, pytest.raises(UserError, match="not a search"):
        read_subject(run, None)


def test_a_curve_is_what_the_policy_recommended_then(tmp_path):
    folder = make_run(tmp_path / "a", settings("lineage"), ["+-+-", "++", "-"])
    with Run.open(folder) as run:
        points = recommendations(run)
        best = best_of(run)
        assert points[-1].agent == best
        assert points[-1].lower == lower_bound(run.tree.own(best))
        assert [point.evaluations for point in points] == [1, 2, 3, 4, 5, 6, 7, 7]
        few = recommendations(run, most=2)
    assert [point.evaluations for point in few] == [4, 7]
    assert few[-1] == points[-1]


def test_the_table_has_run_policy_seed_and_is_what_the_curves_are(subject):
    runs = [subject("a", settings("hgm", 5), ["+-"], usd=0.25), subject("b", settings("greedy", 6), ["++"])]
    groups = [CurveGroup(each.name, [each]) for each in runs]
    data, count = curve_csv(groups, grouped=False)
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert list(rows[0]) == [name for name, _ in COLUMNS]
    assert len(rows) == count == sum(len(each.curve) for each in runs)
    assert {(row["run"], row["policy"], row["seed"]) for row in rows} == {
        ("a", "hgm", "5"),
        ("b", "greedy", "6"),
    }
    last = [row for row in rows if row["run"] == "a"][-1]
    assert (last["evaluations"], float(last["usd"]), last["score"]) == ("2", 0.5, "0.5")


def test_the_picture_is_svg_with_each_run_and_the_means(subject):
    runs = [subject(f"r{seed}", settings("hgm", seed), ["+-+"], usd=0.1) for seed in (1, 2)]
    alone = subject("<x>&", settings("greedy"), ["++"])
    drawn = curve_picture([CurveGroup("hgm", runs), CurveGroup("greedy & co", [alone])])
    root = ElementTree.fromstring(drawn.file("run a, policy b, seed 1"))
    texts = [each.text or "" for each in root.iter()]
    assert {"evaluations", "USD spent", "hgm (2 runs)", "greedy & co"} <= set(texts)
    assert "run a, policy b, seed 1" in texts
    assert len([each for each in root.iter() if each.tag.endswith("path")]) == 2 * (2 + 1 + 1)


def test_a_mean_goes_as_far_as_every_run(subject):
    runs = [subject("a", settings(seed=1), ["++++"]), subject("b", settings(seed=2), ["--"])]
    mean = mean_curve(runs, lambda point: point.evaluations)
    assert [place for place, _ in mean] == [1, 2]
    assert mean[-1][1] == pytest.approx((lower_bound(Tally(2, 0)) + lower_bound(Tally(0, 2))) / 2)


def test_runs_without_a_verdict_are_named_and_break_nothing(subject):
    runs = [subject("a", settings("hgm"), ["+"]), subject("b", settings("greedy"), [], reason="")]
    grouping = group(runs, "policy")
    seeds = pair_seeds(grouping)
    notes = comparison_notes(NamedRuns([], ["c"]), runs, grouping)
    text = "\n".join(plain_text(line) for line in comparison_lines(runs, grouping, [], seeds, notes))
    assert "no pair: no seed has a run with a verdict in both groups" in text
    assert "without a verdict, so in no curve and no pair by score: b" in text
    assert "not over yet, as they stand now: b" in text
    assert "not begun yet and left out: c" in text
    record = comparison_record(runs, grouping, [], seeds, notes)
    assert [(run["run"], run["policy"], run["seed"]) for run in record["runs"]] == [
        ("a", "hgm", 1),
        ("b", "greedy", 1),
    ]
    curve_picture([CurveGroup("hgm", runs[:1]), CurveGroup("greedy", runs[1:])]).file()


def test_a_sweep_and_a_pattern_stand_for_their_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    file = tmp_path / "s.toml"
    file.write_text(
        '[sweep]\nseeds = 2\n[base]\nmodel = "offline"\n[grid]\n"policy.name" = ["hgm", "greedy"]\n'
    )
    runs = plan_runs(read_sweep(file))
    folder = SweepFolder(tmp_path, "s")
    folder.lock().close()
    folder.write(file, runs)
    for run in runs[:3]:
        make_run(tmp_path / run.name, run.settings)
    found = find_runs(["s", "s-hgm-0"])
    assert [(each.folder.name, each.variant) for each in found.runs] == [
        ("s-hgm-0", "hgm"),
        ("s-greedy-0", "greedy"),
        ("s-hgm-1", "hgm"),
    ]
    assert found.not_begun == ["s-greedy-1"]
    assert [each.folder.name for each in find_runs(["s-*-0"]).runs] == ["s-greedy-0", "s-hgm-0"]
    with pytest.raises(UserError, match="no run fits 'x-\\*'"):
        find_runs(["x-*"])
    with pytest.raises(UserError, match="did you mean 's-hgm-"):
        find_runs(["s-hgm-9"])
