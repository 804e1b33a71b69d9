"""Studies: performed by several processes, saved as CSV, and compared in pairs."""

import os
import signal
from dataclasses import replace

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.simulation import study as module
from dgm.simulation.measures import MEAN, reached, standings
from dgm.simulation.study import Study, carry_out, code_version, perform_all
from dgm.simulation.trial import SHARES, Trial
from tests.support.studies import STUDY, result


def silent(done, total):
    pass


def results_by(final):
    """Results whose final score is a function of the trial."""
    return {trial: result(final(trial)) for trial in STUDY.trials()}


def rows_of(study, results, reference="hgm"):
    return {(row.policy, row.family): row for row in standings(study, results, reference)}


@pytest.mark.slow
@pytest.mark.starts_processes
def test_processes_give_the_same_results_as_one():
    trials = list(STUDY.trials())[:2]
    assert dict(perform_all(trials, 1)) == dict(perform_all(trials, 2))
    with pytest.raises(UserError, match="unknown family"):
        list(perform_all([Trial("hgm", "nix", 1)] * 2, 2))


@pytest.mark.slow
@pytest.mark.starts_processes
def test_a_process_that_dies_is_an_error_and_not_a_hang(monkeypatch):
    monkeypatch.setattr(module, "_perform", kill_own_process)
    with pytest.raises(Infrastructure, match="died"):
        list(perform_all(list(STUDY.trials()), 2))


def kill_own_process(trial):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_an_interrupted_study_continues_from_its_file(tmp_path):
    file, counts = tmp_path / "trials.csv", []
    first = carry_out(STUDY, 1, silent, file)
    content = file.read_bytes()
    assert carry_out(STUDY, 1, lambda *numbers: counts.append(numbers), file) == first
    assert (counts, file.read_bytes()) == ([(0, 0)], content)
    file.write_bytes(content[:-40])
    assert carry_out(STUDY, 1, lambda *numbers: counts.append(numbers), file) == first
    assert (counts[1:], file.read_bytes()) == ([(0, 1), (1, 1)], content)


@pytest.mark.slow
def test_searches_of_other_code_are_performed_again(tmp_path):
    file, counts = tmp_path / "trials.csv", []
    study = Study(("random",), ("drift",), (0,), budget=20)
    carry_out(study, 1, silent, file)
    file.write_text(file.read_text().replace(code_version("random"), "0" * 16))
    carry_out(study, 1, lambda *numbers: counts.append(numbers), file)
    assert counts[-1] == (1, 1)
    assert len(file.read_text().splitlines()) == 3


def test_an_edited_plug_in_is_other_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    plug_in = tmp_path / "my_rules_for_versions.py"
    versions = set()
    for text in ("X = 1", "X = 2"):
        plug_in.write_text(text)
        code_version.cache_clear()
        versions.add(code_version("my_rules_for_versions:X"))
    assert len(versions | {code_version("hgm")}) == 3


@pytest.mark.parametrize("content", ["my notes", "my notes\n", ",".join(module.COLUMNS) + "\nx,hgm\n"])
def test_a_file_of_something_else_is_refused_and_unchanged(tmp_path, content):
    file = tmp_path / "notes.txt"
    file.write_text(content)
    with pytest.raises(UserError, match="notes"):
        carry_out(STUDY, 1, silent, file)
    assert file.read_text() == content


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0},
        {"expansion_cost": -1.0},
        {"workers": 0},
        {"workers": 257},
        {"failures": 1.0},
        {"families": ("nix",)},
    ],
)
def test_a_study_out_of_bounds_is_refused(wrong):
    with pytest.raises(UserError):
        replace(STUDY, **wrong)


def test_a_family_is_met_with_its_own_number_of_workers_unless_another_is_asked_for():
    crowd = "low-retention-crowd"
    assert STUDY.trial("hgm", crowd, 0).workers == 20
    assert STUDY.trial("hgm", "low-retention", 0).workers == 1
    assert replace(STUDY, workers=3).trial("hgm", crowd, 0).workers == 3


