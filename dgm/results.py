"""A search as a value for programs: its best agent, its tables, its report, and how it goes on (``dgm.open``)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from dgm.analysis.best import best_of
from dgm.analysis.budgets import Ending
from dgm.analysis.lineage import Lineage, LineageStep
from dgm.analysis.operator_accounts import OperatorLine
from dgm.analysis.operator_accounts import operators_of as operator_lines
from dgm.analysis.summary import agent_record, run_summary
from dgm.archive.durable import write_durably
from dgm.archive.history import state
from dgm.archive.run import Run
from dgm.domain import SEED, Agent, AgentId, Snapshot, Tally, Usage
from dgm.errors import ArchiveCorrupt, UserError
from dgm.export.tables import EVALUATIONS, SPEND, Cell, ExportTable
from dgm.publish.finding import find_run
from dgm.report.facts import RunReport as Facts
from dgm.report.facts import gather_report
from dgm.report.headline import read_findings
from dgm.report.page import render_page
from dgm.report.record import report_record
from dgm.show.operators import operator_records
from dgm.stats import lower_bound


@dataclass(frozen=True, slots=True)
class Records:
    """Rows of a table with their columns' names."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def to_pandas(self) -> Any:  # noqa: ANN401  (a pandas.DataFrame)
        """Return a data frame; needs pandas.

        Raises:
            UserError: pandas is not installed.
        """
        return _imported("pandas").DataFrame.from_records(list(self.rows), columns=list(self.columns))

    def to_polars(self) -> Any:  # noqa: ANN401  (a polars.DataFrame)
        """Return a data frame; needs polars.

        Raises:
            UserError: polars is not installed.
        """
        return _imported("polars").DataFrame(list(self.rows), schema=list(self.columns), orient="row")


@dataclass(frozen=True, slots=True)
class AgentView:
    """One member of the archive, as the run's log told when it was asked for."""

    run: Run = field(repr=False, compare=False)
    agent: Agent

    @property
    def id(self) -> int:
        """Its number; the seed is 0."""
        return self.agent.id

    @property
    def parents(self) -> Sequence[int]:
        """Numbers of its parents; none of the seed."""
        return self.agent.parents

    @property
    def children(self) -> Sequence[int]:
        """Numbers of its children."""
        return self.run.tree.children(self.agent.id)

    @property
    def depth(self) -> int:
        """Generations from the seed."""
        return self.run.tree.depth(self.agent.id)

    @property
    def operator(self) -> str:
        """How it was made."""
        return self.agent.operator

    @property
    def rationale(self) -> str:
        """Why it was made, in the words of the agent or model that made it."""
        return self.agent.rationale

    @property
    def own(self) -> Tally:
        """Its graded evaluations on the search tasks."""
        return self.run.tree.own(self.agent.id)

    @property
    def clade(self) -> Tally:
        """The same over the agent and all its descendants: what CMP is estimated from."""
        return self.run.tree.clade(self.agent.id)

    @property
    def lower_bound(self) -> float:
        """The rate on the search tasks that it exceeds with a probability of 99 %, as ``dgm.stats.lower_bound``."""
        return lower_bound(self.own)

    @property
    def lineage(self) -> Sequence[LineageStep]:
        """Return each step from the seed to this agent, the seed first, with its patch against its parent."""
        return list(Lineage(self.run.tree, self.agent.id).steps(self.run))

    @property
    def source(self) -> Snapshot:
        """Path → file of its source."""
        return self.run.source(self.agent.id)

    def diff(self, against: int | None = SEED) -> str:
        """Return the unified diff of its source.

        Args:
            against: number of the other agent, the seed unless it is given; None: its first parent.
        """
        if against is None:
            against = self.agent.parents[0] if self.agent.parents else SEED
        other = self.run.tree.agents[_number(self.run, against)]
        return self.run.repository.diff(other.commit, self.agent.commit).decode("utf-8", "replace")

    def checkout(self, folder: str | Path) -> Path:
        """Write its source into a new or empty folder, and return that.

        Raises:
            UserError: something is in the folder already.
        """
        target = Path(folder)
        self.run.checkout(self.agent.id, target)
        return target


