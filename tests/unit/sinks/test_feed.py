import json
import posixpath

import pytest

from dgm.analysis.accounts import operators_of
from dgm.analysis.agents import best_of
from dgm.archive.events import AgentStillborn, VerdictWithdrawn
from dgm.archive.run import Run
from dgm.domain import AgentId, Evaluate, Stillborn, Verdict
from dgm.errors import ArchiveCorrupt
from dgm.sinks.feed import FEW_AGENTS, NAME_CHARS, Feed, clean_name, read_parameters
from dgm.stats import lower_bound
from tests.support.runs.growing import Growing


@pytest.fixture
def folder(tmp_path):
    growing = Growing(tmp_path / "run")
    growing.graded(0, 0, good=True)
    growing.graded(0, 1, good=False)
    growing.born(0)
    for task in range(6):
        growing.graded(1, task, good=task != 1)
    growing.run.close()
    return tmp_path / "run"


def points_of(run: Run):
    feed = Feed(run)
    return [point for _ in feed.advance() if (point := feed.point())]


def test_each_graded_evaluation_is_a_point(folder) -> None:
    with Run.open(folder) as run:
        points = points_of(run)
        assert [point.step for point in points] == [*range(1, 9)]
        assert points[0].values["best/rate"] == 1.0
        last = points[-1].values
        assert last["best/agent"] == best_of(run)
        assert last["best/lower_bound"] == lower_bound(run.tree.own(best_of(run)))
        assert (last["agents"], last["evaluations/resolved"], last["evaluations/unresolved"]) == (2, 6, 2)


def test_points_are_a_function_of_the_prefix_of_the_log(folder) -> None:
    with Run.open(folder) as run:
        whole, feed, points = points_of(run), Feed(run), []
        for recorded in run.store.read():
            feed.fold(recorded)
            if point := feed.point():
                points.append(point)
                assert points == whole[: len(points)]
    growing = Growing.__new__(Growing)
    with Run.open(folder, write=True) as run:
        growing.run = run
        growing.graded(0, 2, good=True)
    with Run.open(folder) as run:
        assert points_of(run)[:-1] == whole


def test_the_best_of_many_agents_is_looked_for_more_seldom(tmp_path) -> None:
    growing = Growing(tmp_path / "many")
    for _ in range(FEW_AGENTS):
        growing.born(0)
    for number in range(8):
        growing.graded(number // 2, number % 2, good=True)
    points = points_of(growing.run)
    assert ["best/rate" in point.values for point in points] == [False, True] * 4
    growing.run.close()


def test_the_gain_of_an_operator_is_that_of_the_report(folder) -> None:
    growing = Growing.__new__(Growing)
    with Run.open(folder, write=True) as run:
        growing.run = run
        growing.graded(0, 2, good=True)
    with Run.open(folder) as run:
        (line,) = operators_of(run)
        assert line.gain is not None
        assert points_of(run)[-1].values["gain/self-edit"] == pytest.approx(line.gain.mean)


def test_a_withdrawn_verdict_keeps_its_step(folder) -> None:
    growing = Growing.__new__(Growing)
    with Run.open(folder, write=True) as run:
        growing.run = run
        graded = run.store.graded(AgentId(1))[0]
        what = Evaluate(AgentId(1), graded.event.outcome.task)
        run.append(VerdictWithdrawn(graded.event.action, graded.seq, what, Verdict.RESOLVED, "refused"))
        growing.graded(0, 3, good=True)
    with Run.open(folder) as run:
        last = points_of(run)[-1]
        assert (last.step, last.values["evaluations/resolved"]) == (9, 6)


def test_parameters_hold_settings_without_addresses_of_receivers(folder) -> None:
    with Run.open(folder) as run:
        parameters = read_parameters(run)
    assert parameters.values["model"] == '"offline"'
    assert not [name for name in parameters.values if name.startswith(("sinks", "notify"))]


@pytest.mark.parametrize("name", ["..", "", "a/../b", "x" * 1000, "é\n"])
def test_a_name_is_one_that_every_tracker_takes(name) -> None:
    clean = clean_name(name)
    assert 0 < len(clean) <= NAME_CHARS
    assert posixpath.normpath(f"stillborn/{clean}") == f"stillborn/{clean}"
    assert clean.isascii()


def test_stages_whose_names_become_equal_are_counted_together(folder) -> None:
    with Run.open(folder, write=True) as run:
        growing = Growing.on(run)
        for stage in ("a:b", "a;b", "a;b"):
            run.append(AgentStillborn(growing.start(0), Stillborn((AgentId(0),), "self-edit", stage, "why")))
        growing.graded(0, 2, good=True)
    with Run.open(folder) as run:
        assert points_of(run)[-1].values["stillborn/a_b"] == 3


@pytest.mark.parametrize("run_id", ["x/../../../victim", "x' OR '1' = '1", "*", ""])
def test_an_id_that_a_stranger_wrote_names_no_file(folder, run_id) -> None:
    file = folder / "run.json"
    frozen = json.loads(file.read_text())
    frozen["config"]["id"] = run_id
    file.chmod(0o644)
    file.write_text(json.dumps(frozen))
    with Run.open(folder) as run, pytest.raises(ArchiveCorrupt, match="its id"):
        read_parameters(run)


def test_parameters_hold_no_token_of_an_address(folder) -> None:
    file = folder / "run.json"
    frozen = json.loads(file.read_text())
    frozen["config"]["settings"] |= {
        "providers": {"x": {"kind": "openai-compatible", "base_url": "https://host/token/v1"}},
        "seed_agent": "https://me:token@host/agent.git",
    }
    file.chmod(0o644)
    file.write_text(json.dumps(frozen))
    with Run.open(folder) as run:
        values = read_parameters(run).values
    assert not [name for name, value in values.items() if "token" in value and "tokens" not in value]
    assert values["seed_agent"] == '"https://…@host/agent.git"'
