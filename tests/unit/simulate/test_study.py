"""Studies: performed by several processes, compared in pairs, and drawn."""

import os
import signal
import threading
import xml.etree.ElementTree as ET
from dataclasses import replace
from importlib import import_module
from multiprocessing.context import SpawnProcess

import pytest

from dgm.errors import UserError
from dgm.policies.registry import POLICIES
from dgm.simulate.crew import performed
from dgm.simulate.curves import Curve, Panel, svg, ticks
from dgm.simulate.fingerprint import fingerprint
from dgm.simulate.measures import MEAN, Pairs, reached, standings
from dgm.simulate.study import Cell, Study
from dgm.simulate.tables import FEW, caution, family_table, family_tables, markdown, tables, warning
from dgm.simulate.trial import SHARES, Trial
from tests.support.studies import CELL, STUDY, result


def found_by(final):
    """Results whose final score is a function of policy, family and seed."""
    return {trial: result(final(trial)) for trial in STUDY.trials()}


def test_a_version_is_of_the_policy_and_of_the_family():
    versions = [
        ("hgm", "drift"),
        ("hgm+alpha=0.5", "drift"),
        ("random", "drift"),
        ("hgm", "broken"),
        ("oracle", "drift"),
    ]
    assert len({fingerprint(*version, 800) for version in versions}) == len(versions)


@pytest.mark.parametrize("policy", ["hgm", "adas"])
def test_the_rule_on_the_seeds_share_is_part_of_a_version_where_a_budget_is_so_small_that_it_may_be_met(
    policy,
):
    """60 tasks are 0.3 of 200 evaluations."""
    versions = [fingerprint(policy, "drift", budget) for budget in (800, 200, 199, 64)]
    assert versions[0] == versions[1] != versions[2] == versions[3]


@pytest.mark.slow
def test_processes_give_the_same_results_as_one(tmp_path):
    trials = list(STUDY.trials())[:4]
    alone, together = dict(performed(trials, 1)), dict(performed(trials, 2))
    assert {trial: together[trial].curve for trial in trials} == {t: alone[t].curve for t in trials}
    with pytest.raises(UserError, match="unknown family"):
        list(performed([Trial("hgm", "nix", 1)] * 2, 2))


@pytest.mark.parametrize("in_another_thread", [False, True])
def test_ctrl_c_waits_until_all_processes_are_started(monkeypatch, in_another_thread):
    """Also one that comes while another thread runs, as the table's does: no mask of ours keeps it from that."""
    started, alive = [], threading.Event()
    start = SpawnProcess.start

    def interrupted(process):
        if not started and not in_another_thread:
            signal.raise_signal(signal.SIGINT)
        elif not started:
            os.kill(os.getpid(), signal.SIGINT)
        start(process)
        started.append(process)

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=alive.wait)
    if in_another_thread:
        thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            next(performed([Trial("random", "drift", seed) for seed in range(2)], 2))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        alive.set()
    assert len(started) == 2
    assert not any(process.is_alive() for process in started)


def test_differences_are_paired_and_ties_count_half():
    shift = {"drift": 0.1, "broken": 0.0}
    found = found_by(lambda t: 0.3 + 0.2 * t.seed + (shift[t.family] if t.policy == "random" else 0.0))
    rows = {(s.policy, s.family): s for s in standings(STUDY, CELL, found, "hgm")}
    assert rows["random", "drift"].difference.mean == pytest.approx(0.1)
    assert rows["random", "drift"].won == 1.0
    assert rows["random", "broken"].won == 0.5
    mean = rows["random", MEAN]
    assert mean.difference.mean == pytest.approx(0.05)
    assert (mean.difference.low, mean.difference.high) == (pytest.approx(0.05), pytest.approx(0.05))
    assert (mean.won, mean.seeds) == (0.75, 2)
    assert rows["hgm", MEAN].difference.mean == 0.0
    assert (mean.pairs, mean.won_low, mean.won_high) == (Pairs(2, 2, 0), 0.75, 0.75)
    assert rows["hgm", "drift"].pairs == Pairs(0, 2, 0)


def test_the_share_won_has_an_interval_over_seeds():
    study = replace(STUDY, policies=("hgm", "random"), families=("drift",), seeds=tuple(range(40)))
    found = {trial: result(0.3) for trial in study.trials()}
    for seed in range(40):
        # 24 won, 6 tied and 10 lost: 67.5 % with ties half.
        found[CELL.trial("random", "drift", seed)] = result(0.4 if seed < 24 else 0.3 if seed < 30 else 0.2)
    row = {s.policy: s for s in standings(study, CELL, found, "hgm")}["random"]
    assert (row.pairs, row.won) == (Pairs(24, 6, 10), pytest.approx(0.675))
    # The standard error of the mean of these forty values is 0.0674.
    assert row.won_low == pytest.approx(0.675 - 1.96 * 0.0674, abs=0.02)
    assert row.won_high == pytest.approx(0.675 + 1.96 * 0.0674, abs=0.02)
    (alone,) = standings(replace(study, policies=("random",), seeds=(0,)), CELL, found, "hgm")
    assert (alone.pairs, alone.won_low, alone.won_high) == (Pairs(1, 0, 0), None, None)


