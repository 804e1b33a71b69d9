"""Subsets of SWE-bench with the composition of the whole, drawn and written to a file."""

from pathlib import Path

from dgm.benchmarks import swebench_subsets as subsets
from dgm.benchmarks.swebench_instances import load
from dgm.errors import UserError


def draw_subset(name: str, file: Path, search: int, holdout: int, seed: int) -> subsets.Subset:
    """Draw instances by repository and difficulty, and write them to a new subset file.

    Args:
        name: ``swebench:`` and a data set or a file.
        file: a new one.
        search: number of instances to search on, from 1.
        holdout: number of instances to hold out, from 0.
        seed: number that the choice follows from.

    Raises:
        UserError: the name is of no SWE-bench, there are too few instances, or the file exists.
    """
    kind, _, which = name.partition(":")
    if kind != "swebench" or not which:
        raise UserError(
            f"{name}: subsets are drawn of SWE-bench only; write swebench:verified or swebench:FILE"
        )
    if file.exists():
        raise UserError(f"{file}: is there already; give another name")
    drawn = subsets.draw(load(which), search, holdout, seed)
    try:
        file.write_text(subsets.text(drawn), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror or error}") from error
    return drawn
