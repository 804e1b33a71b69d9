"""Predictions: what is read is checked row by row, what is written is whole, and the report is SWE-bench's."""

import asyncio
import json
from random import Random

import pytest

from dgm.archive.events import ActionLost, ActionStarted, Recorded, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import (
    ActionId,
    AgentId,
    Budget,
    Cost,
    Entry,
    Evaluate,
    Evaluation,
    Tally,
    TaskId,
    Verdict,
)
from dgm.errors import AgentFault, UserError
from dgm.evaluation.predictions import Grader, check_known, export_patches, read_predictions, swebench_report
from dgm.evaluation.schedule import EvaluationPlan, EvaluationProgress, Schedule, collect_results, enter
from tests.support.suite_on_disk import TASK, NoEngine, make_suite

pytestmark = pytest.mark.starts_processes

PATCH = "diff --git a/x b/x\r\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-ä\x0c\u2028\n+\U0001f600\n"


def row(task=TASK, patch=PATCH, model="m"):
    return {"instance_id": task, "model_name_or_path": model, "model_patch": patch}


def written(path, *rows):
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_lines_a_list_and_a_table_of_predictions_are_read_alike(tmp_path):
    rows = [row("a"), row("b", None), {**row("c", ""), "full_output": "…"}]
    lines = read_predictions(written(tmp_path / "p.jsonl", *rows))
    listed, tabled = tmp_path / "list.json", tmp_path / "table.json"
    listed.write_text(json.dumps(rows))
    tabled.write_text(json.dumps({one["instance_id"]: one for one in rows}))
    assert [one.patch for one in lines.by_task.values()] == [PATCH, "", ""]
    assert lines.digest == read_predictions(listed).digest == read_predictions(tabled).digest


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\r\n",
        # Separators of lines inside a patch split no row.
        json.dumps(row(), ensure_ascii=False).encode() + b"\n\n",
    ],
)
def test_marks_and_separators_are_no_part_of_predictions(tmp_path, data):
    (tmp_path / "p.jsonl").write_bytes(data)
    assert read_predictions(tmp_path / "p.jsonl").by_task[TASK].patch == PATCH


