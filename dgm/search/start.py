"""Checks before a session starts: the run's settings and their changes, its budget, its models and their costs.

A resume may change some settings, the place of the benchmark, and verdicts without a model. Everything else decides
the meaning of the run's decisions, and stays frozen.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from dgm.archive.events import (
    CallBooked,
    CallRefused,
    ModelCalled,
    Recorded,
    RunChanged,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.finding import unpacked_copies_folder
from dgm.archive.journal import CallReader
from dgm.archive.live import end_checks, read_earlier_checks
from dgm.archive.run import Run, diff_tables
from dgm.benchmarks.formats import FORMATS, format_of
from dgm.config import Settings, read_frozen
from dgm.consents import ConsentNeeded
from dgm.domain import ActionId, Budget, Evaluate, Usage, Verdict
from dgm.errors import Hint, ProviderRefuses, ProviderWaits, UserError
from dgm.gateway.allowed import LEFT_OUT
from dgm.gateway.blame import FAILED
from dgm.gateway.journal import RunJournal
from dgm.gateway.lease import SPENT
from dgm.messages import CONTEXT_LENGTH, CUT_SHORT, LEFT_OPEN
from dgm.models.check import NullListener
from dgm.models.choose import all_names, names_by_role, open_models
from dgm.models.pricing import Price, Prices, is_free
from dgm.models.providers import without_addresses
from dgm.models.reach import list_unagreed
from dgm.protocols import Checked, LentModel, Sleep, WireModel

CHECK_TOKENS = 4_000
"""Bound on the input tokens of a check, which differs between models only by their names."""
LONGEST_WAIT_S = 900.0
"""Maximum wait in seconds of a check, at the request of a provider; one that asks for more ends the command."""
CUT_CHECK = "a check of it was cut off and is counted at its worst case"

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def settings_of(run: Run, until: int | None = None) -> Settings:
    """Return the settings of a run; for a packed run, without the addresses of its maker's models.

    A stranger's address cannot be trusted, nor the name of the variable whose value would be sent there.

    Args:
        run: the run.
        until: number of the last event whose changes count; None for all that the run's tree has read.
    """
    settings = read_frozen(run.settings(until), str(run.folder / "run.json"))
    if not run.folder.resolve().is_relative_to(unpacked_copies_folder().resolve()):
        return settings
    return without_addresses(settings)


def require_consent(run: Run, settings: Settings) -> None:
    """Make sure that this user has agreed to where a run would send keys, and to the prices that it counts with.

    Whoever made the run on this machine has. Values that this user chose now, instead of the run's, need no consent.

    Args:
        run: whose settings are used.
        settings: those that are about to be used.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names an address, a variable or a price of its own.
    """
    unagreed = list_unagreed(settings, settings_of(run))
    if unagreed:
        words = "; ".join(one.words for one in unagreed)
        raise ConsentNeeded(
            f"{run.name}: was not made by you on this machine, and would use its own {words}",
            f"{run.name} was not made by you on this machine. Use its {words}",
            unagreed,
        )


def group_by_settings(run: Run, actions: Iterable[ActionId]) -> Sequence[tuple[int, Sequence[ActionId]]]:
    """Group actions by the settings that they were performed with.

    Returns:
        For each group the number of an event at which its settings held, and its actions in the order given.
        There is one group if the settings were never changed.
    """
    if not run.tree.changes:
        return [(run.tree.seq, list(actions))]
    groups: dict[int, list[ActionId]] = {}
    for action in actions:
        starts = run.store.starts_of_action(action)
        # The last change before the last start; 0: before all of them.
        change = max((seq for seq, _ in run.tree.changes if starts and seq < starts[-1][0]), default=0)
        groups.setdefault(change, []).append(action)
    return sorted(groups.items())


def current_settings_at(run: Run, until: int) -> Settings:
    """Return the settings at event ``until``, with the present place of the benchmark."""
    place: Mapping[str, str] = {"benchmark": run.settings()["benchmark"]}
    return settings_of(run, until).model_copy(update=place)


def prices_of(settings: Settings) -> Mapping[str, Price]:
    """Return the price of each model of the settings, by its name.

    Raises:
        UserError: there is no such model, or it has no known price.
    """
    prices = Prices.load(settings)
    return {name: prices.of(name) for name in all_names(settings)}


async def check_models(
    settings: Settings, known: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> Sequence[Checked]:
    """Make one small real call to every model, and return its cost and findings.

    Args:
        settings: name the models.
        known: model → its abilities, as an earlier session recorded them.

    Raises:
        UserError: a key is missing or wrong, there is no such model, or it has no known price.
        Infrastructure: one does not answer now.
    """
    async with _open_priced(settings) as models:
        for model in models:
            if isinstance(model, WireModel):
                model.adopt(NullListener(), known.get(model.name))
        checked = await asyncio.gather(*(check_patiently(model.check) for model in models))
    return [one for one in checked if one is not None]


async def require_models(settings: Settings) -> None:
    """Make sure, without a call, that every model exists, and has its key and a known price.

    Raises:
        UserError: one does not.
    """
    async with _open_priced(settings):
        pass


@asynccontextmanager
async def _open_priced(settings: Settings) -> AsyncIterator[Iterable[LentModel]]:
    if "recorded" in all_names(settings):
        raise UserError(
            "model 'recorded' answers in replays only",
            hint=Hint("to let agents work on recorded replies", "replay", ("RUN",), {"what": "work"}),
        )
    # Opened before they are priced: a model that does not exist has no price.
    models = set(open_models(settings).values())
    try:
        prices_of(settings)
        yield models
    except ProviderRefuses as error:
        raise UserError(str(error)) from error
    finally:
        await asyncio.gather(*(model.close() for model in models))


async def check_patiently(
    check: Callable[[], Awaitable[_Result]],
    sleep: Sleep = asyncio.sleep,
    now: Callable[[], float] = time.time,
) -> _Result:
    """Make a check, and make it again after the wait that a provider asks for.

    Raises:
        ProviderWaits: the provider asks for a wait of more than ``LONGEST_WAIT_S``.
    """
    while True:
        try:
            return await check()
        except ProviderWaits as wait:
            seconds = wait.until - now()
            if seconds > LONGEST_WAIT_S:
                raise
            log.warning("%s; waiting", wait)
            await sleep(max(seconds, 0.0))


def worst_of_checks(settings: Settings) -> Mapping[str, Usage]:
    """Return the maximum usage of each billed model's check."""
    worst = {}
    for name, price in prices_of(settings).items():
        if not is_free(name):
            output = price.reply_limit(settings.limits.output_tokens)
            worst[name] = Usage(1, CHECK_TOKENS, output, price.most(CHECK_TOKENS, output))
    return worst


