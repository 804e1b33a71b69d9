"""``dgm report``: is the best agent better than the seed, and how do several runs compare."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dgm.api import report as api
from dgm.api.watcher import Counts, Watcher
from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.cli.app import call_with_consent, confirm, derive, print_json
from dgm.cli.output import make_console
from dgm.config import Settings
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.render import fmt
from dgm.render.report_text import render_comparison, render_report
from dgm.render.safe import one_line
from dgm.views.comparison import ComparisonView
from dgm.views.report import ReportView

MESSAGE_CELLS = 1_000


class HoldoutWatcher(Watcher):
    """A watcher that shows the progress of holdout evaluations, and asks for the control's price."""

    def __init__(self, *, quiet: bool) -> None:
        """Create a watcher; ``quiet`` shows no progress."""
        super().__init__()
        self._quiet = quiet
        self._progress: Any = None

    def confirm_price(self, price: str) -> None:
        """Ask on a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise UserError(f"{price}; add --yes to perform it")
        if not confirm(f"{price}; perform it?"):
            raise UserError("not confirmed: nothing was performed, and nothing was spent")

    @contextmanager
    def show(
        self,
        run: Run,
        settings: Settings | None = None,
        names: Mapping[AgentId, str] = MappingProxyType({}),
        counts: Counts | None = None,
    ) -> Iterator[None]:
        """Show the evaluations by agent, done and in all."""
        from dgm.cli.progress import show_progress

        del settings
        with show_progress(run, quiet=self._quiet, names=names, counts=counts) as self._progress:
            yield

    def begins(self, search: Any) -> None:  # noqa: ANN401  (a search, whose module takes long to import)
        """Show the actions under way."""
        self._progress.attach(search)
        super().begins(search)

    def event(self, recorded: Recorded) -> None:
        """Show an event."""
        if self._progress:
            self._progress.event(recorded)


def show_report(view: ReportView | ComparisonView) -> None:
    """Print a view, and the files that were written."""
    console = make_console()
    console.print(render_report(view) if isinstance(view, ReportView) else render_comparison(view))
    for file in view.files:
        console.print(f"wrote {_path_text(file)}", markup=False)
    if isinstance(view, ReportView) and view.ending:
        again = "give it more with --max-usd" if view.exit_code == 3 else "run the same command again"
        message = one_line(view.ending.message, MESSAGE_CELLS)
        sys.stderr.write(f"the holdout evaluations are not complete: {message}; {again}\n")


def _path_text(file: Path) -> str:
    return f"{one_line(str(file), 300)} ({fmt.size(file.stat().st_size)})"


def report(*runs: str, json: bool = False, trust: bool = False, **options: Any) -> int:  # noqa: ANN401  (as derived)
    """Report on runs."""
    watcher = HoldoutWatcher(quiet=json)
    view = call_with_consent(lambda: api.report(*runs, watcher=watcher, **options), agree=trust)
    if json:
        print_json(view)
    else:
        show_report(view)
    return view.exit_code if isinstance(view, ReportView) else 0


_derived = derive(api.report, show_report, trust=True, omit=("control_attempts",))
report.__doc__ = _derived.__doc__
report.__signature__ = inspect.signature(_derived)  # type: ignore[attr-defined]
report.__annotations__ = {name: parameter.annotation for name, parameter in report.__signature__.parameters.items()}  # type: ignore[attr-defined]
