"""Search policies compared in simulated worlds that cost nothing."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from dgm.api.records import Records, records_of
from dgm.api.running import run_beside_loop
from dgm.errors import UserError
from dgm.simulation.families import FAMILIES, GROUPS
from dgm.simulation.measures import Standing, standings
from dgm.simulation.recorded import record_trial
from dgm.simulation.study import Study, carry_out
from dgm.simulation.trial import SHARES, Result, Trial, quiet
from dgm.steps import OnStep, Step, ignore

MAX_WORLDS = 100_000


class Simulation(BaseModel):
    """Policies compared in pairs: each met the same worlds. True scores are shares of tasks."""

    model_config = ConfigDict(frozen=True)

    reference: str
    """The policy that all are compared with."""
    policies: tuple[str, ...]
    families: tuple[str, ...]
    worlds: tuple[int, ...]
    """Numbers of the worlds in each family."""
    budget: int
    """Evaluations of one search."""
    expansion_cost: float
    """Evaluations of the budget that one expansion takes."""
    workers: int | None
    """Parallel actions; None: as each family is meant to be met."""
    failures: float
    """Share of actions that the infrastructure fails."""
    checkpoints: tuple[float, ...]
    """Evaluations at which the curves are read."""
    standings: tuple[Standing, ...]
    """A row for each policy in each family, then in the mean of families where there are several."""
    results: tuple[tuple[Trial, Result], ...] = Field(exclude=True, repr=False)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    @property
    def table(self) -> Records:
        """The standings as rows for a data frame."""
        return records_of([standing.model_dump(exclude={"curve"}) for standing in self.standings])

    @property
    def trials(self) -> Records:
        """A row for each search: policy, family, world, and its result."""
        return records_of(
            [
                {"policy": trial.policy, "family": trial.family, "world": trial.seed, "area": result.area}
                | {
                    field.name: getattr(result, field.name)
                    for field in fields(Result)
                    if field.name != "curve"
                }
                for trial, result in self.results
            ]
        )

    @property
    def curves(self) -> Records:
        """A row for each point of each search: policy, family, world, evaluations spent, true score."""
        columns = ("policy", "family", "world", "spent", "score")
        return Records(
            columns,
            [
                (trial.policy, trial.family, trial.seed, spent, score)
                for trial, result in self.results
                for spent, score in zip((0.0, *self.checkpoints), (result.root, *result.curve), strict=True)
            ],
        )


def simulate(
    *,
    policies: Sequence[str] = (),
    reference: str = "hgm",
    families: Sequence[str] = (),
    worlds: int | str = 20,
    budget: int = 800,
    csv: str | Path | None = None,
    record: str | Path | None = None,
    expansion_cost: float = 1.0,
    workers: int | None = None,
    failures: float = 0.0,
    jobs: int = 1,
    on_step: OnStep = ignore,
) -> Simulation:
    """Compare search policies in simulated worlds that cost nothing.

    Every policy meets the same worlds, so all differences are paired.

    Args:
        policies: Policy, with settings if need be (lineage+gate=hgm); one of yours is module:NAME, and oracle knows the
            true scores (default: lineage). Repeatable.
        reference: The policy that the others are compared with.
        families: Family of worlds, or a group: reported, reserved, tuning (default: reported). Repeatable.
        worlds: Number of worlds in each family, or FROM:TO, TO excluded.
        budget: Evaluations of one search.
        csv: Append each search to this file; the same command continues from it.
        record: Also record the first policy's search in the first world as a run in this folder.
        expansion_cost: Evaluations of the budget that one expansion takes.
        workers: Parallel actions; as many as each family is meant to be met with if None.
        failures: Share of actions that the infrastructure fails, from 0 to below 1.
        jobs: Processes; more than 1 needs the usual ``if __name__ == "__main__"`` guard in a program's main file.
        on_step: is called after each search, with the number of searches done and their total.

    Raises:
        UserError: a policy, a family or a number is wrong.
        DgmError: a search failed; the message says which and how.
    """
    if jobs < 1:
        raise UserError("must be 1 or more", argument="jobs")
    study = Study(
        tuple(dict.fromkeys((*(policies or ["lineage"]), reference))),
        tuple(
            dict.fromkeys(family for name in families or ["reported"] for family in GROUPS.get(name, (name,)))
        ),
        _parse_worlds(str(worlds)),
        budget,
        expansion_cost,
        workers,
        failures,
    )

    def perform() -> Simulation:
        quiet()
        if record is not None:
            record_trial(Path(record), next(study.trials()))
        file = None if csv is None else Path(csv)
        results = carry_out(study, jobs, lambda done, total: on_step(Step("searches", done, total)), file)
        return Simulation(
            **asdict(study),
            reference=reference,
            checkpoints=tuple(share * budget for share in SHARES),
            standings=standings(study, results, reference),
            results=tuple(results.items()),
        )

    return run_beside_loop(perform)


def families() -> Records:
    """Return a row for each family of simulated worlds: its name, its group, and a line about it."""
    return records_of([{"name": f.name, "group": f.group, "about": f.about} for f in FAMILIES.values()])


def _parse_worlds(text: str) -> tuple[int, ...]:
    first, _, last = text.rpartition(":")
    try:
        start, end = int(first or 0), int(last)
    except ValueError as error:
        raise UserError(
            f"expected a number, or FROM:TO such as 1000:1100, not '{text}'", argument="worlds"
        ) from error
    if not 0 <= start < end <= start + MAX_WORLDS:
        raise UserError(
            f"expected 1 to {MAX_WORLDS} worlds from 0 on, and FROM below TO, not '{text}'", argument="worlds"
        )
    return tuple(range(start, end))