def test_the_digest_tells_other_patches_apart(tmp_path):
    one = read_predictions(written(tmp_path / "1.jsonl", row("a"), row("b")))
    turned = read_predictions(written(tmp_path / "2.jsonl", row("b"), row("a")))
    other = read_predictions(written(tmp_path / "3.jsonl", row("a"), row("b", PATCH + " ")))
    assert one.digest == turned.digest != other.digest


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["{"], "p.jsonl:1: no prediction"),
        ([json.dumps(row("a")), "", "[]"], "p.jsonl:3: no prediction"),
        ([json.dumps({"instance_id": "a", "model_patch": ""})], "field `model_name_or_path`"),
        ([json.dumps(row("a", 5))], "`$.model_patch`"),
        ([json.dumps(row(None))], "`$.instance_id`"),
        ([json.dumps(row(""))], "`$.instance_id`"),
        ([json.dumps(row("a"))] * 2, "p.jsonl:2: a second prediction for 'a' (the first: "),
        ([json.dumps(row("a")), json.dumps(row("b", model="n"))], "p.jsonl:2: model_name_or_path is 'n'"),
        ([json.dumps(row("a", "\ud800"))], "p.jsonl:1: no prediction"),
        (["[" * 100_000], "p.jsonl:1: no prediction"),
        ([""], "p.jsonl: holds no prediction"),
    ],
)
def test_a_wrong_row_is_one_line_that_says_where(tmp_path, rows, said):
    file = tmp_path / "p.jsonl"
    file.write_text("\n".join(rows))
    with pytest.raises(UserError) as refused:
        read_predictions(file)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.txt", b"", ".jsonl or a .json file"),
        ("p.jsonl", None, "missing"),
        ("p.jsonl", b'{"instance_id": "\xff"', "p.jsonl:1: no prediction"),
        ("p.json", b"3", "p.json: no prediction"),
        ("p.json", b"{", "p.json: no prediction"),
        ("p.json", b'[{"instance_id": "a"}]', "p.json: prediction 1: no prediction"),
    ],
)
def test_a_file_that_holds_no_predictions_is_refused(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_predictions(tmp_path / name)


def test_an_unknown_task_is_named_with_its_line_and_the_nearest_one(tmp_path):
    benchmark = SuiteBenchmark(make_suite(tmp_path / "suite"), NoEngine())
    found = read_predictions(written(tmp_path / "p.jsonl", row(TASK), row(f"{TASK}s")))
    with pytest.raises(UserError, match=rf"p\.jsonl:2: .*{TASK}s.*did you mean '{TASK}'"):
        check_known(found, benchmark)


class Evaluated:
    """A run with one agent, in which nobody worked."""

    def __init__(self, folder):
        config = {"id": "e" * 16, "settings": {}, "versions": {"benchmark": "1"}}
        self.run = Run.create(folder, config)
        self.run.append(RunStarted(Budget(), ()))
        self.agent = enter(self.run, "key", lambda: {"agent.toml": Entry(b"")})
        self.number = 0

    def begin(self, task, attempt=0):
        self.number += 1
        self.run.append(ActionStarted(ActionId(self.number), Evaluate(self.agent, TaskId(task), attempt)))
        return ActionId(self.number)

    def grade(self, task, verdict, patch=b"", attempt=0):
        action = self.begin(task, attempt)
        traces = {} if patch is None else {"patch": self.run.traces.put(patch)}
        done = Evaluation(self.agent, TaskId(task), attempt, verdict, "why", cost=Cost(traces=traces))
        self.run.append(TaskGraded(action, done))


@pytest.fixture
def evaluated(tmp_path):
    made = Evaluated(tmp_path / "run")
    yield made
    made.run.close()


def test_first_attempts_are_exported_whole_and_can_be_read_again(evaluated, tmp_path):
    evaluated.grade("a", Verdict.RESOLVED, PATCH.encode())
    evaluated.grade("a", Verdict.UNRESOLVED, b"other", attempt=1)
    evaluated.grade("b", Verdict.UNRESOLVED, None)
    evaluated.grade("c", Verdict.INVALID, b"lost")
    for name in ("p.jsonl", "p.json"):
        done = export_patches(evaluated.run, AgentId(0), "m", tmp_path / name, lambda task: task)
        again = read_predictions(tmp_path / name)
        assert done == {"predictions": 2, "other_benchmarks": 0, "not_text": 0}
        assert {task: one.patch for task, one in again.by_task.items()} == {"a": PATCH, "b": ""}


def test_what_the_format_cannot_hold_is_left_out_and_counted(evaluated, tmp_path):
    evaluated.grade("swebench-lite/a", Verdict.RESOLVED, b"fine")
    evaluated.grade("swebench-lite/b", Verdict.UNRESOLVED, b"\xff")
    evaluated.grade("starter/c", Verdict.UNRESOLVED, b"fine")

    def instance_of(task):
        part, _, inner = task.partition("/")
        return inner if part == "swebench-lite" else None

    done = export_patches(evaluated.run, AgentId(0), "m", tmp_path / "p.jsonl", instance_of)
    assert done == {"predictions": 1, "other_benchmarks": 1, "not_text": 1}
    assert list(read_predictions(tmp_path / "p.jsonl").by_task) == ["a"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("there.json", "already exists"),
        ("no/p.json", "no such folder"),
        ("p", ".jsonl or"),
        ("p.json", "no graded evaluation"),
    ],
)
def test_nothing_is_written_where_it_does_not_belong(evaluated, tmp_path, name, said):
    (tmp_path / "there.json").write_text("mine")
    with pytest.raises(UserError, match=said):
        export_patches(evaluated.run, AgentId(0), "m", tmp_path / name, lambda task: task)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["there.json"]
    assert (tmp_path / "there.json").read_text() == "mine"


