"""The plan of a search: what its budget buys by earlier runs, and what its tasks can show."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from rich.console import Console

from dgm.assemble import RunParts
from dgm.cli.main import main
from dgm.config import resolve
from dgm.domain import AgentId, Budget, Cost, Evaluate, Expand, Split, Tally, Task, TaskId, Usage, Verdict
from dgm.meta.seeds import read_seed
from dgm.render.plan_text import render_plan
from dgm.stats import mcnemar_power, smallest_gain
from dgm.views.plan import Basis, PlanView
from dgm.views.values import TallyView
from tests.support.runs.builder import RunBuilder, create_run, make_config

MODEL, OTHER = "openai/gpt-6.2-sol", "openai/other"
TASKS = [TaskId(f"t{number}") for number in range(10)]
USAGE = Usage(calls=2, input_tokens=100_000, output_tokens=10_000, usd=0.5)

pytestmark = pytest.mark.starts_processes


@dataclass
class Suite:
    """A benchmark of which only the tasks matter."""

    name: str = "suite"
    version: str = "1"
    splits: dict[Split, int] = field(default_factory=lambda: {Split.SEARCH: 10, Split.HOLDOUT: 20})

    def tasks(self, split):
        names = (
            TASKS if split is Split.SEARCH else [f"h{number}" for number in range(self.splits.get(split, 0))]
        )
        return [Task(TaskId(name), self.name, "", "python", "/work", 60.0) for name in names]


def settings(*assignments, model=MODEL):
    prices = [f'models.prices."{name}"={{input=10, output=100}}' for name in (MODEL, OTHER)]
    return resolve(None, [f"model={model}", "seed_agent=plain", *prices, *assignments], {})


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    return tmp_path


def record_run(folder, verdicts, *, model=MODEL, version="1", expansions=0):
    """Record a search whose seed has these verdicts; each evaluation takes 0.5 USD and 60 s, each expansion 120 s."""
    with create_run(folder, make_config(settings(model=model), version), Budget(), TASKS) as run:
        builder = RunBuilder(run)
        builder.bear(read_seed("plain"))
        for number in range(expansions):
            action = builder.begin(Expand((AgentId(0),), "self-edit"))
            builder.record_call(action, 1, model, "improve", USAGE)
            files = {**read_seed("plain"), "note.txt": next(iter(read_seed("plain").values()))}
            builder.bear(files, [0], action=action, cost=Cost(USAGE, 120.0), rationale=str(number))
        attempts = Counter[int]()
        for task, verdict in verdicts:
            attempt = attempts[task]
            attempts[task] += 1
            action = builder.begin(Evaluate(AgentId(0), TASKS[task], attempt))
            builder.record_call(action, 1, model, "solve", USAGE)
            builder.record_verdict(action, 0, TASKS[task], verdict, attempt=attempt, cost=Cost(USAGE, 60.0))


def plan(*assignments, suite=None, model=MODEL):
    return PlanView.load(settings(*assignments, model=model), RunParts(None, suite or Suite()))


def test_without_earlier_runs_only_bounds_are_known(archive):
    view = plan("budget.usd=20", "budget.evaluations=100")
    assert (view.evaluation, view.expansion, view.usd, view.seconds) == (None, None, None, None)
    assert (view.seed, view.noise, view.promotion) == (None, None, None)
    assert view.evaluation_at_most_usd > 0
    assert view.evaluations == 100
    assert 10 < view.children < 90  # of a simulated search


def test_a_curriculum_begins_with_a_part_of_the_search_tasks(archive):
    view = plan("curriculum.start=4")
    assert (view.active_tasks, view.search_tasks) == (4, 10)
    console = Console(width=300)
    with console.capture() as capture:
        console.print(render_plan(view))
    assert "(4 at first of 10 search tasks)" in capture.get()
    assert plan().active_tasks == 10


def test_costs_come_from_runs_of_the_same_model_and_suite(archive):
    resolved, unresolved, invalid = Verdict
    record_run(
        archive / "first",
        [(0, resolved), (1, unresolved), (2, invalid), *((n, resolved) for n in range(3, 10))],
    )
    record_run(archive / "second", [(n, resolved) for n in range(10)] * 4, expansions=10)
    view = plan("budget.usd=20", "workers=2")
    assert (view.evaluation.usd, view.evaluation.seconds, view.evaluation.basis) == (0.5, 60.0, Basis.SAME)
    assert view.evaluation.usd_range == (0.5, 0.5)
    assert view.evaluation.actions == 9 + 40
    assert (view.expansion.usd, view.expansion.actions) == (0.5, 10)
    ratio = 10 / 49
    assert view.limited_by == "usd"
    assert view.evaluations == int(20 / (0.5 + ratio * 0.5))
    assert view.children == int(view.evaluations * ratio)
    assert view.usd == pytest.approx(view.evaluations * (0.5 + ratio * 0.5))
    assert view.seconds == pytest.approx(view.evaluations * (60 + ratio * 120) / 2)
    assert plan("budget.usd=20", "budget.evaluations=7").evaluations == 7
    promoting = Suite(splits={Split.PROMOTION: 30})
    gated = plan(
        "budget.usd=20", "promotion.every=15", "promotion.candidates=2", "workers=2", suite=promoting
    )
    assert gated.evaluations == int(20 / (0.5 * (1 + 2 * 30 / 15) + ratio * 0.5))
    assert gated.seconds == pytest.approx(gated.evaluations * (60 * 5 + ratio * 120) / 2)
    assert plan("budget.usd=20", suite=promoting).evaluations == view.evaluations


@pytest.mark.parametrize(
    ("recorded", "usd", "basis"),
    [
        ({"model": OTHER}, 2.0, Basis.OTHER_MODEL),  # 100,000 tokens at 10 and 10,000 at 100 USD per million
        ({"version": "2"}, 0.5, Basis.OTHER_SUITE),
        ({"model": OTHER, "version": "2"}, None, None),
    ],
)
def test_costs_of_other_runs_are_a_fallback(archive, recorded, usd, basis):
    record_run(archive / "first", [(0, Verdict.RESOLVED), (1, Verdict.RESOLVED)], **recorded)
    view = plan()
    assert (view.evaluation and view.evaluation.usd, view.evaluation and view.evaluation.basis) == (
        usd,
        basis,
    )
    assert view.seed is None


def test_the_seed_and_its_noise_come_from_runs_with_its_source(archive):
    record_run(archive / "first", [(task, Verdict.UNRESOLVED) for task in range(10)])
    assert plan().noise is None
    record_run(
        archive / "second", [(task, (Verdict.RESOLVED, Verdict.UNRESOLVED)[task < 6]) for task in range(10)]
    )
    view = plan()
    assert (view.seed.resolved, view.seed.n) in [(0, 10), (4, 10)]
    assert (view.noise.pairs, view.noise.differing) == (10, 4)
    assert view.noise.rate_spread == pytest.approx((0.4 / 10) ** 0.5)
    assert view.holdout.lost == 0.2
    assert plan("seed_agent=solid").seed is None


def test_damaged_runs_are_passed_over(archive):
    record_run(archive / "first", [(0, Verdict.RESOLVED), (1, Verdict.RESOLVED)])
    (archive / "broken").mkdir()
    (archive / "broken" / "run.json").write_text("{")
    (archive / "broken" / "run.db").write_text("no database")
    assert plan().evaluation.actions == 2


def test_a_split_tells_the_smallest_gain_that_it_shows(archive):
    suite = Suite(splits={Split.HOLDOUT: 60, Split.PROMOTION: 4})
    view = plan(suite=suite)
    gain = view.holdout.smallest_gain
    assert mcnemar_power(60, 0.1 + gain, 0.1) >= 0.8 > mcnemar_power(60, 0.1 + gain - 0.002, 0.1)
    assert mcnemar_power(view.holdout.tasks_for_half, 0.1 + gain / 2, 0.1) >= 0.8
    assert (view.promotion.tasks, view.promotion.smallest_gain, view.promotion.tasks_for_half) == (
        4,
        None,
        None,
    )


def test_no_gain_is_shown_where_half_the_tasks_are_lost():
    assert smallest_gain(1000, 0.5) is None
    assert smallest_gain(1000, 0.0) == pytest.approx(0.008, abs=0.002)


def test_a_plan_runs_nothing_and_plans_one_run(archive, capfd):
    words = ["run", "--plan", "--model", "offline", "--set", "sandbox=bubblewrap", "--max-evaluations", "40"]
    with pytest.raises(SystemExit, match="0"):
        main(words)
    text = capfd.readouterr().out
    assert "40 evaluations and about" in text
    assert "20 tasks: the holdout report shows a gain from 53 points on" in text
    assert not list(archive.iterdir())
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--seeds", "1,2"])
    assert capfd.readouterr().err == "dgm: --plan: plans one run; leave out --seeds and --vary\n"


@pytest.mark.parametrize(
    ("resolved", "n", "words"),
    [
        (0, 10, "none: gains are hard to see; choose other tasks"),
        (10, 10, "all of them: nothing is left to improve; choose other tasks"),
        (3, 10, "in earlier runs\n"),
        (0, 3, "in earlier runs\n"),
    ],
)
def test_a_seed_that_leaves_no_room_is_reported(archive, resolved, n, words):
    console = Console(width=300)
    view = plan().model_copy(update={"seed": TallyView.of(Tally(resolved, n - resolved))})
    with console.capture() as capture:
        console.print(render_plan(view))
    line = next(line for line in capture.get().splitlines() if line.startswith("seed "))
    assert words in f"{line.rstrip()}\n"