def note_checks(run: Run, settings: Settings, checks: Sequence[Checked]) -> None:
    """Record the costs and findings of the models' checks in the log of a run.

    Checks that a process's death cut off are counted at their worst case: they may have been answered.
    """
    prices = prices_of(settings)
    journal = RunJournal(run)
    for model, worst in read_earlier_checks(run.folder):
        journal.learned(model, run.tree.model_facts.abilities.get(model, {}), CUT_CHECK, worst)
    for one in checks:
        usage = replace(one.usage, usd=prices[one.model].cost(one.usage))
        journal.learned(one.model, one.abilities, "; ".join(one.words), usage)
    end_checks(run.folder, counted=True)


def check_budget_ends_run(budget: Budget, settings: Settings) -> None:
    """Make sure that the budget ends the run: money never runs out with models that cost nothing.

    Without a limit of evaluations, money, tokens or time a run gets a limit of evaluations
    (``BudgetSettings.budget``). So a limit of agents alone needs no check here.

    Args:
        budget: of the session that is about to begin.
        settings: of the run, with every ``auto`` replaced by a model.

    Raises:
        UserError: only money limits the run, and all its models are free; or an error of ``prices_of``.
    """
    others = (budget.evaluations, budget.agents, budget.tokens, budget.seconds, budget.patience)
    if budget.usd is None or any(limit is not None for limit in others):
        return
    prices = prices_of(settings)
    if not any(map(_costs_money, prices.values())):
        raise UserError(
            f"{budget.usd:g} never runs out, for {_format_costing_models(prices)} nothing; set a limit on "
            "evaluations, tokens, hours or patience as well",
            argument="budget.usd",
        )


