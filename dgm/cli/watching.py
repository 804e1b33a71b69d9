"""The watcher of a session on the terminal: shows its progress, reports costs, and asks."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from dgm.api.watcher import Counts, Watcher, consent_to_pay
from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.cli.app import confirm
from dgm.cli.progress import RunProgress, show_progress
from dgm.cli.spending import FirstCosts, consent_question, print_prices, spending_question
from dgm.cli.steps import show_preparations
from dgm.config import Settings
from dgm.domain import AgentId, Budget
from dgm.errors import Infrastructure, UserError
from dgm.models.auto import Offer
from dgm.protocols import Checked
from dgm.render import fmt
from dgm.render.safe import one_line
from dgm.search.loop import Search
from dgm.search.start import prices_of

FIRST_S, EVERY_S = 10.0, 60.0
"""Seconds after which a step is reported, and between further reports."""
NOTE_CELLS = 1_000
CANCELLED = "not confirmed: nothing was begun, and nothing was spent"


class TerminalWatcher(Watcher):
    """A watcher that prints and asks on the terminal; without a terminal it asks nothing."""

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
