"""All runs of an archive: one row each; a damaged run is a row that says so and hides no other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from dgm.analysis.agents import best_of
from dgm.archive.finding import SUFFIX, archive_folders
from dgm.archive.log import FILE
from dgm.archive.run import Run, RunKind, state, writer
from dgm.errors import ArchiveCorrupt, DgmError, UserError
from dgm.paths import NOT_RUNS
from dgm.stats import lower_bound
from dgm.views.progress import BudgetUse, tree_budget_uses
from dgm.views.values import TallyView, View

MOST_EVENTS = 100_000
"""Length of a log, in events, up to which the list finds the best agent."""
BROKEN = (DgmError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors that reading a file not written by dgm can cause."""


class BestInList(View):
    """The recommended agent of a run."""

    agent: int
    own: TallyView
    lower_bound: float


class ListSpend(View):
    """The spend of a run."""

    usd: float
    tokens: int


class RunRow(View):
    """A run, a packed run, or a folder that should be one; unreadable values are None."""

    run: str
    """Its name, as commands take it."""
    folder: str
    kind: str | None = None
    """``search``, ``simulation`` or ``replay``."""
    state: str
    """As in ``RunView``; or ``packed``, ``not a run``, ``damaged`` or ``unreadable``."""
    problem: str | None = None
    """Why something could not be read."""
    pid: int | None = None
    """The process that writes the run, if it can be seen from here."""
    host: str | None = None
    """The other host or container whose process writes the run, or may."""
    written_here: bool | None = None
    """Whether a process has written the run at this place; otherwise it was unpacked or copied."""
    waiting: int | None = None
    """Children that wait for the user's approval."""
    created: float | None = None
    """Unix time."""
    last_event_at: float | None = None
    """Unix time."""
    events: int | None = None
    benchmark: str | None = None
    policy: str | None = None
    seed: int | None = None
    """Random seed."""
    agents: int | None = None
    evaluations: int | None = None
    best: BestInList | None = None
    """None without an agent, or in a run of more than ``MOST_EVENTS`` events."""
    spend: ListSpend | None = None
    seconds: float | None = None
    """Wall time of all sessions."""
    budget: dict[str, BudgetUse] | None = None

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the run in a folder."""
        if not (folder / "run.json").exists():
            return cls(run=folder.name, folder=str(folder), state="not a run", problem="it has no run.json")
        try:
            with Run.open(folder) as run:
                return cls._of(run)
        except ArchiveCorrupt as error:
            return cls(run=folder.name, folder=str(folder), state="damaged", problem=str(error))
        except BROKEN as error:
            text = str(error) if isinstance(error, DgmError | OSError) else f"{folder}: {error!r}"
            return cls(run=folder.name, folder=str(folder), state="unreadable", problem=text)

    @classmethod
    def _of(cls, run: Run) -> Self:
        tree, settings, policy = run.tree, run.settings(), run.settings().get("policy")
        # Ask first: if the process ends meanwhile, its last event is then read as well.
        holder = writer(run.folder)
        run.follow()
        try:
            best, problem = _find_best(run), None
        except BROKEN as error:
            best, problem = None, str(error) if isinstance(error, DgmError) else repr(error)
        return cls(
            run=run.folder.name,
            folder=str(run.folder),
            kind=run.config.get("kind", RunKind.SEARCH),
            state=state(run),
            problem=problem,
            pid=holder.pid if holder and holder.is_reachable else None,
            host=holder.host if holder and not holder.is_reachable else None,
            written_here=(run.folder / "run.lock").exists(),
            waiting=len(tree.waiting),
            created=run.config.get("created") or None,
            last_event_at=tree.last_at or None,
            events=tree.seq,
            benchmark=settings.get("benchmark"),
            policy=policy.get("name") if isinstance(policy, dict) else None,
            seed=settings.get("seed"),
            agents=len(tree.agents),
            evaluations=tree.evaluations,
            best=best,
            spend=ListSpend(usd=tree.spend.usd, tokens=tree.spend.tokens),
            seconds=tree.wall_seconds,
            budget=tree_budget_uses(tree),
        )


class RunListView(View):
    """The runs of one or more folders."""

    folders: tuple[str, ...]
    runs: tuple[RunRow, ...]
    """The run that wrote its last event most recently comes first."""

    @classmethod
    def load(cls, folder: Path | None = None, read: Callable[[Path], RunRow] = RunRow.load) -> Self:
        """List the runs directly below a folder; evaluations and other folders are left out.

        Args:
            folder: where runs are kept; None: all folders in which runs are looked for.
            read: returns the row of a run's folder, perhaps one that was read before.

        Raises:
            UserError: there is no such folder.
        """
        if folder is not None and not folder.is_dir():
            raise UserError(f"{folder}: no such folder; give one that holds runs")
        folders = list(
            {path.resolve(): path for path in ([folder] if folder else archive_folders())}.values()
        )
        rows = [row for path in folders for row in _read_rows(path, read)]
        rows.sort(key=lambda row: row.last_event_at or 0.0, reverse=True)
        return cls(folders=tuple(map(str, folders)), runs=tuple(rows))


def _read_rows(folder: Path, read: Callable[[Path], RunRow]) -> Iterator[RunRow]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith(".") or path.name in NOT_RUNS:
            continue
        if path.is_dir() and ((path / "run.json").exists() or (path / FILE).exists()):
            row = read(path)
            if row.kind != "evaluation":
                yield row
        elif path.suffix == SUFFIX:
            yield RunRow(run=path.name, folder=str(path), state="packed")


def _find_best(run: Run) -> BestInList | None:
    if not run.tree.agents or run.tree.seq > MOST_EVENTS:
        return None
    best = best_of(run)
    own = run.tree.own(best)
    return BestInList(agent=best, own=TallyView.of(own), lower_bound=lower_bound(own))