def _costs_money(price: Price) -> bool:
    rates = (price.rates, *(tier.rates for tier in price.long))
    return any(each.dearest_input or each.output for each in rates)


def _format_costing_models(prices: Mapping[str, Price]) -> str:
    names = sorted(prices)
    return f"the model {names[0]} costs" if len(names) == 1 else f"the models {', '.join(names)} cost"


TRIES = 200
"""Maximum number of the newest graded evaluations that are read."""


@dataclass(frozen=True, slots=True)
class EvaluationSample:
    """The cost and time of one graded evaluation."""

    usd: float
    seconds: float


@dataclass(frozen=True, slots=True)
class BudgetReach:
    """The mean cost of an evaluation by a few tries, and the evaluations left in the budget."""

    tries: int
    usd: float
    """Mean cost of one evaluation in USD."""
    evaluations: int | None
    """Evaluations left in the budget, by the limit reached first; None if neither money nor their number is limited."""
    by: str
    """The limit reached first: ``usd`` or ``evaluations``; empty if there is none."""
    seconds: float | None
    """Time for these evaluations in seconds, with all workers at work; None if nothing limits them."""


def compute_reach(
    tries: Sequence[EvaluationSample], budget: Budget, spent_usd: float, graded: int, workers: int
) -> BudgetReach:
    """Return the mean cost of evaluations by ``tries``, and the number of further ones in the budget.

    The making of children is left out: it costs something else, and the policy decides how many are made.

    Args:
        tries: at least one.
        budget: of the session.
        spent_usd: so far, for everything.
        graded: evaluations so far.
        workers: steps at once.
    """
    usd = sum(one.usd for one in tries) / len(tries)
    seconds = sum(one.seconds for one in tries) / len(tries)
    limits: dict[str, int] = {}
    if budget.usd is not None and usd > 0.0:
        limits["usd"] = int(max(0.0, budget.usd - spent_usd) / usd)
    if budget.evaluations is not None:
        limits["evaluations"] = max(0, budget.evaluations - graded)
    by = min(limits, key=limits.__getitem__, default="")
    left = limits.get(by)
    return BudgetReach(len(tries), usd, left, by, None if left is None else left * seconds / max(workers, 1))


def find_priced_models(settings: Settings) -> Mapping[str, Price]:
    """Return the models of a run that are billed, with their prices.

    Raises:
        UserError: one of them has no known price.
    """
    prices = prices_of(settings)
    return {name: prices[name] for name in all_names(settings) if prices[name].most(1, 1) > 0.0}


def max_evaluation_usd(settings: Settings, price: Price) -> float:
    """Return the maximum cost of one evaluation in USD by the limits of the run, if the solver has this price.

    A call that crosses ``limits.tokens`` is still answered: its size is counted if the model's context is
    known.
    """
    limits = settings.limits
    per_reply = price.reply_limit(limits.output_tokens)
    tokens = limits.tokens + (price.context or 0)
    if price.context:
        tokens = min(tokens, limits.calls * price.context)
    output = min(limits.calls * per_reply, tokens)
    usd = max(price.most(tokens - output, output), price.most(tokens, 0))
    if limits.usd is not None:
        usd = min(usd, limits.usd)
    tries = [format_of(name).tries(settings.benchmarks) for name in FORMATS if name in settings.benchmark]
    return usd * max(tries, default=1)


def max_remaining_usd(settings: Settings, budget: Budget, spent_usd: float) -> float | None:
    """Return the USD that a session can still spend at most; None if nothing limits them."""
    prices = find_priced_models(settings)
    bounds = [] if budget.usd is None else [max(0.0, budget.usd - spent_usd)]
    if budget.tokens is not None:
        bounds.append(
            max((price.most(budget.tokens, budget.tokens) for price in prices.values()), default=0.0)
        )
    return min(bounds, default=None)


