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


FREE = {"models.prices": {"openai/gpt-6.2-sol": {"input": 0, "output": 0}}}


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ({"model": "offline"}, False),
        ({"model": "openai-compatible/qwen", "models.improve": "offline", **LOCAL}, False),
        ({"model": "openai/gpt-6.2-sol", **FREE}, False),
        ({"model": "openai/gpt-6.2-sol"}, True),
        ({"model": "offline", "models.improve": "openai/gpt-6.2-sol"}, True),
        ({"model": "offline", "models.prices": {"offline": {"input": 0, "output": 1}}}, True),
        ({"model": "offline", "budget.evaluations": 40}, True),
        ({"model": "offline", "budget.hours": 1}, True),
    ],
)
def test_money_alone_does_not_end_a_run_whose_models_cost_nothing(values, ends):
    settings = resolve(None, (), {"budget.usd": 5, **values})
    if ends:
        check_budget_ends_run(settings.budget.budget(), settings)
        return
    with pytest.raises(UserError, match=r"budget\.usd: 5 never runs out.*set a limit on evaluations"):
        check_budget_ends_run(settings.budget.budget(), settings)


@pytest.mark.parametrize("values", [{}, {"budget.agents": 9}])
def test_without_a_limit_that_ends_a_run_its_evaluations_are_limited(values):
    settings = resolve(None, (), {"model": "offline", **values})
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
