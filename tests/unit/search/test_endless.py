"""A budget that can never run out is refused at the start, or ends the run once that is plain."""

import pytest

import dgm
from dgm.analysis.budgets import UNSPENT_EVALUATIONS, UNSPENT_EXPANSIONS, Reason, find_ending
from dgm.archive.events import ModelCalled
from dgm.archive.run import Run
from dgm.cli.complaint import USAGE
from dgm.cli.run import EXIT
from dgm.config import resolve
from dgm.domain import ActionId, Budget, Usage
from dgm.errors import UserError
from dgm.search.start import check_budget_ends_run
from tests.support.runs.paid import PaidRun
from tests.support.runs.trees import Log

LOCAL = {"providers.openai-compatible.base_url": "http://127.0.0.1:8000/v1"}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"model": "offline"}, "the model offline costs nothing"),
        ({"model": "openai-compatible/qwen", **LOCAL}, "the model openai-compatible/qwen costs nothing"),
        (
            {"model": "openai-compatible/qwen", "models.improve": "offline", **LOCAL},
            "offline, openai-compatible/qwen cost",
        ),
        (
            {
                "model": "openai/gpt-6.2-sol",
                "models.prices": {"openai/gpt-6.2-sol": {"input": 0, "output": 0}},
            },
            "gpt-6.2",
        ),
    ],
)
def test_money_alone_does_not_end_a_run_whose_models_cost_nothing(said, words):
    settings = resolve(None, (), {**said, "budget.usd": 5})
    with pytest.raises(
        UserError, match=r"budget\.usd: 5 never runs out.*set a limit on evaluations"
    ) as refused:
        check_budget_ends_run(settings.budget.budget(), settings)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "said",
    [
        {"model": "openai/gpt-6.2-sol"},
        {"model": "offline", "models.improve": "openai/gpt-6.2-sol"},
        {"model": "offline", "models.prices": {"offline": {"input": 0, "output": 1}}},
        {"model": "offline", "budget.evaluations": 40},
        {"model": "offline", "budget.tokens": 1_000_000},
        {"model": "offline", "budget.hours": 1},
        {"model": "offline", "budget.agents": 9},
    ],
)
def test_what_ends_a_run_is_not_refused(said):
    settings = resolve(None, (), {"budget.usd": 5, **said})
    check_budget_ends_run(settings.budget.budget(), settings)


@pytest.mark.parametrize("said", [{}, {"budget.agents": 9}])
def test_without_a_limit_that_ends_a_run_its_evaluations_are_limited(said):
    settings = resolve(None, (), {"model": "offline", **said})
    assert settings.budget.budget().evaluations == 160
    check_budget_ends_run(settings.budget.budget(), settings)


@pytest.mark.starts_processes
def test_a_run_that_goes_on_with_a_free_model_is_refused_and_nothing_is_written(tmp_path):
    run = PaidRun(tmp_path / "paid").run
    before = run.tree.seq
    run.close()
    free = {f"models.{role}": "offline" for role in ("solve", "improve", "diagnose")}
    with (
        dgm.open(tmp_path / "paid") as paid,
        pytest.raises(UserError, match="never runs out, for the model offline"),
    ):
        paid.resume(settings=free)
    with Run.open(tmp_path / "paid") as left:
        assert left.tree.seq == before


def spent(budget, usage, evaluations=UNSPENT_EVALUATIONS, expansions=UNSPENT_EXPANSIONS):
    log = Log(budget, tuple(f"task-{n}" for n in range(60)))
    log.born()
    log.graded(0, [False] * evaluations)
    for _ in range(expansions):
        log.made((0,), "self-edit", dies="probe")
    log.add(ModelCalled(ActionId(1), 1, "model", "solve", usage))
    return find_ending(log.tree)


@pytest.mark.parametrize(
    ("budget", "usage", "words"),
    [
        (Budget(tokens=1_000), Usage(1), "took no tokens"),
        (Budget(usd=5.0), Usage(1, 10, 10), "took no money"),
        (Budget(usd=5.0, tokens=1_000, agents=9), Usage(1), "took no money or tokens"),
    ],
)
def test_a_run_ends_once_it_is_plain_that_its_budget_never_runs_out(budget, usage, words):
    over = spent(budget, usage)
    assert over is not None
    assert over.reason is Reason.ENDLESS
    assert EXIT[over.reason] == USAGE
    assert words in over.message
    assert spent(budget, usage, evaluations=UNSPENT_EVALUATIONS - 1) is None
    assert spent(budget, usage, expansions=UNSPENT_EXPANSIONS - 1) is None


@pytest.mark.parametrize(
    ("budget", "usage"),
    [
        (Budget(tokens=1_000), Usage(1, 5, 5)),
        (Budget(usd=5.0), Usage(1, 5, 5, 0.01)),
        (Budget(usd=5.0, tokens=1_000), Usage(1, 5, 5)),
        (Budget(evaluations=100, usd=5.0), Usage(1)),
        (Budget(usd=5.0, seconds=9e9), Usage(1)),
    ],
)
def test_a_run_whose_budget_is_spent_goes_on(budget, usage):
    assert spent(budget, usage) is None
