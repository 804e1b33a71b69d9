"""Policies tried in simulated worlds, from a program (``dgm simulate``)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dgm.api.arguments import path_of
from dgm.api.records import Records, records_of
from dgm.api.search import Evolution
from dgm.blocking import call_beside_loop
from dgm.errors import UserError
from dgm.sessions.studies import (
    BUDGET,
    COST,
    StudyChoice,
    StudyResults,
    all_policies,
    build_study,
    list_worlds,
    single_trial,
    write_text,
)
from dgm.simulate.crew import quiet
from dgm.simulate.recorded import open_recording, record
from dgm.simulate.results import Results
from dgm.simulate.study import carry_out

REFERENCE = "hgm"


class StudyArguments(TypedDict, total=False):
    """Arguments of ``study``; each may be left out. What has several values is combined, each with each."""

    families: Sequence[str]
    """Families of worlds, or ``reported``, ``reserved``, ``tuning``; the reported ones unless it is given."""
    seeds: int | str
    """The number of worlds of a family, or ``FROM:TO`` without TO; 20 unless it is given."""
    budgets: Sequence[int]
    """In evaluations; 800 unless it is given."""
    costs: Sequence[float]
    """Evaluations of the budget that one expansion takes; 1 unless it is given."""
    workers: Sequence[int]
    """Steps at once; as each family is meant to be met unless it is given."""
    failures: float
    """Share of steps that the infrastructure fails, from 0 to below 1; 0 unless it is given."""
    reference: str
    """The policy that all are compared with; ``hgm`` unless it is given."""
    results: str | Path | None
    """File in which results are kept; the same call goes on where it was stopped."""
    jobs: int
    """Processes; 1 unless it is given. More import the program's main module anew, which needs the usual guard."""
    on_trial: Callable[[int, int], object] | None
    """Is called with the number of trials done in this session, and their total."""


class TrialArguments(TypedDict, total=False):
    """Arguments of ``record_trial``; each may be left out."""

    budget: int
    """In evaluations; 800 unless it is given."""
    expansion_cost: float
    """Evaluations of the budget that one expansion takes; 1 unless it is given."""
    workers: int | None
    """Steps at once; as the family is meant to be met unless it is given."""
    failures: float
    """Share of steps that the infrastructure fails, from 0 to below 1; 0 unless it is given."""


@dataclass(frozen=True, slots=True)
class StudyView:
    """The results of a study, compared in pairs: every policy met the same worlds."""

    found: StudyResults = field(repr=False)
    record: Mapping[str, Any] = field(repr=False)
    """The document that ``dgm simulate --json`` prints."""

    @property
    def standings(self) -> Records:
        """A row for each policy in each family, cell by cell; the mean over the families among them."""
        rows = [
            {**asdict(cell), **asdict(standing)}
            for cell, standings in self.found.by_cell.items()
            for standing in standings
        ]
        return records_of(rows)

    def save(self, file: str | Path) -> Path:
        """Write the anytime curves (``.svg``) or all tables (``.md``), and return the path.

        Raises:
            UserError: the name ends otherwise, or the file cannot be written.
        """
        target = Path(file)
        if target.suffix == ".svg":
            write_text(target, self.found.curves())
        elif target.suffix == ".md":
            write_text(target, self.found.markdown())
        else:
            raise UserError(f"{target}: a study is written as .svg or .md")
        return target


def study(policies: Sequence[str] | None = None, **given: Unpack[StudyArguments]) -> StudyView:
    """Try policies in simulated worlds that cost nothing, and compare them in pairs; blocks.

    Args:
        policies: their names, also with settings of their own (``lineage+gate=hgm``); None: all, and the oracle.
        given: see ``StudyArguments``.

    Raises:
        UserError: a policy, a family or a number is wrong.
        DgmError: a trial went wrong; the message says which and how.
    """
    return call_beside_loop(lambda: _study(policies, **given))


def record_trial(
    folder: str | Path, policy: str, family: str, seed: int, **given: Unpack[TrialArguments]
) -> Evolution:
    """Record one policy in one world as a run, and return it; the same call goes on with one that was stopped. Blocks.

    Args:
        folder: of the run.
        policy: its name.
        family: of the world.
        seed: of the world, from 0.
        given: see ``TrialArguments``.

    Raises:
        UserError: an argument is wrong, or something else is in the folder.
        ArchiveBusy: another process is writing the run.
    """
    workers = given.get("workers")
    chosen = StudyChoice(
        families=[family],
        seeds=f"{seed}:{seed + 1}",
        budgets=[given.get("budget", BUDGET)],
        costs=[given.get("expansion_cost", COST)],
        workers=[] if workers is None else [workers],
        failures=given.get("failures", 0.0),
    )

    def perform() -> None:
        quiet()
        trial = single_trial(build_study([policy], chosen))
        with open_recording(Path(folder), trial) as run:
            record(run, trial)

    call_beside_loop(perform)
    return Evolution.open(folder)


def families() -> Records:
    """Return a row for each family of simulated worlds: its name, its group, and a line about it."""
    return records_of(list_worlds()["families"])


def _study(
    policies: Sequence[str] | None,
    *,
    families: Sequence[str] = (),
    seeds: int | str = 20,
    budgets: Sequence[int] = (),
    costs: Sequence[float] = (),
    workers: Sequence[int] = (),
    failures: float = 0.0,
    reference: str = REFERENCE,
    results: str | Path | None = None,
    jobs: int = 1,
    on_trial: Callable[[int, int], object] | None = None,
) -> StudyView:
    if jobs < 1:
        raise UserError(f"jobs {jobs}: must be 1 or more")
    chosen = StudyChoice(families, str(seeds), budgets, costs, workers, failures)
    wanted = build_study((*(policies or all_policies()), reference), chosen)
    quiet()

    def tell(done: int, of: int) -> None:
        if on_trial is not None:
            on_trial(done, of)

    with Results(path_of(results)) as kept:
        found = StudyResults(wanted, carry_out(wanted, kept, jobs, tell), reference)
    return StudyView(found, found.record())