@dataclass(frozen=True, slots=True)
class ReportView:
    """A report: is the best agent better than the seed, by how much, and what did that cost."""

    facts: Facts = field(repr=False)
    record: Mapping[str, Any] = field(repr=False)
    """The document that ``dgm report --json`` prints."""

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return self.facts.verdict.sentence

    def html(self) -> str:
        """Return the page, which asks nothing of the network."""
        return render_page(self.facts).decode()

    def save(self, file: str | Path) -> Path:
        """Write the page (``.html``) or the record (``.json``), and return the path.

        Raises:
            UserError: the name ends otherwise, or the file cannot be written.
        """
        target = Path(file)
        if target.suffix == ".html":
            data = render_page(self.facts)
        elif target.suffix == ".json":
            data = json.dumps(self.record, indent=2, ensure_ascii=False).encode() + b"\n"
        else:
            raise UserError(f"{target}: a report is written as .html or .json")
        try:
            write_durably(target, data)
        except OSError as error:
            raise UserError(f"{target}: cannot be written: {error.strerror}") from error
        return target


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
    def best(self) -> AgentView:
        """The agent that the run's policy recommends.

        Raises:
            UserError: the run has no agent yet.
        """
        run = self.run
        _number(run, SEED)
        return AgentView(run, run.tree.agents[best_of(run)])

    @property
    def agents(self) -> Sequence[AgentView]:
        """All members of the archive; ``agents[0]`` is the seed."""
        run = self.run
        return [AgentView(run, agent) for agent in run.tree.agents]

    @property
    def agent_table(self) -> Records:
        """A row for each agent: origin, tallies, place in the tree."""
        run = self.run
        found = [agent_record(run, agent) for agent in run.tree.agents]
        columns = list(found[0]) if found else []
        return Records(columns, [tuple(row.values()) for row in found])

    @property
    def evaluations(self) -> Records:
        """A row for each verdict, as ``dgm export RUN --evaluations`` writes them."""
        return self._records(EVALUATIONS)

    @property
    def spend(self) -> Records:
        """A row for each model call, with the agent that it is put down to."""
        return self._records(SPEND)

    @property
    def operators(self) -> Records:
        """A row for each operator: children, tallies, what they took."""
        found = operator_records(self._operators())
        return Records(list(found[0]) if found else [], [tuple(row.values()) for row in found])

    def status(self) -> Mapping[str, Any]:
        """Return the document that ``dgm status --json`` prints."""
        return run_summary(self.run)

    def report(self) -> ReportView:
        """Return the report of what the run and its examination hold now; nothing is performed."""
        run = self.run
        best = self.best.agent
        operators = self._operators()
        facts = gather_report(run, best.id, read_findings(run, best), operators)
        return ReportView(facts, report_record(run, facts, operator_records(operators)))

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

    def _records(self, table: ExportTable) -> Records:
        rows: list[tuple[Cell, ...]] = list(table.rows(self.run))
        return Records([name for name, _ in table.columns], rows)

    def _operators(self) -> Sequence[OperatorLine]:
        try:
            return operator_lines(self.run)
        except ArchiveCorrupt:
            # Without what vetting took, where the traces that say it are lost.
            return operator_lines(self.run, timed=False)


def _number(run: Run, agent: int) -> AgentId:
    agents = run.tree.agents
    if not 0 <= agent < len(agents):
        known = f"they are 0 to {len(agents) - 1}" if agents else "the run has none yet"
        raise UserError(f"no agent {agent}; {known}")
    return AgentId(agent)


def _imported(name: str) -> Any:  # noqa: ANN401  (a module)
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f"{name} is not installed: pip install {name}") from error
