"""One head and many nodes on virtual time: who waits for what, and where one head ends."""

from dataclasses import replace

import pytest

import dgm
from dgm.cli.invoking import invoke_command
from dgm.cli.simulate import simulate
from dgm.errors import UserError
from dgm.simulate.scale.cluster import ScaleSimulation
from dgm.simulate.scale.plan import HeadCosts, ScalePlan, slots_of_one_head

FREE = HeadCosts(0.0, 0.0, 0.0, 0.0, 0.0)
QUIET = ScalePlan(4, slots=4, calls=3, node_failures=0.0, hours=0.5)


def outcome(plan, costs=FREE):
    return ScaleSimulation(plan, costs).perform()


def test_shares_add_up_and_equal_plans_have_equal_results():
    costs = HeadCosts(0.01, 0.02, 0.1, 0.02, 0.05)
    plan = replace(QUIET, node_failures=2.0, failures=0.1, images=3)
    found = outcome(plan, costs)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert min(found.shares.values()) > 0.0
    assert found == outcome(plan, costs)
    assert found != outcome(replace(plan, seed=1), costs)


def test_where_the_head_takes_nothing_slots_wait_only_for_the_first_image():
    found = outcome(replace(QUIET, sandbox_s=0.0))
    assert found.shares["head"] == 0.0
    assert found.shares["pulling"] == pytest.approx(10.0 / 1800.0)
    assert found.busy == found.shares["working"] == pytest.approx(1.0 - 10.0 / 1800.0)
    assert found.pulls == 4
    assert found.evaluations == pytest.approx(16 * 1800 / 60, rel=0.1)


def test_one_head_that_is_always_at_work_sets_the_pace():
    costs = HeadCosts(1.0, 2.0, 0.0, 0.5, 1.0)
    found = outcome(replace(QUIET, nodes=64, hours=2.0), costs)
    assert costs.evaluation_s(found.plan) == 5.5
    assert found.head_busy == pytest.approx(1.0, abs=0.01)
    assert found.evaluations_per_hour == pytest.approx(3600 / 5.5, rel=0.05)
    assert slots_of_one_head(found.plan, costs) == int(61.5 / 0.95 / 5.5)


def test_a_head_with_time_left_keeps_the_slots_of_its_own_forecast_busy():
    costs = HeadCosts(0.2, 0.4, 0.0, 0.2, 0.4)
    slots = slots_of_one_head(QUIET, costs)
    found = outcome(replace(QUIET, nodes=1, slots=slots * 3 // 4), costs)
    assert found.busy > 0.9


def test_all_nodes_share_what_the_registry_gives():
    plan = replace(QUIET, nodes=10, sandbox_s=0.0, registry_mb_s=100.0)
    # The first node waits for 10 s, the last one for 100 s.
    assert outcome(plan).shares["pulling"] == pytest.approx(55.0 / 1800.0)


def test_a_node_that_fails_loses_what_ran_there_and_comes_back():
    plan = replace(QUIET, nodes=20, slots=1, node_failures=1.0, outage_s=360.0, hours=4.0)
    found = outcome(plan)
    assert found.lost > 0
    assert found.shares["away"] == pytest.approx(1 / 11, rel=0.35)


def test_failures_are_repeated_and_count_as_no_verdict():
    plain, failing = outcome(QUIET), outcome(replace(QUIET, failures=0.5))
    assert plain.lost == 0
    assert failing.lost == pytest.approx(failing.evaluations, rel=0.3)
    assert failing.evaluations < plain.evaluations


@pytest.mark.parametrize(
    "wrong", [{"nodes": 0}, {"slots": 0}, {"failures": 1.0}, {"hours": 0.0}, {"calls": -1}]
)
def test_numbers_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UserError):
        replace(QUIET, **wrong)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--slots", "3"], "^--slots: does nothing without --nodes"),
        (["--nodes", "3", "--family", "plain"], "^--family: does nothing with --nodes"),
        (["--nodes", "9000", "--slots", "64"], "more than 200,000 slots"),
        (["--nodes", "3", "--policy", "hgm", "--policy", "dgm"], "name one with --nodes"),
    ],
)
def test_options_that_would_do_nothing_are_refused(words, said):
    with pytest.raises(UserError, match=said):
        invoke_command(simulate, words, "dgm simulate")


def test_too_many_slots_are_refused_before_anything_is_measured():
    with pytest.raises(UserError, match="more than 200,000 slots"):
        ScalePlan(10_000, slots=32)


@pytest.mark.starts_processes
def test_a_program_gets_the_document_of_the_command():
    study = dgm.simulate_nodes(replace(QUIET, nodes=2), head_speed=1000.0)
    record = study.record()
    assert record["clusters"][0]["plan"]["nodes"] == 2
    assert record["clusters"][0]["slots_of_one_head"] == study.slots_of_one_head[0] > 0
    with pytest.raises(UserError, match="at least one plan"):
        dgm.simulate_nodes([])
