"""Rounds of promotion as a gate of a search: when they are performed, what they decide, what is written."""

import asyncio
from types import SimpleNamespace

import pytest

from dgm.api.promotion import find_obstacle, perform_due_round, promote
from dgm.api.watcher import Watcher
from dgm.archive.events import PromotionDecided, PromotionStarted
from dgm.archive.run import Run
from dgm.assemble import RunParts
from dgm.config import Settings
from dgm.domain import SEED, AgentId, Born, Budget, Evaluate, Split, TaskId, Usage, Verdict
from dgm.errors import UserError
from dgm.views.promotion import PromotionsView
from tests.support.runs.builder import RunBuilder, create_run, make_config
from tests.support.runs.made import make_run

pytestmark = pytest.mark.starts_processes

TASKS = tuple(TaskId(f"promotion-{number}") for number in range(9))
SETTINGS = Settings(model="offline", policy={"name": "hgm"}, promotion={"every": 4})
BENCHMARK = SimpleNamespace(
    name="words",
    version="1",
    tasks=lambda split: [SimpleNamespace(id=task) for task in TASKS if split is Split.PROMOTION],
)


@pytest.fixture
def search(tmp_path):
    """A search whose best agent, the second one, resolves four tasks of four; the seed resolves one of eight."""
    folder = make_run(tmp_path / "search", SETTINGS, ["+-------", "++++"], reason="")
    with Run.open(folder, write=True) as run:
        yield run


def evaluate(run, outcomes):
    """The promotion evaluations of both agents, as texts of ``+`` and ``-``."""
    config = make_config(SETTINGS, kind="promotion")
    with create_run(run.folder / "promotion", config, Budget(), TASKS) as promotion:
        made = RunBuilder(promotion)
        for agent, outcome in enumerate(outcomes):
            commit = run.tree.agents[agent].commit
            child = promotion.repository.commit(run.repository.source(commit), ())
            promotion.append(promotion.birth(Born((), "candidate", child, ""), 0, key=commit))
            for task, sign in zip(TASKS, outcome, strict=False):
                action = made.begin(Evaluate(AgentId(agent), task))
                made.record_call(action, 1, "offline", usage=Usage(1, 10, 1, 0.5))
                verdict = Verdict.RESOLVED if sign == "+" else Verdict.UNRESOLVED
                made.record_verdict(action, agent, task, verdict)


def perform(run, settings=SETTINGS):
    return asyncio.run(perform_due_round(run, settings, RunParts(None, BENCHMARK), Watcher()))


def test_a_round_that_is_due_is_decided_charged_and_certified_and_none_follows_without_a_new_best_agent(
    search,
):
    evaluate(search, ["---------", "++++++++-"])
    assert perform(search) is None
    promotions = search.tree.promotions
    assert (promotions.certified, promotions.count, promotions.evaluations) == (1, 1, 12)
    assert search.tree.promotion_spend.usd == search.tree.spend.usd == 9.0
    assert PromotionsView.load(search).level == pytest.approx(0.0125)
    seq = search.tree.seq
    assert perform(search) is None
    assert search.tree.seq == seq
    (file,) = (search.folder / "certificates").iterdir()
    assert promote(search.folder, verify=file).holds
    assert promote(verify=file).certificate["test"]["wins"] == 8


def test_a_gain_that_may_be_luck_is_not_accepted_and_not_asked_about_again(search):
    evaluate(search, ["--------+", "++++++---"])
    assert perform(search) is None
    assert search.tree.promotions.accepted == [None]
    assert not (search.folder / "certificates").exists()
    assert "a later round cannot accept it" in find_obstacle(search, [1], 9, SETTINGS)
    assert "no result reaches" in find_obstacle(search, [], 7, SETTINGS)
    assert find_obstacle(search, [], 8, SETTINGS) == ""
    assert "is the incumbent" in find_obstacle(search, [SEED], 9, SETTINGS)
    assert "at most 1 candidate" in find_obstacle(search, [1, 0], 9, SETTINGS)


def test_a_round_that_was_begun_is_finished_with_its_own_candidates_and_rules(search):
    evaluate(search, ["---------", "++++++++-"])
    search.append(PromotionStarted(1, SEED, (AgentId(1),), 0.01, 2))
    assert perform(search, Settings(model="offline")) is None
    assert search.tree.promotions.accepted == [None]
    assert PromotionsView.load(search).level == pytest.approx(0.01 / 4 / 2)


@pytest.mark.parametrize(
    ("every", "evaluations"), [(0, 12), (13, 12), (5, 12)], ids=["off", "not yet", "begun since"]
)
def test_no_round_is_performed_before_it_is_due(search, every, evaluations):
    if every == 5:
        search.append(PromotionStarted(1, SEED, (AgentId(1),), 0.05, 1))
        search.append(PromotionDecided(1))
    seq = search.tree.seq
    assert search.tree.evaluations == evaluations
    assert (
        perform(
            search, SETTINGS.model_copy(update={"promotion": Settings(promotion={"every": every}).promotion})
        )
        is None
    )
    assert search.tree.seq == seq


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"model": "openai/other"}, "were graded with offline, so verdicts with openai/other would not"),
        ({"limits": SETTINGS.limits.model_copy(update={"calls": 7})}, "with another limits.calls"),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_verdicts_of_other_conditions_are_not_compared(search, change, problem, begun, caplog):
    evaluate(search, ["---------", "++++++++-"])
    if begun:
        search.append(PromotionStarted(1, SEED, (AgentId(1),), 0.05, 1))
    seq = search.tree.seq
    assert perform(search, SETTINGS.model_copy(update=change)) is None
    assert (search.tree.seq, problem in caplog.text) == (seq, True)


def test_a_certificate_of_another_run_does_not_hold_against_this_one(search, tmp_path):
    evaluate(search, ["---------", "++++++++-"])
    perform(search)
    (file,) = (search.folder / "certificates").iterdir()
    other = make_run(tmp_path / "other", SETTINGS, ["+"])
    assert "no promotion evaluations" in promote(other, verify=file).problem
    with pytest.raises(UserError, match="name the file of a certificate"):
        promote(verify=tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("words", "options", "problem"),
    [
        ((), {}, "name a run"),
        (("run",), {"benchmark": "starter"}, "^benchmark: has an effect only with verify"),
        (("run",), {"verify": "c.json", "max_usd": 1.0}, "^max_usd: has an effect only without verify"),
        (("run", "1"), {"verify": "c.json"}, "^verify: a certificate is compared with one run"),
        (("run",), {"max_usd": -1.0}, "^max_usd: "),
        (("run",), {"certificate": "/nowhere/c.json"}, "^certificate: "),
    ],
)
def test_wrong_arguments_are_named(words, options, problem):
    with pytest.raises(UserError, match=problem):
        promote(*words, **options)
