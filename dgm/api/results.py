"""A search as a value for programs: its best agent, its tables, its report, and how it goes on (``dgm.open``)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from dgm.analysis.agents import best_of, find_agent
from dgm.analysis.budgets import Ending
from dgm.api.agents import RunAgent, number_of
from dgm.api.control import ApprovalView, NotedView, approve_child, note_agent
from dgm.api.exporting import Exported, export
from dgm.api.records import Records, records_of
from dgm.api.replaying import replay
from dgm.api.report import report as make_report
from dgm.archive.adopt import verify
from dgm.archive.finding import find_run
from dgm.archive.live import stop_run
from dgm.archive.packed import find_addresses
from dgm.archive.run import Run, state
from dgm.domain import SEED, Usage
from dgm.exports.tables import EVALUATIONS, SPEND, Cell, ExportTable
from dgm.views.agents import AgentRow, TreeView, WaitingChildView
from dgm.views.events import EventView, read_events
from dgm.views.run import RunView
from dgm.views.run_list import RunListView


class DrawnTree(TreeView):
    """A tree that a notebook draws."""

    def __repr__(self) -> str:
        return f"<tree of run {self.run}: {len(self.agents)} agents>"

    def _repr_html_(self) -> str:
        from dgm.render.html.notebook import tree_html

        return tree_html(self)


class Results:
    """A run that is read; another process may write it meanwhile, and each question is answered from its log of now."""

    def __init__(self, run: Run, ending: Ending | None = None) -> None:
        """Take over an open run, which is closed with this.

        Args:
            run: open to read.
            ending: how the session that this process performed ended.
        """
        self._run = run
        self.ending = ending

    @classmethod
    def open(cls, name: str | Path, ending: Ending | None = None) -> Self:
        """Open a run by its folder, its name under ``./archive`` or ``$DGM_ARCHIVE``, or its packed file.

        Raises:
            UserError: there is none.
            ArchiveCorrupt: it is damaged.
        """
        return cls(Run.open(find_run(str(name))), ending)

    @property
    def run(self) -> Run:
        """The run itself, as far as its log is written now: its tree, its events, its traces."""
        self._run.follow()
        return self._run

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self._run.name

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self._run.folder

    @property
    def state(self) -> str:
        """``running``, ``paused``, ``interrupted``, or how it ended."""
        return state(self.run)

    @property
    def spent(self) -> Usage:
        """All that its model calls took."""
        return self.run.tree.spend

    @property
    def best(self) -> RunAgent:
        """The agent that the run's policy recommends.

        Raises:
            UserError: the run has no agent yet.
        """
        run = self.run
        number_of(run, SEED)
        return RunAgent(run, run.tree.agents[best_of(run)])

    @property
    def agents(self) -> Sequence[RunAgent]:
        """All members of the archive; ``agents[0]`` is the seed."""
        run = self.run
        return [RunAgent(run, agent) for agent in run.tree.agents]

    @property
    def view(self) -> RunView:
        """The run at this moment, as ``dgm status RUN --json`` prints it."""
        return RunView.load(self.run)

    @property
    def tree(self) -> TreeView:
        """All agents with their tallies, as ``dgm show RUN --json`` prints them; a notebook draws them."""
        return DrawnTree.load(self.run)

    @property
    def agent_table(self) -> Records:
        """A row for each agent: origin, tallies, place in the tree."""
        return records_of([_table_row(row) for row in self.tree.agents])

    @property
    def evaluations(self) -> Records:
        """A row for each verdict, as ``dgm export RUN evaluations.csv`` writes them."""
        return self._records(EVALUATIONS)

    @property
    def spend(self) -> Records:
        """A row for each model call, with the agent that it is put down to."""
        return self._records(SPEND)

    @property
    def operators(self) -> Records:
        """A row for each operator: children, tallies, what they took."""
        from dgm.views.report import read_operators

        return records_of([operator.model_dump(mode="json") for operator in read_operators(self.run)])

    replay = replay

    def diff(self, agent: int | None = None, other: int | None = None) -> str:
        """Return what an agent's source changes against another's.

        Args:
            agent: its number; the best agent by default.
            other: the other agent's number; its parent by default.

        Raises:
            UserError: there is no such agent.
        """
        chosen = self.best if agent is None else self.agents[number_of(self.run, agent)]
        return chosen.diff(other)

    def events(self, *, tail: int | None = None, follow: bool = False) -> Iterator[EventView]:
        """Yield the events of the log, oldest first.

        Args:
            tail: only this many of the existing events, counted from the end.
            follow: go on with new events until no process writes the run.
        """
        return read_events(self._run, tail=tail, follow=follow)

    def stop(self, *, now: bool = False) -> bool:
        """Ask the process that performs the search to end in good order, and return whether there is one.

        Does not wait for the end: ``state`` and ``events(follow=True)`` tell of it.

        Args:
            now: do not let it wait for the steps that are under way.

        Raises:
            UserError: the folder cannot be written, or an older version of dgm performs the search.
        """
        return stop_run(self._run.folder, now=now) is not None

    @property
    def waiting(self) -> Records:
        """A row for each child that waits for approval (``gates.approve``), with an answer that is not read yet."""
        run = self.run
        children = (WaitingChildView.load(run, action, child) for action, child in run.tree.waiting.items())
        return records_of([child.model_dump() for child in children])

    def approve(self, child: int, answer: Literal["yes", "no"] = "yes", *, reason: str = "") -> ApprovalView:
        """Answer for a child that waits; a running search takes the answer within a second.

        Args:
            child: its number, as ``waiting`` gives it.
            answer: whether it may live.
            reason: why, in one line; of a no it becomes the reason of the stillbirth.

        Raises:
            UserError: it does not wait, children of this run never do, or the folder is read-only.
        """
        return approve_child(self.run, child, answer, reason)

    def note(self, agent: int | str, text: str) -> NotedView:
        """Say something about an agent, for all that edit it or a descendant from now on; see ``dgm.note``.

        Raises:
            UserError: there is no such agent, the text is empty or too long, or the folder is read-only.
        """
        return note_agent(self.run, find_agent(self.run, str(agent)).id, text)

    def export(
        self,
        agent: str | int | Path | None = None,
        target: str | Path | None = None,
        *,
        what: str | None = None,
        evaluation: str | None = None,
        force_agents: bool = False,
    ) -> Exported:
        """Write the run, or an agent of it, to a new file or folder; the arguments are those of ``dgm.export``."""
        return export(
            self._run.folder, agent, target, what=what, evaluation=evaluation, force_agents=force_agents
        )

    def verify(self) -> Mapping[str, int]:
        """Check every checksum, every trace that an event names, git's objects, and the agents' descent.

        Returns:
            What was checked → how many.

        Raises:
            ArchiveCorrupt: the first thing wrong.
        """
        return verify(self._run.folder)

    @property
    def addresses(self) -> Sequence[str]:
        """Addresses for model calls and variables of keys that its settings name; for a look before ``resume``."""
        return sorted(find_addresses(self._run.config))

    report = make_report
    """Report on the run; arguments as for ``dgm.report``."""

    def close(self) -> None:
        """Close the run; agents that were asked for can no longer be read."""
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        tree = self.run.tree
        return f"<run {self.name}: {self.state}, {len(tree.agents)} agents, {tree.evaluations} evaluations>"

    def _repr_html_(self) -> str:
        from dgm.render.html.notebook import run_html

        return run_html(self.view)

    def _records(self, table: ExportTable) -> Records:
        rows: list[tuple[Cell, ...]] = list(table.rows(self.run))
        return Records([name for name, _ in table.columns], rows)


def _table_row(row: AgentRow) -> dict[str, Any]:
    """Return an agent's row with tallies in columns."""
    record = row.model_dump(mode="json", exclude={"own", "clade", "delta"})
    for name, tally in (("own", row.own), ("clade", row.clade)):
        record |= {f"{name}_resolved": tally.resolved, f"{name}_n": tally.n, f"{name}_rate": tally.rate}
    return record


def runs(folder: str | Path | None = None) -> RunListView:
    """Return all runs; the one that wrote its last event most recently comes first.

    A damaged run is a row with a ``problem`` and hides no other.

    Args:
        folder: where runs are kept; None: ``$DGM_ARCHIVE`` and ``./archive``.

    Raises:
        UserError: there is no such folder.
    """
    return RunListView.load(None if folder is None else Path(folder))