def test_differences_are_paired_and_ties_count_half():
    shift = {"drift": 0.1, "broken": 0.0}
    rows = rows_of(
        STUDY, results_by(lambda t: 0.3 + 0.2 * t.seed + (shift[t.family] if t.policy == "random" else 0.0))
    )
    assert rows["random", "drift"].difference == pytest.approx(0.1)
    assert rows["random", "drift"].won == 1.0
    assert rows["random", "broken"].won == 0.5
    mean = rows["random", MEAN]
    assert mean.difference == pytest.approx(0.05)
    assert (mean.difference_low, mean.difference_high) == (pytest.approx(0.05), pytest.approx(0.05))
    assert (mean.won, mean.won_low, mean.won_high, mean.worlds) == (0.75, 0.75, 0.75, 2)
    assert (mean.higher, mean.equal, mean.lower) == (2, 2, 0)
    assert rows["hgm", MEAN].difference == 0.0


def test_the_share_won_has_an_interval_over_worlds():
    study = replace(STUDY, policies=("hgm", "random"), families=("drift",), worlds=tuple(range(40)))
    results = {trial: result(0.3) for trial in study.trials()}
    for world in range(40):
        # 24 won, 6 tied and 10 lost: 67.5 % with ties half.
        results[study.trial("random", "drift", world)] = result(
            0.4 if world < 24 else 0.3 if world < 30 else 0.2
        )
    row = rows_of(study, results)["random", "drift"]
    assert (row.higher, row.equal, row.lower, row.won) == (24, 6, 10, pytest.approx(0.675))
    # The standard error of the mean of these forty values is 0.0674.
    assert row.won_low == pytest.approx(0.675 - 1.96 * 0.0674, abs=0.02)
    assert row.won_high == pytest.approx(0.675 + 1.96 * 0.0674, abs=0.02)
    single = rows_of(replace(study, worlds=(0,)), results)["random", "drift"]
    assert (single.won_low, single.difference_low) == (None, None)


def test_the_area_under_a_straight_curve_is_its_middle():
    assert result(0.4, root=0.2, curve=[0.2 + 0.2 * share for share in SHARES]).area == pytest.approx(0.3)


def test_regret_against_the_oracle_needs_the_oracle():
    assert rows_of(STUDY, results_by(lambda _: 0.3))["hgm", "drift"].oracle_regret is None
    study = replace(STUDY, policies=("hgm", "oracle"))
    results = {trial: result(0.8 if trial.policy == "oracle" else 0.3) for trial in study.trials()}
    assert rows_of(study, results)["hgm", "drift"].oracle_regret == pytest.approx(0.5)


def test_stuck_at_the_root_differs_from_rightly_staying():
    stuck, rightly = (result(0.2, recommended=0, best=best) for best in (0.3, 0.2))
    assert stuck.stuck
    assert not any(r.stuck for r in (rightly, result(0.3, best=0.5), result(0.3, recommended=1, best=0.5)))
    study = replace(STUDY, policies=("hgm",), families=("drift",), worlds=(0, 1, 2, 3))
    results = dict(zip(study.trials(), (stuck, rightly, result(0.3), result(0.3)), strict=True))
    assert rows_of(study, results)["hgm", "drift"].stuck == 0.25


def test_speed_compares_when_a_quality_is_reached():
    study = replace(STUDY, families=("drift",), worlds=(0,))
    slow = [0.2 + 0.2 * share for share in SHARES]
    fast = [0.2 + min(0.8 * share, 0.4) for share in SHARES]
    results = {
        study.trial("hgm", "drift", 0): result(slow[-1], curve=slow),
        study.trial("random", "drift", 0): result(fast[-1], curve=fast),
    }
    rows = rows_of(study, results)
    assert (rows["hgm", "drift"].speed, rows["random", "drift"].speed) == pytest.approx((1.0, 4.0))
    assert rows_of(study, results, "random")["hgm", "drift"].speed == pytest.approx(0.25)


def test_where_a_curve_reaches_a_goal():
    points = [(0.0, 0.1), (10.0, 0.2), (20.0, 0.4)]
    assert reached(points, 0.3) == pytest.approx(15.0)
    assert reached(points, 0.05) == 0.0
    assert reached(points, 0.5) is None


def test_trials_that_were_cut_short_are_counted():
    results = results_by(lambda _: 0.5)
    cut = STUDY.trial("random", "drift", 1)
    results[cut] = replace(results[cut], ended="infrastructure failed")
    rows = rows_of(STUDY, results)
    assert [rows[key].cut_short for key in (("random", "drift"), ("random", MEAN), ("hgm", MEAN))] == [
        0.5,
        0.25,
        0.0,
    ]
