"""Metrics that a suite declares: what the grader takes of a report, and what the settings may ask for."""

import pytest

from dgm.analysis.objective import objective_of
from dgm.benchmarks.grade import CommandEnd, read_metrics
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.config import Settings
from dgm.domain import Metric, Objective, Verdict
from dgm.errors import UserError
from dgm.protocols import Grade
from dgm.worker.conduct import apply_conduct
from tests.support.folder_sandbox import FolderEngine
from tests.support.two_metrics import FORMULAS, make_suite


def values(text: bytes, **end):
    return read_metrics(
        CommandEnd(0, **{"rewards": {"reward.json": text}, "writes": 1} | end), ("speed", "bytes")
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"reward": 0, "bytes": 7, "speed": 2.5, "other": 1}', (("speed", 2.5), ("bytes", 7.0))),
        (b'{"reward": 1, "bytes": NaN, "speed": Infinity}', ()),
        (b'{"reward": 1, "bytes": true, "speed": "3"}', ()),
        (b'{"reward": 1, "bytes": 1e300}', ()),
        (b'{"bytes": 1, "speed": 2}', ()),
        (b'{"speed": 12.5}', ()),
        (b"1", ()),
        (b"[" * 5000, ()),
    ],
)
def test_only_declared_finite_numbers_beside_a_valid_reward_are_metrics(text, found):
    assert values(text) == found


def test_what_is_not_surely_the_commands_own_has_no_metrics():
    report = b'{"reward": 1, "bytes": 7}'
    assert values(report, signal=9) == ()
    assert values(report, left=1, writes=2) == ()
    assert values(report, refused="reward.json is no file of its own") == ()


def test_a_rejected_patch_has_no_metrics():
    from dgm.domain import Finding, FindingKind

    grade = Grade(Verdict.RESOLVED, "reward 1", 1.0, metrics=(("bytes", 7.0),))
    finding = (Finding(FindingKind.SPECIAL_CASE),)
    assert apply_conduct(grade, finding, "flag").metrics == grade.metrics
    assert apply_conduct(grade, finding, "reject").metrics == ()


def test_a_suite_declares_its_metrics(tmp_path):
    suite = SuiteBenchmark(make_suite(tmp_path), FolderEngine(tmp_path))
    assert suite.metrics() == {
        "bytes": Metric(False, "bytes", "size of the repaired module"),
        "agreement": Metric(True, "", "share of the cases that come out right"),
    }
    assert suite.exam(next(iter(sorted(FORMULAS)))).metrics == ("bytes", "agreement")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('[metrics.tokens]\ndirection = "lower"\n', "is the name of another thing"),
        ('[metrics.speed]\ndirection = "up"\n', "is none of higher, lower"),
        ('[metrics.speed]\ndirection = "lower"\nunits = "ms"\n', "unknown key"),
        ("[metrics.speed]\n", "direction: missing"),
    ],
)
def test_a_wrong_metric_is_refused_with_its_line(tmp_path, table, problem):
    file = make_suite(tmp_path) / "suite.toml"
    file.write_text(file.read_text().partition("[metrics")[0] + table)
    with pytest.raises(UserError, match=problem) as error:
        SuiteBenchmark(tmp_path, FolderEngine(tmp_path))
    assert "suite.toml" in str(error.value)


def test_metrics_that_no_task_reports_are_refused(tmp_path):
    for task in make_suite(tmp_path).glob("tasks/*/task.toml"):
        task.write_text(task.read_text().replace('result = "reward"\n', ""))
    with pytest.raises(UserError, match="no task could report them"):
        SuiteBenchmark(tmp_path, FolderEngine(tmp_path))


def resolved(metrics=("bytes",), reward="resolved", **objective):
    settings = Settings.model_validate({"objective": objective, "policy": {"reward": reward}})
    return objective_of(settings, {name: Metric(False) for name in metrics})


def test_settings_become_the_objective_of_the_log():
    assert resolved() is None
    assert resolved(front=["rate", "bytes"]) == Objective({"rate": 1, "bytes": -1})
    assert resolved(reward="score") == Objective({}, {"score": 1.0})
    assert resolved(reward="objective", weights={"rate": 1}) == Objective({}, {"rate": 1.0})


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"front": ["rate", "speed"]}, "'speed' is no metric of this suite; it has rate, score"),
        ({"weights": {"speed": 1}}, "objective.weights: 'speed'"),
        ({"front": ["rate"]}, "name two different metrics"),
        ({"reward": "objective"}, "nothing is weighed"),
        ({"weights": {"rubric": 1}}, "'rubric' is no metric of this suite"),
        (
            {"metrics": ["rubric"], "reward": "objective", "weights": {"rubric": 1}},
            "the rubric can be no part of a reward",
        ),
    ],
)
def test_an_objective_that_cannot_be_is_refused(asked, problem):
    with pytest.raises(UserError, match=problem):
        resolved(**asked)
