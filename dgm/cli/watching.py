"""The watcher of a session on the terminal: shows its progress, reports costs, and asks."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from dgm.api.watcher import Counts, Watcher, consent_to_pay
from dgm.archive.events import Recorded, TaskGraded
from dgm.archive.run import Run, RunKind
from dgm.cli.app import confirm
from dgm.cli.output import print_view
from dgm.cli.progress import RunProgress, show_progress
from dgm.cli.steps import show_preparations
from dgm.config import Settings
from dgm.domain import AgentId, Budget
from dgm.errors import Infrastructure, UserError
from dgm.models.auto import Offer
from dgm.protocols import Checked
from dgm.render import fmt
from dgm.render.plan_text import render_plan
from dgm.render.safe import one_line
from dgm.search.loop import Search
from dgm.search.start import (
    BudgetReach,
    compute_reach,
    find_priced_models,
    max_evaluation_usd,
    max_remaining_usd,
    prices_of,
    solver_price,
    tries_of,
)
from dgm.views.plan import PlanView

FIRST_S, EVERY_S = 10.0, 60.0
"""Seconds after which a step is reported, and between further reports."""
NOTE_CELLS = 1_000
TRIES = 2
"""Number of graded evaluations after which their cost is reported."""
INPUT_TOKENS, OUTPUT_TOKENS = 10_000, 1_000
"""Tokens of the example call whose price a question names."""
CANCELLED = "not confirmed: nothing was begun, and nothing was spent"


class TerminalWatcher(Watcher):
    """A watcher that prints and asks on the terminal; without a terminal it asks nothing."""

    wants_plan = True

    def __init__(self, *, quiet: bool = False, yes: bool = False) -> None:
        """Create a watcher for one session.

        Args:
            quiet: show no progress, because standard output is for JSON.
            yes: whether the answer to every question about costs is yes.
        """
        super().__init__()
        self.quiet = quiet
        self.names_run = False
        """Whether to print the name of a new run, because the user gave none."""
        self.run_name = ""
        """Name of the run that is shown, or was."""
        self._yes = yes
        self._progress: RunProgress | None = None
        self._costs: FirstCosts | None = None
        show_preparations()

    def may_use(self, offer: Offer) -> bool:
        """Ask once for each provider, and remember the answer."""
        subject = consent_to_pay(offer.provider)
        if subject.answer is None and can_ask():
            answer = confirm(consent_question(offer))
            try:
                subject.agree(answer)
            except UserError as error:
                sys.stderr.write(f"{error}\n")
            return answer
        return super().may_use(offer)

    def model_chosen(self, why: str) -> None:
        """Print which model, and why."""
        sys.stderr.write(f"model: {why}\n")

    def planned(self, plan: PlanView) -> None:
        """Print the plan."""
        print_view(render_plan(plan), stderr=True)

    def confirm(self, settings: Settings, budget: Budget, spent_usd: float) -> None:
        """Ask if the session may cost more than ``budget.confirm_above_usd``."""
        if self._yes or not can_ask():
            return
        question = spending_question(settings, budget, spent_usd)
        if question and not confirm(question):
            raise UserError(CANCELLED)

    def confirm_grader(self, change: str) -> None:
        """Ask whether the search may go on under another grader."""
        if self._yes:
            sys.stderr.write(f"{change}\n")
        elif not can_ask():
            raise UserError(f"{change}; start a new run, or add --yes to go on")
        elif not confirm(f"{change}; go on?"):
            raise UserError(CANCELLED)

    def created(self, run: Run, settings: Settings) -> None:
        """Print the prices, and the name of a run that got one from the clock."""
        print_prices(settings)
        if self.names_run:
            sys.stderr.write(f"run: {run.name} in {run.folder.parent}\n")

    def models_checked(self, settings: Settings, checks: Sequence[Checked]) -> None:
        """Print the cost and the findings of each check."""
        prices = prices_of(settings)
        for check in checks:
            usd = fmt.money(prices[check.model].cost(check.usage))
            findings = "".join(f"; {one_line(words, 300)}" for words in check.words)
            sys.stderr.write(
                f"model {check.model}: answers (a check of {check.usage.tokens:,} tokens, {usd}){findings}\n"
            )

    def model_away(self, error: Infrastructure) -> None:
        """Print that the search will wait."""
        sys.stderr.write(f"{one_line(str(error), NOTE_CELLS)}; the search will wait for it\n")

    def withdrawn(self, evaluations: int) -> None:
        """Print how many evaluations are repeated."""
        sys.stderr.write(f"to be repeated: {fmt.count(evaluations, 'evaluation')}\n")

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Print the step if it takes long, and how long it has taken."""
        ended = threading.Event()
        began = time.monotonic()

        def report() -> None:
            pause = FIRST_S
            while not ended.wait(pause):
                sys.stderr.write(f"{name} ({fmt.duration(time.monotonic() - began)})\n")
                sys.stderr.flush()
                pause = EVERY_S

        threading.Thread(target=report, name="step", daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    @contextmanager
    def show(
        self,
        run: Run,
        settings: Settings | None = None,
        names: Mapping[AgentId, str] = MappingProxyType({}),
        counts: Counts | None = None,
    ) -> Iterator[None]:
        """Show events from now on, and the cost of the first evaluations."""
        with show_progress(run, quiet=self.quiet, names=names, counts=counts) as progress:
            self._progress, self.run_name = progress, run.name
            self._costs = FirstCosts(run, settings, progress.announce) if settings else None
            try:
                yield
            finally:
                self._progress = self._costs = None

    def begins(self, search: Search) -> None:
        """Show the search; a signal stops it gracefully."""
        if self._progress is not None:
            self._progress.attach(search)
        super().begins(search)

    def stopping(self, running: int) -> None:
        """Show that the session waits for the actions under way."""
        if self._progress is not None:
            actions = fmt.count(running, "running action")
            self._progress.say(f"stopping: waiting for {actions} (once more to stop at once)")

    def event(self, recorded: Recorded) -> None:
        """Show the event."""
        if self._progress is not None:
            self._progress.event(recorded)
        if self._costs is not None:
            self._costs.event(recorded)


def can_ask() -> bool:
    """Return whether there is a terminal to ask on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


# The cost of a session, before it starts and after its first evaluations


def consent_question(offer: Offer) -> str:
    """Return the question whether ``auto`` may stand for a paid model."""
    rates = offer.price.rates
    where = f" at {offer.base_url}" if offer.base_url else ""
    call = f"{offer.price.most(INPUT_TOKENS, OUTPUT_TOKENS):.2g} USD"
    return (
        f"use {offer.model}{where} with {offer.key_variable}? it costs money: {rates.input:g} USD per million tokens "
        f"in, {rates.output:g} out; about {call} per call of {INPUT_TOKENS:,} tokens in and {OUTPUT_TOKENS:,} out"
    )


def print_prices(settings: Settings) -> None:
    """Print the price of the model that works on tasks, and the most that one evaluation can cost.

    Without a limit in USD or tokens, print the worst case of the session as well.
    """
    try:
        solver = solver_price(settings)
        if solver is None:
            return
        name, price = solver
        most = fmt.money(max_evaluation_usd(settings, price))
        budget = settings.budget.budget()
        unlimited = max_remaining_usd(settings, budget, 0.0) is None
    except UserError:
        # The check of the models reports a model without a price, before anything costs.
        return
    sys.stderr.write(
        f"price: {price.rates.input:g} USD per million tokens in, {price.rates.output:g} out ({one_line(name, 80)}); "
        f"one evaluation costs at most {most} by the limits of the run; "
        f"its real cost is reported after {TRIES} evaluations\n"
    )
    if unlimited:
        sys.stderr.write(f"no --max-usd limits the cost{_worst_case(settings, budget)}\n")


def spending_question(settings: Settings, budget: Budget, spent_usd: float) -> str:
    """Return the question before a session; empty if it can spend no more than may be spent unasked.

    Args:
        settings: of the run.
        budget: of the session.
        spent_usd: in earlier sessions.
    """
    above = settings.budget.confirm_above_usd
    try:
        if above is None or not find_priced_models(settings):
            return ""
    except UserError:
        return ""
    most = max_remaining_usd(settings, budget, spent_usd)
    limit = f"budget.confirm_above_usd = {above:g}"
    if most is None:
        return f"no --max-usd limits the cost{_worst_case(settings, budget)} ({limit}); go on?"
    return f"this may cost up to {fmt.money(most)} ({limit}); go on?" if most > above else ""


def _worst_case(settings: Settings, budget: Budget) -> str:
    solver = solver_price(settings)
    if solver is None or budget.evaluations is None:
        return ""
    usd = budget.evaluations * max_evaluation_usd(settings, solver[1])
    return f"; {fmt.count(budget.evaluations, 'evaluation')} alone can cost {fmt.money(usd)}"


class FirstCosts:
    """Reports once the cost of the first evaluations, and how far the budget goes at that price."""

    def __init__(self, run: Run, settings: Settings, tell: Callable[[str], None]) -> None:
        """Report at once if earlier sessions of the run have enough graded evaluations.

        Args:
            run: open to write, in its new session.
            settings: of the session.
            tell: shows one line.
        """
        self._run, self._workers, self._tell = run, settings.workers, tell
        self._wanted = bool(find_priced_models(settings))
        self._tell_if_known()

    def event(self, recorded: Recorded) -> None:
        """Take note of an event that the run's tree has read."""
        if self._wanted and isinstance(recorded.event, TaskGraded):
            self._tell_if_known()

    def _tell_if_known(self) -> None:
        tree = self._run.tree
        if not self._wanted or tree.evaluations < TRIES:
            return
        self._wanted = False
        reach = compute_reach(
            tries_of(self._run), tree.budget, tree.spend.usd, tree.evaluations, self._workers
        )
        has_children = self._run.kind is RunKind.SEARCH
        self._tell(
            forecast_text(reach, tree.budget, tree.spend.usd, self._workers, has_children=has_children)
        )


def forecast_text(
    reach: BudgetReach, budget: Budget, spent_usd: float, workers: int, *, has_children: bool = True
) -> str:
    """Return the forecast from the first few evaluations as one line."""
    tries = fmt.count(reach.tries, "try", "tries")
    text = f"forecast: about {fmt.money(reach.usd)} an evaluation by {tries}"
    if reach.evaluations is None or reach.seconds is None:
        return f"{text}; nothing limits their number"
    time = f"{fmt.duration(reach.seconds)} with {fmt.count(workers, 'worker')}"
    evaluations = fmt.count(reach.evaluations, "evaluation")
    if reach.by == "usd" and budget.usd is not None:
        left = fmt.money_of(round(max(0.0, budget.usd - spent_usd), 6), budget.usd)
        rest = f"{left} are left, enough for some {evaluations}, {time}"
    else:
        rest = f"the remaining {evaluations} take about {fmt.money(reach.evaluations * reach.usd)}, {time}"
    return f"{text}; {rest}{' (making children comes on top)' if has_children else ''}"