def test_the_report_sorts_every_task_into_its_place(evaluated, tmp_path):
    tasks = ("good", "bad", "empty", "broken", "later")
    found = read_predictions(
        written(tmp_path / "p.jsonl", *(row(task, "" if task == "empty" else PATCH) for task in tasks))
    )
    evaluated.grade("good", Verdict.RESOLVED)
    evaluated.grade("bad", Verdict.UNRESOLVED)
    evaluated.grade("empty", Verdict.UNRESOLVED)
    lost = evaluated.begin("broken")
    evaluated.run.append(ActionLost(lost, "given up: no image", final=True))
    wanted = EvaluationPlan.all_pairs((evaluated.agent,), tuple(map(TaskId, tasks)))
    said = swebench_report(
        found, collect_results(evaluated.run, wanted)[0], [*map(TaskId, tasks), TaskId("other")]
    )
    assert said["completed_ids"] == ["bad", "good"]
    assert said["resolved_ids"] == ["good"]
    assert said["unresolved_ids"] == ["bad"]
    assert said["empty_patch_ids"] == ["empty"]
    assert said["error_ids"] == ["broken"]
    assert said["incomplete_ids"] == ["later", "other"]
    assert (said["total_instances"], said["submitted_instances"], said["schema_version"]) == (6, 5, 2)


def test_every_task_counts_once_however_often_it_is_tried(evaluated):
    for attempt, verdicts in enumerate(("RU", "UU", "RU")):
        for task, letter in zip("ab", verdicts, strict=True):
            verdict = Verdict.RESOLVED if letter == "R" else Verdict.UNRESOLVED
            evaluated.grade(task, verdict, attempt=attempt)
    (found,) = collect_results(
        evaluated.run, EvaluationPlan.all_pairs((evaluated.agent,), (TaskId("a"), TaskId("b")), 3)
    )
    assert (found.tally, found.any, found.attempts) == (Tally(1, 1), Tally(1, 1), Tally(2, 4))
    assert found.unresolved == {"b": "why"}


def test_what_is_lost_is_missing_until_it_is_given_up(evaluated):
    wanted = EvaluationPlan.all_pairs((evaluated.agent,), (TaskId("a"),))
    action = evaluated.begin("a")
    evaluated.run.append(ActionLost(action, "killed"))
    assert len(EvaluationProgress.read(evaluated.run).missing(wanted.wanted)) == 1
    evaluated.run.append(ActionLost(action, "given up: no image", final=True))
    assert not EvaluationProgress.read(evaluated.run).missing(wanted.wanted)
    assert collect_results(evaluated.run, wanted)[0].abandoned == {"a": "given up: no image"}


def test_a_schedule_starts_first_attempts_of_all_agents_first_and_each_evaluation_once():
    plan = EvaluationPlan.all_pairs((AgentId(0), AgentId(1)), (TaskId("a"), TaskId("b")), attempts=2)
    schedule, started = Schedule(lambda _: plan.wanted), []
    for number in range(8):
        what = schedule.next(Tree(), Random(0))
        started.append((what.agent, what.task, what.attempt))
        schedule.observe(Recorded(number, 0.0, ActionStarted(ActionId(number), what)))
    assert schedule.next(Tree(), Random(0)) is None
    assert started == [(agent, task, attempt) for attempt in (0, 1) for task in "ab" for agent in (0, 1)]


def test_an_agent_is_entered_once_under_its_key(evaluated):
    assert enter(evaluated.run, "key", dict) == evaluated.agent
    assert enter(evaluated.run, "other", dict) == 1


def test_a_patch_that_cannot_be_graded_for_its_own_sake_is_unresolved(evaluated, tmp_path):
    class Refusing:
        async def grade(self, task, patch, labels):
            raise AgentFault("patch", "too large")

    found = read_predictions(written(tmp_path / "p.jsonl", row()))
    grader = Grader(evaluated.run, Refusing(), found, {})
    agent = evaluated.run.tree.agents[evaluated.agent]
    done = asyncio.run(grader.perform(ActionId(1), Evaluate(agent.id, TaskId(TASK))))
    assert (done.verdict, done.reason) == (Verdict.UNRESOLVED, "patch: too large")
