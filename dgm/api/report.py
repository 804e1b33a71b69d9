"""Reports: is the best agent of a run better than its seed, and how do several runs compare."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dgm.analysis.budgets import Ending, Reason
from dgm.api.running import run_session
from dgm.api.watcher import OnEvent, Watcher
from dgm.archive.durable import write_durably
from dgm.archive.finding import check_unpacked, find_run
from dgm.archive.run import INNER_RUNS, Run
from dgm.errors import UserError
from dgm.evaluation.control import MAX_ATTEMPTS
from dgm.views.comparison import ComparisonView, find_runs
from dgm.views.report import EndingView, ReportView


class DrawnReport(ReportView):
    """A report that a notebook displays with its figure."""

    def __repr__(self) -> str:
        return f"<report on run {self.run}: {self.headline}>"

    def _repr_html_(self) -> str:
        from dgm.render.html.notebook import report_html

        return report_html(self)


class DrawnComparison(ComparisonView):
    """A comparison that a notebook displays with its figure."""

    def __repr__(self) -> str:
        return f"<comparison of {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        from dgm.render.html.notebook import comparison_html

        return comparison_html(self)


class OpenRun(Protocol):
    """A run that is open, such as ``dgm.open`` returns."""

    @property
    def folder(self) -> Path:
        """Its folder."""
        ...


def report(
    *runs: str | Path | OpenRun,
    holdout: bool = False,
    control: bool = False,
    control_attempts: int = MAX_ATTEMPTS,
    max_usd: float | None = None,
    workers: int | None = None,
    group_by: str | None = None,
    html: str | Path | None = None,
    figures: str | Path | None = None,
    confirm: Callable[[str], bool] = lambda _: False,
    on_event: OnEvent | None = None,
    watcher: Watcher | None = None,
) -> ReportView | ComparisonView:
    """Report whether a run's best agent is better than its seed; compare several runs.

    Only reads the runs, unless holdout evaluations are asked for; these cost nothing if they exist.

    Args:
        runs: Names, paths, or patterns such as 'policies-*'.
        holdout: First evaluate seed and best agent on the holdout tasks.
        control: Also give the seed attempts for the search's spend.
        control_attempts: Maximum number of the control's attempts at each task.
        max_usd: Limit for holdout evaluations (default: the run's).
        workers: Parallel holdout evaluations (default: the run's).
        group_by: Pair runs of the same seed by this setting.
        html: Write the report of one run to this file.
        figures: Write SVG figures (curves also as CSV) to this folder.
        confirm: is asked with the price of the control before it is performed.
        on_event: is called with each event of the holdout evaluations.
        watcher: is informed and asked; replaces ``on_event``.

    Returns:
        The report of one run; of several runs a comparison.

    Raises:
        UserError: a run cannot be found, compared or evaluated, or a file cannot be written.
        ArchiveCorrupt: a run is damaged.
    """
    performs = holdout or control
    for name, value in (("max_usd", max_usd), ("workers", workers)):
        if value is not None and not performs:
            raise UserError("has an effect only with holdout", argument=name)
    if performs:
        from dgm.api.arguments import check_amount, check_workers

        check_amount("max_usd", max_usd)
        check_workers(workers)
    page, folder = (None if target is None else Path(target) for target in (html, figures))
    if page:
        check_target(page, "html")
    if folder:
        check_target(folder, "figures", folder=True)
    folders = find_runs([str(run if isinstance(run, str | Path) else run.folder) for run in runs])
    view: ReportView | ComparisonView
    if not folders:
        raise UserError("name at least one run")
    if len(folders) > 1:
        if performs:
            raise UserError("holdout evaluations are performed for one run at a time", argument="holdout")
        if page:
            raise UserError("the page is about one run; a comparison has figures", argument="html")
        view = DrawnComparison.model_construct(**dict(ComparisonView.load(folders, group_by)))
    elif group_by is not None:
        raise UserError("groups several runs, and this is one", argument="group_by")
    elif not performs:
        view = _report_one(folders[0])
    else:
        from dgm.api.holdout import perform_holdout

        attempts, session = control_attempts if control else None, watcher or Watcher(on_event)
        with Run.open(find_run(str(folders[0]), write=True)) as run:
            check_is_search(run)
            check_unpacked(run.folder)
            ending = run_session(
                lambda: perform_holdout(
                    run, session, max_usd=max_usd, control_attempts=attempts, workers=workers, confirm=confirm
                ),
                session,
            )
        view = _report_one(folders[0], ending)
    return view.model_copy(update={"files": _write_files(view, page, folder)})


def _write_files(
    view: ReportView | ComparisonView, page: Path | None, folder: Path | None
) -> tuple[Path, ...]:
    # Only a report that is written needs jinja2, which takes long to import.
    if page and isinstance(view, ReportView):
        from dgm.render.html.page import render_page

        write_durably(page, render_page(view))
    if folder:
        from dgm.render.html.figures import write_figures

        return (*([page] if page else []), *write_figures(view, folder))
    return (page,) if page else ()


def _report_one(folder: Path, ending: Ending | None = None) -> ReportView:
    with Run.open(folder) as run:
        check_is_search(run)
        view = DrawnReport.load(run)
    if ending is None or ending.reason is Reason.NOTHING_LEFT:
        return view
    return view.model_copy(update={"ending": EndingView(reason=ending.reason.value, message=ending.message)})


def check_is_search(run: Run) -> None:
    """Check that a run is a search with an agent.

    Raises:
        UserError: it has no agent yet, or is a holdout or promotion evaluation of a search.
    """
    kind = run.folder.name
    if kind in INNER_RUNS and (run.folder.parent / "run.json").exists():
        raise UserError(f"{run.folder}: {kind} evaluations of a search; name the search, {run.folder.parent}")
    if not run.tree.agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")


def check_target(path: Path, argument: str, *, folder: bool = False) -> None:
    """Check that a file, or files in a folder, can be written, before anything is paid for.

    Raises:
        UserError: they cannot.
    """
    try:
        if path.exists() and path.is_dir() is not folder:
            kind = (
                "a folder; name a file in it"
                if path.is_dir()
                else "no folder; name a folder, which may be a new one"
            )
            raise UserError(f"{path} is {kind}", argument=argument)
        if path.exists() and not folder and not path.is_file():
            raise UserError(f"{path} is no file; name a file, which may be a new one", argument=argument)
        parent = path if folder and path.is_dir() else path.parent
        if not parent.is_dir():
            raise UserError(f"{path}: there is no folder {parent}; make it first", argument=argument)
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"{path} cannot be written ({why}); name another one", argument=argument) from error
