"""Show a session on the terminal, and ask questions there."""

import sys
from collections.abc import Sequence

from dgm import launch
from dgm.archive.events import Recorded
from dgm.cli.consent import ask_to_spend
from dgm.cli.model_check import tell_checks
from dgm.cli.progress import RunProgress, listen_for_signals
from dgm.cli.spending import FirstCosts
from dgm.config import Settings
from dgm.models.auto import Offer
from dgm.protocols import Checked
from dgm.search.loop import Search


class TerminalWatcher(launch.Watcher):
    """A watcher that reports and asks on the terminal, and stops a session in good order on a signal."""

    def __init__(self) -> None:
        self._shown: RunProgress | None = None
        self._costs: FirstCosts | None = None

    def may_use(self, offer: Offer) -> bool:
        """Ask once for each provider; the answer is remembered."""
        return ask_to_spend(offer)

    def model_chosen(self, why: str) -> None:
        """Say which model and why."""
        sys.stderr.write(f"model: {why}\n")

    def models_checked(self, settings: Settings, checks: Sequence[Checked]) -> None:
        """Report the cost of each check."""
        tell_checks(settings, checks)

    def attach(self, shown: RunProgress, costs: FirstCosts | None = None) -> None:
        """Show events from now on, and the cost of the first evaluations."""
        self._shown, self._costs = shown, costs

    def begins(self, search: Search) -> None:
        """Show the search; let signals stop it in good order."""
        if self._shown is not None:
            self._shown.attach(search)
            listen_for_signals(search, self._shown)

    def event(self, recorded: Recorded) -> None:
        """Show the event."""
        if self._shown is not None:
            self._shown.event(recorded)
        if self._costs is not None:
            self._costs.event(recorded)
