"""``dgm report``: is the best agent better than the seed, and how do several runs compare."""

import sys
from functools import wraps
from types import SimpleNamespace
from typing import Any

from dgm.api import report as api
from dgm.cli.app import derive
from dgm.cli.output import make_console
from dgm.render import fmt
from dgm.render.report_text import render_comparison, render_report
from dgm.render.safe import one_line
from dgm.views.comparison import ComparisonView
from dgm.views.report import ReportView

PATH_CELLS, MESSAGE_CELLS = 300, 1_000


@wraps(api.report)
def _report(*runs: Any, watcher: SimpleNamespace, **options: Any) -> ReportView | ComparisonView:
    if options.get("holdout") or options.get("control"):
        # Its modules take long to import.
        from dgm.cli.watching import TerminalWatcher

        options["watcher"] = TerminalWatcher(quiet=watcher.quiet)
    return api.report(*runs, **options)


def show_report(view: ReportView | ComparisonView) -> None:
    """Print a view, and the files that were written."""
    console = make_console()
    console.print(render_report(view) if isinstance(view, ReportView) else render_comparison(view))
    for file in view.files:
        size = fmt.size(file.stat().st_size)
        console.print(f"wrote {one_line(str(file), PATH_CELLS)} ({size})", markup=False)
    if isinstance(view, ReportView) and view.ending:
        again = "give it more with --max-usd" if view.exit_code == 3 else "run the same command again"
        message = one_line(view.ending.message, MESSAGE_CELLS)
        sys.stderr.write(f"the holdout evaluations are not complete: {message}; {again}\n")


report = derive(_report, show_report, watcher=SimpleNamespace, trust=True, omit=("control_attempts",))
