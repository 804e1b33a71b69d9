"""A study: policies, families, seeds and cells, every one with every other, so that all comparisons are paired."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from dgm.errors import UserError
from dgm.simulate.contenders import check_fits
from dgm.simulate.crew import performed
from dgm.simulate.families import FAMILIES, OPERATORS, check_family
from dgm.simulate.results import Results
from dgm.simulate.trial import Result, Trial

MOST_WORKERS = 256
"""As in ``Settings.workers``."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The conditions that all trials of a comparison share."""

    budget: int = 800
    expansion_cost: float = 1.0
    workers: int | None = None
    """None: as many as each family is meant to be met with."""
    failures: float = 0.0

    def trial(self, policy: str, family: str, seed: int) -> Trial:
        """Return the trial of a policy in a world."""
        workers = FAMILIES[family].workers if self.workers is None else self.workers
        return Trial(policy, family, seed, self.budget, self.expansion_cost, workers, self.failures)

    @property
    def title(self) -> str:
        """The conditions in words."""
        parts = [f"budget {self.budget}", f"expansion cost {self.expansion_cost:g}"]
        if self.workers is not None:
            parts.append(f"{self.workers} worker{'s' if self.workers > 1 else ''}")
        if self.failures:
            parts.append(f"{self.failures:.0%} of steps fail")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Study:
    """The policies, families, seeds and cells to try."""

    policies: tuple[str, ...]
    families: tuple[str, ...]
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...] = (Cell(),)

    def __post_init__(self) -> None:
        """Check the policies, families and cells before any trial.

        Raises:
            UserError: one of them is wrong; the message names the first.
        """
        for family in self.families:
            check_family(family)
            for policy in self.policies:
                check_fits(policy, family)
        for cell in self.cells:
            _check(cell)
            if OPERATORS in self.families and (cell.workers or 1) > 1:
                raise UserError(
                    f"workers {cell.workers}: in the family '{OPERATORS}' time is spent, so there is one worker"
                )

    def trials(self) -> Iterator[Trial]:
        """Yield all trials, with seeds as the outermost loop, so that early results are already paired."""
        for seed in self.seeds:
            for cell in self.cells:
                for family in self.families:
                    for policy in self.policies:
                        yield cell.trial(policy, family, seed)


def carry_out(
    study: Study, results: Results, processes: int, on_trial: Callable[[int, int], None]
) -> Mapping[Trial, Result]:
    """Perform the trials without a result, and return all results of the study.

    Args:
        study: the trials to perform.
        results: the known results; new ones are added.
        processes: the number of trials at once.
        on_trial: is called with the number of trials done in this session and their total; first with 0 done.

    Raises:
        DgmError: a trial went wrong; the message says which and how.
    """
    trials = dict.fromkeys(study.trials())
    missing = [trial for trial in trials if results.get(trial) is None]
    on_trial(0, len(missing))
    with closing(performed(missing, min(processes, max(len(missing), 1)))) as arriving:
        for done, (trial, result) in enumerate(arriving, 1):
            results.add(trial, result)
            on_trial(done, len(missing))
    known = {trial: results.get(trial) for trial in trials}
    return {trial: result for trial, result in known.items() if result is not None}


def _check(cell: Cell) -> None:
    if cell.budget < 1:
        raise UserError(f"budget {cell.budget}: must be 1 evaluation or more")
    if not 0 <= cell.expansion_cost < float("inf"):
        raise UserError(f"expansion cost {cell.expansion_cost}: must be 0 or more evaluations")
    if cell.workers is not None and not 1 <= cell.workers <= MOST_WORKERS:
        raise UserError(f"workers {cell.workers}: must be from 1 to {MOST_WORKERS}")
    if not 0 <= cell.failures < 1:
        raise UserError(f"failures {cell.failures}: must be a share below 1")