def test_the_difference_of_areas_is_to_the_reference():
    found = found_by(lambda trial: 0.4 if trial.policy == "random" else 0.3)
    rows = {(s.policy, s.family): s for s in standings(STUDY, CELL, found, "hgm")}
    # 0.1 above it from the first 64th of the budget on, and in that half of it.
    assert rows["random", "drift"].area_difference == pytest.approx(0.1 * (63 + 0.5) / 64)


def test_the_area_under_a_straight_curve_is_its_middle():
    assert result(0.4, root=0.2, curve=[0.2 + 0.2 * share for share in SHARES]).area == pytest.approx(0.3)


def test_a_seed_counts_only_where_both_have_it_in_all_families():
    found = found_by(lambda trial: 0.3)
    del found[CELL.trial("random", "broken", 1)]
    rows = {(s.policy, s.family): s for s in standings(STUDY, CELL, found, "hgm")}
    assert rows["random", MEAN].seeds == rows["random", "broken"].seeds == 1
    assert rows["random", MEAN].difference.low is None
    assert rows["random", "drift"].seeds == 2


def test_regret_against_the_oracle_wants_the_oracle():
    found = found_by(lambda trial: 0.3)
    assert standings(STUDY, CELL, found, "hgm")[0].oracle_regret is None
    for family in STUDY.families:
        for seed in STUDY.seeds:
            found[CELL.trial("oracle", family, seed)] = result(0.8)
    assert standings(STUDY, CELL, found, "hgm")[0].oracle_regret == pytest.approx(0.5)


def test_stuck_at_the_root_is_told_from_rightly_staying():
    assert result(0.2, recommended=0, best=0.3).stuck
    assert not result(0.2, recommended=0, best=0.2).stuck
    assert not result(0.3, best=0.5).stuck
    assert not result(0.3, recommended=1, best=0.5).stuck


def ended(*results):
    """The standing of one policy with these results."""
    study = replace(STUDY, policies=("hgm",), families=("drift",), seeds=tuple(range(len(results))))
    (row,) = standings(study, CELL, dict(zip(study.trials(), results, strict=True)), "hgm")
    return row


def test_only_the_seed_is_the_root():
    row = ended(result(0.2, recommended=0), *[result(0.3, recommended=agent) for agent in (1, 1, 2)])
    assert row.at_root == 0.25


def test_who_rightly_stayed_at_the_root_is_not_counted_as_stuck():
    rightly, stuck = (result(0.2, recommended=0, best=best) for best in (0.2, 0.3))
    assert ended(rightly, stuck, *[result(0.3)] * 2).stuck == 0.25


def test_a_family_is_met_with_its_own_number_of_workers_unless_another_is_asked_for():
    crowd = "low-retention-crowd"
    assert Cell().trial("hgm", crowd, 0).workers == 20
    assert Cell().trial("hgm", "low-retention", 0).workers == 1
    assert Cell(workers=3).trial("hgm", crowd, 0).workers == 3


def test_speed_compares_when_a_quality_is_reached():
    study = Study(("random", "hgm"), ("drift",), (0,), (CELL,))
    slow = [0.2 + 0.2 * share for share in SHARES]
    fast = [0.2 + min(0.8 * share, 0.4) for share in SHARES]
    found = {CELL.trial("hgm", "drift", 0): result(slow[-1], curve=slow)}
    found[CELL.trial("random", "drift", 0)] = result(fast[-1], curve=fast)
    rows = {s.policy: s for s in standings(study, CELL, found, "hgm")}
    assert rows["hgm"].speed == pytest.approx(1.0)
    assert rows["random"].speed == pytest.approx(4.0)
    assert rows["hgm"].evaluations_needed == pytest.approx(64)
    assert rows["random"].evaluations_needed == pytest.approx(16)
    rows = {s.policy: s for s in standings(study, CELL, found, "random")}
    assert rows["hgm"].speed == pytest.approx(0.25)
    assert rows["hgm"].evaluations_needed is None


def test_the_interval_of_a_speed_is_over_seeds():
    # Between them the fast curve is twice and four times as soon at the slow one's end.
    study = Study(("random", "hgm"), ("drift",), tuple(range(20)), (CELL,))
    slow = [0.2 + 0.2 * share for share in SHARES]
    found = {}
    for seed in study.seeds:
        fast = [0.2 + min((0.8 if seed % 2 else 0.4) * share, 0.4) for share in SHARES]
        found[CELL.trial("hgm", "drift", seed)] = result(slow[-1], curve=slow)
        found[CELL.trial("random", "drift", seed)] = result(fast[-1], curve=fast)
    fast, slow = standings(study, CELL, found, "hgm")
    assert 2.0 < fast.speed_low < fast.speed < fast.speed_high < 4.0
    assert (slow.speed_low, slow.speed_high) == pytest.approx((1.0, 1.0))
    alone = Study(("random",), ("drift",), (0,), (CELL,))
    assert standings(alone, CELL, found, "hgm")[0].speed_low is None


