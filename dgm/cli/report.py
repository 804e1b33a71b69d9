"""``dgm report``: is the best agent better than the seed, and how do several runs compare."""

import sys

from dgm.api import report as api
from dgm.cli.app import derive
from dgm.cli.output import make_console
from dgm.cli.watching import TerminalWatcher
from dgm.render import fmt
from dgm.render.report_text import render_comparison, render_report
from dgm.render.safe import one_line
from dgm.views.comparison import ComparisonView
from dgm.views.report import ReportView

PATH_CELLS, MESSAGE_CELLS = 300, 1_000


def show_report(view: ReportView | ComparisonView) -> None:
    """Print a view, and the files that were written."""
    console = make_console()
    console.print(render_report(view) if isinstance(view, ReportView) else render_comparison(view))
    for file in view.files:
        console.print(
            f"wrote {one_line(str(file), PATH_CELLS)} ({fmt.size(file.stat().st_size)})", markup=False
        )
    if isinstance(view, ReportView) and view.ending:
        again = "give it more with --max-usd" if view.exit_code == 3 else "run the same command again"
        message = one_line(view.ending.message, MESSAGE_CELLS)
        sys.stderr.write(f"the holdout evaluations are not complete: {message}; {again}\n")


report = derive(api.report, show_report, watcher=TerminalWatcher, trust=True, omit=("control_attempts",))
