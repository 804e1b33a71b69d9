"""The callbacks by which a session informs and asks its caller, and the interrupts by which the caller ends it."""

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.consents import Subject
from dgm.domain import AgentId, Budget
from dgm.errors import Infrastructure, UserError

if TYPE_CHECKING:
    # They take long to import, and reports need none of them.
    from dgm.models.auto import Offer
    from dgm.protocols import Checked
    from dgm.search.loop import Search
    from dgm.views.plan import PlanView

OnEvent = Callable[[Recorded], object]
Counts = Callable[[], Mapping[str, tuple[int, int]]]
"""Returns the name of an agent → its evaluations done, and all of them."""


class Watcher:
    """The caller's side of a session; by default silent, and unwilling to spend what was not allowed."""

    wants_plan = False
    """True if a search that costs money is planned before it begins; this takes a few seconds."""

    def __init__(self, on_event: OnEvent | None = None, *, allow_paid: bool = False) -> None:
        """Create a watcher for one session.

        Args:
            on_event: is called with each event that is on disk.
            allow_paid: whether ``auto`` may stand for a model that costs money.
        """
        self.allow_paid = allow_paid
        self.task: asyncio.Task[Any] | None = None
        """The task of the session, which an interrupt cancels."""
        self._on_event = on_event
        self._raised: BaseException | None = None
        self._stop: Callable[[], bool] = lambda: False
        self._stopped: asyncio.Task[Any] | None = None
        """The task of the session that was stopped gracefully."""

    def may_use(self, offer: "Offer") -> bool:
        """Return whether ``auto`` may stand for a model that costs money.

        Raises:
            UserError: the answer is unknown, and nobody can be asked.
        """
        answer = True if self.allow_paid else consent_to_pay(offer.provider).answer
        if answer is None:
            raise UserError(
                f"{offer.key_variable} is set; name {offer.model} to use it (this costs money), or offline",
                argument="model",
            )
        return answer

    def model_chosen(self, why: str) -> None:
        """Hear which model ``auto`` stands for, and why."""

    def planned(self, plan: "PlanView") -> None:
        """Hear what the budget of a new search buys, if ``wants_plan``."""

    def confirm(self, settings: Settings, budget: Budget, spent_usd: float) -> None:
        """Agree to what the session may cost.

        Raises:
            UserError: the caller does not agree.
        """

    def confirm_grader(self, change: str) -> None:
        """Agree to go on under another grader.

        Args:
            change: one sentence about it.

        Raises:
            UserError: the caller does not agree.
        """
        import logging

        logging.getLogger(__name__).warning(change)

    def created(self, run: Run, settings: Settings) -> None:
        """Hear of a new run, in which nothing has happened yet."""

    def models_checked(self, settings: Settings, checks: "Sequence[Checked]") -> None:
        """Hear what the checks of the models cost and showed."""

    def model_away(self, error: Infrastructure) -> None:
        """Hear that a model does not answer now, and that the search waits for it."""

    def withdrawn(self, evaluations: int) -> None:
        """Hear how many verdicts are withdrawn, so that they are graded again."""

    def step(self, name: str) -> AbstractContextManager[None]:
        """Hear of a step that may take long; it lasts as long as the context."""
        del name
        return nullcontext()

    def show(
        self,
        run: Run,
        settings: Settings | None = None,
        names: Mapping[AgentId, str] = MappingProxyType({}),
        counts: Counts | None = None,
    ) -> AbstractContextManager[None]:
        """Show the progress of a session as long as the context lasts.

        Args:
            run: open to write.
            settings: of the session; None: costs are not forecast.
            names: names of the agents that are not named by their number.
            counts: evaluations by agent; None: the run's budget has their number.
        """
        del run, settings, names, counts
        return nullcontext()

    def begins(self, search: "Search") -> None:
        """Hear that a search begins; an interrupt of this session stops it gracefully, and those that follow it."""

        def stop() -> bool:
            if search.stopping:
                return False
            self.stopping(search.running)
            self._stopped = self.task
            search.ask_to_stop("stopped as asked")
            return True

        self.stops_by(stop)
        if self._stopped is not None and self._stopped is self.task:
            search.ask_to_stop("stopped as asked")

    def stopping(self, running: int) -> None:
        """Hear that the session ends once the actions under way have ended.

        Args:
            running: number of these actions.
        """

    def event(self, recorded: Recorded) -> None:
        """Hear of an event that is on disk; raises what the caller's function raised before.

        Events of model calls are reported while a call is performed, where an exception counts as the call's failure.
        """
        if self._raised is not None:
            raise self._raised
        if self._on_event is not None:
            try:
                self._on_event(recorded)
            except BaseException as error:
                self._raised = error
                raise

    def stops_by(self, stop: Callable[[], bool]) -> None:
        """Stop the session by this function on Ctrl-C, if this is the main thread.

        Args:
            stop: returns whether the session ends gracefully; if not, it is cancelled.
        """
        self._stop = stop
        if self.task is not None and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.interrupt)

    def interrupt(self) -> None:
        """End the session gracefully; the second time, or before its search begins, at once."""
        if not self._stop() and self.task is not None:
            self.task.cancel()


def consent_to_pay(provider: str) -> Subject:
    """Return the user's consent to models of a provider that costs money, where ``auto`` chooses one."""
    return Subject(json.dumps(["paid models", provider]), f"models of {provider}, which cost money")
