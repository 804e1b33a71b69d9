"""Words that a person types for several runs: names and paths, names of sweeps, and patterns such as ``policies-*``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from dgm.archive.finding import archive_folders, find_run, find_runs_in, locate_run
from dgm.errors import UserError
from dgm.experiments.sweep_folder import SweepFolder, find_sweep

_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run that a word stands for."""

    folder: Path
    sweep: str | None = None
    variant: str | None = None
    """The run's name in its sweep; None where it was not named by its sweep."""


@dataclass(frozen=True, slots=True)
class NamedRuns:
    """All runs that were named, each once."""

    runs: Sequence[NamedRun]
    not_begun: Sequence[str]
    """Names of runs of a sweep that do not exist yet."""


def find_runs(words: Sequence[str]) -> NamedRuns:
    """Return the runs that words stand for, in their order.

    Raises:
        UserError: a word stands for no run.
    """
    found: dict[Path, NamedRun] = {}
    not_begun: list[str] = []
    for word in words:
        for run in _find_by_word(word):
            if (run.folder / "run.json").is_file():
                found.setdefault(run.folder.resolve(), run)
            else:
                not_begun.append(run.folder.name)
    return NamedRuns(list(found.values()), not_begun)


def _find_by_word(word: str) -> Iterator[NamedRun]:
    if _is_run(word):
        yield NamedRun(find_run(word))
    elif sweep := find_sweep(word):
        yield from _find_in_sweep(sweep)
    elif _WILD & {*word}:
        yield from _find_by_pattern(word)
    else:
        # Tells which runs there are.
        yield NamedRun(find_run(word))


def _is_run(word: str) -> bool:
    try:
        locate_run(word)
    except UserError:
        return False
    return True


def _find_in_sweep(sweep: SweepFolder) -> Iterator[NamedRun]:
    for member in sweep.members():
        yield NamedRun(sweep.run(member.run), sweep.name, member.variant)


def _find_by_pattern(word: str) -> Iterator[NamedRun]:
    fitting = {
        path.name: path
        for folder in archive_folders()
        for path in find_runs_in(folder)
        if fnmatchcase(path.name, word)
    }
    if not fitting:
        raise UserError(f"no run fits {word!r}; see which there are with: dgm list")
    yield from (NamedRun(fitting[name]) for name in sorted(fitting))