def test_where_a_curve_reaches_a_goal():
    points = [(0.0, 0.1), (10.0, 0.2), (20.0, 0.4)]
    assert reached(points, 0.3) == pytest.approx(15.0)
    assert reached(points, 0.05) == 0.0
    assert reached(points, 0.5) is None


def test_trials_that_were_cut_short_are_told():
    found = found_by(lambda t: 0.5)
    assert warning(standings(STUDY, CELL, found, "hgm")) == ""
    cut = CELL.trial("random", "drift", 1)
    found[cut] = replace(found[cut], ended="infrastructure failed")
    rows = standings(STUDY, CELL, found, "hgm")
    shares = {(s.policy, s.family): s.cut_short for s in rows}
    assert (shares["random", "drift"], shares["random", MEAN], shares["hgm", MEAN]) == (0.5, 0.25, 0.0)
    assert warning(rows).startswith("Warning") and warning(rows).endswith("of random 25.0%.")


@pytest.mark.parametrize(
    ("count", "title", "few"),
    [
        (1, "drift (1 seed)", "1 seed, which gives no"),
        (3, "drift (3 seeds)", "3 seeds; intervals from fewer"),
    ],
)
def test_few_seeds_are_told_once(count, title, few):
    study = Study(("random", "hgm"), ("drift",), tuple(range(count)), (CELL,))
    rows = standings(study, CELL, {trial: result(0.5) for trial in study.trials()}, "hgm")
    assert family_table(rows, "drift").title == title
    assert few in caution(rows)
    assert caution(replace(row, seeds=FEW) for row in rows) == ""
    assert caution(row for row in rows if row.policy == "hgm") == ""


def test_tables_hold_every_policy():
    rows = standings(STUDY, CELL, found_by(lambda trial: 0.3), "hgm")
    texts = [markdown(table) for table in (*tables(rows), *family_tables(rows))]
    assert len(texts) == 4
    assert all("| hgm |" in text and "| random |" in text for text in texts)
    assert all(len({line.count("|") for line in text.splitlines()[2:]}) == 1 for text in texts)


def test_a_trial_out_of_bounds_is_refused():
    for cell in (Cell(0), Cell(expansion_cost=-1.0), Cell(workers=0), Cell(failures=1.0)):
        with pytest.raises(UserError):
            replace(STUDY, cells=(cell,))


def test_curves_are_drawn_within_their_panel_and_named():
    names = [f"policy <{n}>" for n in range(18)]
    curves = tuple(
        Curve(name, ((0.0, 0.2), (400.0, 0.3), (800.0, 0.3 + n / 1000))) for n, name in enumerate(names)
    )
    root = ET.fromstring(svg("a & b", [Panel("one", curves)]))
    ns = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in root.iter(f"{ns}text")]
    assert set(names) <= set(texts)
    assert all(texts.count(str(n + 1)) >= 2 for n in range(18))
    assert {"0", "800", "budget spent (evaluations)"} <= set(texts)
    looks = [
        (p.get("stroke"), p.get("stroke-dasharray")) for p in root.iter(f"{ns}path") if p.get("stroke-width")
    ]
    assert len(set(looks)) == len(names)
    numbers = [float(t.get("y")) for t in root.iter(f"{ns}text") if t.get("font-size") == "10"]
    assert all(0 < y < float(root.get("height")) for y in numbers)
    gaps = [b - a for a, b in zip(sorted(numbers), sorted(numbers)[1:], strict=False)]
    assert min(gaps) > 8


@pytest.mark.parametrize(("low", "high"), [(0.0, 800.0), (0.21, 0.63), (0.5, 0.5), (0.0, 0.031)])
def test_ticks_are_round_few_and_hold_all(low, high):
    steps = ticks(low, high)
    assert steps[0] <= low
    assert steps[-1] >= high
    assert 2 <= len(steps) <= 9


@pytest.mark.parametrize("policy", POLICIES)
def test_a_version_changes_with_what_puts_the_policy_together(policy, monkeypatch):
    module = import_module("dgm.simulate.fingerprint")
    version, code = fingerprint.__wrapped__, module._code
    before = version(policy, "drift", 800)
    for changed in ("dgm.policies.composed", POLICIES[policy].partition(":")[0]):
        monkeypatch.setattr(
            module, "_code", lambda name, changed=changed: code(name) + "#" * (name == changed)
        )
        assert version(policy, "drift", 800) != before