def solver_price(settings: Settings) -> tuple[str, Price] | None:
    """Return the name and price of the model that works on tasks; None if it costs nothing."""
    name = names_by_role(settings)["solve"]
    price = find_priced_models(settings).get(name)
    return None if price is None else (name, price)


def tries_of(run: Run) -> Sequence[EvaluationSample]:
    """Return the cost and time of each of the newest graded evaluations, over all its tries."""
    events = run.store.events(TaskGraded, until=run.tree.seq)
    graded = [event for event in events if event.outcome.verdict is not Verdict.INVALID]
    return [
        EvaluationSample(run.tree.spend_of(event.action).usd, event.outcome.cost.seconds)
        for event in graded[: -TRIES - 1 : -1]
    ]


SETTABLE = ("models", "providers", "limits", "workers", "sandbox", "scale")
"""Top-level names of settings that a resume may change, beside the place of the benchmark."""
OF_ONE_REQUEST = (CONTEXT_LENGTH, "content_filter", CUT_SHORT, SPENT, FAILED, LEFT_OPEN, LEFT_OUT)
"""Codes of refusals that concern one request only, not the account or the abilities of the model."""
_REFUSED = "SELECT DISTINCT action FROM events WHERE kind = 'call_refused' AND seq <= ? ORDER BY action"


def change_event(before: Settings, after: Settings) -> RunChanged | None:
    """Return the event that turns ``before`` into ``after``; None if they are the same."""
    found = diff_tables(before.model_dump(mode="json"), after.model_dump(mode="json"))
    return RunChanged(found) if found else None


def withdraw_refused_verdicts(run: Run) -> Sequence[VerdictWithdrawn]:
    """Find the verdicts on agents that were refused their model for no fault of theirs, and withdraw them.

    Such an evaluation is unresolved. The provider refused one of its calls for another reason than
    ``OF_ONE_REQUEST``, and no call was answered after that. Refusals by the gateway itself do not count.

    Returns:
        Events to be appended, by action.

    Raises:
        ArchiveCorrupt: a recorded reply is missing or damaged.
    """
    found = (
        _withdrawal_of(run, ActionId(action)) for (action,) in run.store.query(_REFUSED, (run.tree.seq,))
    )
    return [event for event in found if event is not None]


def _withdrawal_of(run: Run, action: ActionId) -> VerdictWithdrawn | None:
    events = run.store.events_of_action(action)
    last = max((item.seq for item in events if isinstance(item.event, VerdictWithdrawn)), default=0)
    graded = [item for item in events if isinstance(item.event, TaskGraded) and item.seq > last]
    if not graded or not isinstance(graded[-1].event, TaskGraded):
        return None
    outcome = graded[-1].event.outcome
    if outcome.verdict is not Verdict.UNRESOLVED:
        return None
    refused = _find_void_calls(run, [item for item in events if item.seq > last])
    if refused is None:
        return None
    void, why = refused
    what = Evaluate(outcome.agent, outcome.task, outcome.attempt)
    return VerdictWithdrawn(action, graded[-1].seq, what, outcome.verdict, why, tuple(void))


def _find_void_calls(run: Run, events: Sequence[Recorded]) -> tuple[list[int], str] | None:
    """Return the numbers of recorded refusals and the last reason; None if none came after the last answer.

    A refusal that a change of the settings may end is not recorded as an answer: its call is booked at nothing.
    """
    reader = CallReader(run.store)
    void: list[int] = []
    refused, booked, why = False, False, ""
    for item in events:
        match item.event:
            case ModelCalled(number=number) as call:
                error = reader.reply(call).error
                refused, booked = bool(error) and error not in OF_ONE_REQUEST, False
                void += [number] if refused else []
            case CallBooked():
                booked = True
            case CallRefused(code=code, message=message) if code not in OF_ONE_REQUEST:
                why = f"refused {code}: {message}"
                refused, booked = refused or booked, False
            case _:
                pass
    return (void, why) if refused else None
