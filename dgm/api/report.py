"""Reports: is the best agent of a run better than its seed, and how do several runs compare."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dgm.api.running import run_session
from dgm.api.watcher import OnEvent, Watcher
from dgm.archive.durable import write_durably
from dgm.archive.finding import find_run
from dgm.archive.run import Run
from dgm.errors import UserError
from dgm.evaluation.control import MOST
from dgm.evaluation.exam import FOLDER
from dgm.views.comparison import ComparisonView, find_runs
from dgm.views.report import EndingView, ReportView


class OpenRun(Protocol):
    """A run that is open, such as ``dgm.open`` returns."""

    @property
    def folder(self) -> Path:
        """Its folder."""
        ...


def report(  # noqa: PLR0913  (all have defaults)
    *runs: str | Path | OpenRun,
    holdout: bool = False,
    control: bool = False,
    control_attempts: int = MOST,
    max_usd: float | None = None,
    workers: int | None = None,
    yes: bool = False,
    group_by: str | None = None,
    html: str | Path | None = None,
    figures: str | Path | None = None,
    on_event: OnEvent | None = None,
    watcher: Watcher | None = None,
) -> ReportView | ComparisonView:
    """Report whether a run's best agent is better than its seed; compare several runs.

    Only reads the runs, unless holdout evaluations are asked for; these cost nothing if they exist.

    Args:
        runs: Names, paths, or patterns such as 'policies-*'.
        holdout: First evaluate the seed and the best agent on the holdout tasks.
        control: With holdout, also give the seed as many attempts as the spend of the search buys.
        control_attempts: Maximum number of the control's attempts at each task.
        max_usd: Limit for all holdout evaluations (default: the rest of the run's limit).
        workers: Parallel holdout evaluations (default: the run's).
        yes: Perform the control without asking.
        group_by: Pair runs of the same seed by this setting (default: the one that differs).
        html: Write the report of one run to this file, a page that needs nothing else.
        figures: Write the figures to this folder (SVG; the curves of several runs also as CSV).
        on_event: is called with each event of the holdout evaluations.
        watcher: is informed and asked; replaces ``on_event``.

    Returns:
        The report of one run; of several runs a comparison.

    Raises:
        UserError: a run cannot be found, compared or evaluated, or a file cannot be written.
        ArchiveCorrupt: a run is damaged.
    """
    names = [str(run if isinstance(run, str | Path) else run.folder) for run in runs]
    performs = holdout or control
    _refuse_without("holdout", performs, max_usd=max_usd, workers=workers)
    _refuse_without("control", control, yes=yes or None)
    page, folder = (None if target is None else Path(target) for target in (html, figures))
    if page:
        check_file(page, "html")
    if folder:
        check_folder(folder, "figures")
    if not names:
        raise UserError("name a run", argument="runs")
    folders = find_runs(names)
    if len(folders) == 1:
        if group_by is not None:
            raise UserError("groups several runs, and this is one", argument="group_by")
        watcher = watcher or Watcher(on_event)
        view: ReportView | ComparisonView = _report_one(
            find_run(str(folders[0]), write=True) if performs else folders[0],
            watcher,
            performs=performs,
            attempts=control_attempts if control else None,
            max_usd=max_usd,
            workers=workers,
            yes=yes,
        )
    elif performs:
        raise UserError("holdout evaluations are performed for one run at a time", argument="holdout")
    elif page:
        raise UserError("the page is about one run; a comparison has figures", argument="html")
    else:
        view = ComparisonView.load(folders, group_by)
    files: list[Path] = []
    # jinja2 takes long to import.
    if page and isinstance(view, ReportView):
        from dgm.render.html.page import render_page

        write_durably(page, render_page(view))
        files.append(page)
    if folder:
        from dgm.render.html.figures import write_figures

        files += write_figures(view, folder)
    return view.model_copy(update={"files": tuple(files)})


def _report_one(  # noqa: PLR0913  (those of ``report``)
    folder: Path,
    watcher: Watcher,
    *,
    performs: bool,
    attempts: int | None,
    max_usd: float | None,
    workers: int | None,
    yes: bool,
) -> ReportView:
    with Run.open(folder) as run:
        if folder.name == FOLDER and (folder.parent / "run.json").exists():
            raise UserError(f"{folder}: holdout evaluations of a search; name the search, {folder.parent}")
        if not performs:
            return ReportView.load(run)
        if not run.tree.agents:
            raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
        from dgm.analysis.budgets import Reason
        from dgm.api.holdout import perform_holdout

        ending = run_session(
            lambda: perform_holdout(
                run, watcher, max_usd=max_usd, control_attempts=attempts, workers=workers, yes=yes
            ),
            watcher,
        )
        view = ReportView.load(run)
        if ending is None or ending.reason is Reason.NOTHING_LEFT:
            return view
        return view.model_copy(
            update={"ending": EndingView(reason=ending.reason.value, message=ending.message)}
        )


def _refuse_without(needed: str, chosen: bool, **arguments: object) -> None:
    """Raise ``UserError`` if an argument is given that has an effect only together with another one."""
    for name, value in arguments.items():
        if value is not None and not chosen:
            raise UserError(f"has an effect only with {needed}", argument=name)


def check_file(path: Path, argument: str) -> None:
    """Check that a file can be written, also in place of an older one, before anything is paid for.

    Raises:
        UserError: it cannot.
    """
    with _explain_errors(path, argument):
        if path.is_dir():
            raise UserError(f"{path} is a folder; name a file in it", argument=argument)
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a file; name a file, which may be a new one", argument=argument)
        _try_to_write(path, path.parent, argument)


def check_folder(path: Path, argument: str) -> None:
    """Check that files can be written in a folder, which is made if it is missing.

    Raises:
        UserError: they cannot.
    """
    with _explain_errors(path, argument):
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is no folder; name a folder, which may be a new one", argument=argument)
        _try_to_write(path, path if path.is_dir() else path.parent, argument)


def _try_to_write(path: Path, folder: Path, argument: str) -> None:
    if not folder.is_dir():
        raise UserError(f"{path}: there is no folder {folder}; make it first", argument=argument)
    with tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def _explain_errors(path: Path, argument: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"{path} cannot be written ({why}); name another one", argument=argument) from error
