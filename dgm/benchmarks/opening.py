"""Opens whatever a user calls a benchmark: a shipped suite, a folder, a data set, a plug-in, or several with ``+``."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from dgm import plugins
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.suites import SuiteBenchmark, suite_names
from dgm.benchmarks.toml_table import suggestion
from dgm.config import BenchmarksSettings, Settings
from dgm.errors import UserError
from dgm.paths import asset
from dgm.protocols import Benchmark, SandboxEngine
from dgm.references import is_there

DEFAULTS = BenchmarksSettings()
HERE = Path()
"""The working folder, where a relative path begins unless a caller says otherwise."""


def _swebench(name: str, engine: SandboxEngine, settings: BenchmarksSettings) -> Benchmark:
    from dgm.benchmarks.swebench import open_swebench

    return open_swebench(name, engine, settings)


def _polyglot(name: str, engine: SandboxEngine, settings: BenchmarksSettings) -> Benchmark:
    from dgm.benchmarks.polyglot import open_polyglot

    return open_polyglot(name, engine, settings)


Opener = Callable[[str, SandboxEngine, BenchmarksSettings], Benchmark]
KINDS: Mapping[str, Opener] = {"swebench": _swebench, "polyglot": _polyglot}
"""What stands before the colon → who opens what stands behind it."""
EXAMPLES: Mapping[str, str] = {
    "swebench": "swebench:verified or swebench:FILE",
    "polyglot": "polyglot:FOLDER",
}

SHAPE: Mapping[str, int | None] = {
    "name": None,
    "version": None,
    "tasks": 1,
    "task": 1,
    "workspace": 1,
    "again": 3,
    "grade": 3,
}
"""What a plug-in's benchmark has, with how many arguments it is called."""


def open_suite(
    name_or_path: str, engine: SandboxEngine, settings: BenchmarksSettings = DEFAULTS
) -> Benchmark:
    """Opens a benchmark by what users call it.

    Args:
        name_or_path: a shipped suite's name, the path of a suite's folder, ``swebench:…``, ``polyglot:…``, the name of
            a plug-in (an entry point of the group ``dgm.benchmarks``: a factory that is called with the engine), or
            several of these with ``+`` between them.
        engine: opens the sandboxes for grading.
        settings: what some need to know beyond their name.

    Raises:
        UserError: there is none, or a file of it is missing or wrong.
    """
    names = parts(name_or_path)
    opened = [_open(name, engine, settings) for name in names]
    return opened[0] if len(opened) == 1 else MixedBenchmark(opened)


def parts(name: str, folder: Path = HERE) -> Sequence[str]:
    """The names between the ``+``; a path that has a ``+`` of its own stays whole where it exists.

    Args:
        name: what users call a benchmark.
        folder: where a relative path begins.

    Raises:
        UserError: nothing stands before, behind or between them.
    """
    words = name.split("+")
    found: list[str] = []
    while words:
        long = [n for n in range(len(words), 1, -1) if _place("+".join(words[:n]), folder).exists()]
        taken = long[0] if long else 1
        found.append("+".join(words[:taken]))
        words = words[taken:]
    if not all(word.strip() for word in found):
        raise UserError(
            f"benchmark {name!r}: nothing stands on one side of a '+'; write it as 'starter+FOLDER'"
        )
    return found


def local(name: str) -> bool:
    """Whether a benchmark can be opened without asking another machine, a plug-in or an engine: suites and folders.

    Raises:
        UserError: nothing stands before, behind or between two ``+``.
    """
    return all(map(_local, parts(name)))


def _local(name: str) -> bool:
    kind, colon, rest = name.partition(":")
    if colon and kind in KINDS:
        return kind == "polyglot" and (not rest or _place(name).is_dir())
    return any((folder / "suite.toml").is_file() for folder in (asset("benchmarks", name), _place(name)))


def absolute(name: str, folder: Path = HERE) -> str:
    """What users call a benchmark, with the files and folders in it found again from any other folder.

    Args:
        name: what users call it.
        folder: where a relative path begins.

    Raises:
        UserError: nothing stands before, behind or between two ``+``.
    """
    return "+".join(_absolute(part, folder) for part in parts(name, folder))


def absolute_subset(name_or_file: str, folder: Path = HERE) -> str:
    """A subset's name, or its file as it is found again from any other folder."""
    from dgm.benchmarks import swebench_subsets

    file = folder / Path(name_or_file).expanduser()
    return name_or_file if name_or_file in swebench_subsets.names() or not file.is_file() else _whole(file)


def placed(settings: Settings) -> Settings:
    """With benchmarks and subsets that are named by their paths found again from any other folder.

    Raises:
        UserError: the benchmark's name is none.
    """
    swebench = settings.benchmarks.swebench
    subset = absolute_subset(swebench.subset) if swebench.subset else None
    benchmarks = {"swebench": swebench.model_copy(update={"subset": subset})}
    return settings.model_copy(
        update={
            "benchmark": absolute(settings.benchmark),
            "benchmarks": settings.benchmarks.model_copy(update=benchmarks),
        }
    )


def _absolute(name: str, folder: Path) -> str:
    kind, colon, rest = name.partition(":")
    place = _place(name, folder)
    if colon and kind in KINDS:
        # An empty rest stands for what is shipped; the names of data sets go before files of theirs.
        there = place.is_dir() if kind == "polyglot" else place.is_file() and rest not in _data_sets()
        return f"{kind}:{_whole(place)}" if rest and there else name
    shipped = asset("benchmarks", name) / "suite.toml"
    return _whole(place) if (place / "suite.toml").is_file() and not shipped.is_file() else name


def _data_sets() -> Collection[str]:
    from dgm.benchmarks.swebench_rows import DATA_SETS

    return DATA_SETS


def _whole(path: Path) -> str:
    # A file that is a link keeps its name, which a benchmark is known by.
    return str(path.resolve() if path.is_dir() else path.parent.resolve() / path.name)


def _place(name: str, folder: Path = HERE) -> Path:
    kind, colon, rest = name.partition(":")
    return folder / Path(rest if colon and kind in KINDS else name).expanduser()


def _open(name: str, engine: SandboxEngine, settings: BenchmarksSettings) -> Benchmark:
    kind, colon, _ = name.partition(":")
    if colon and kind in KINDS:
        return KINDS[kind](name, engine, settings)
    shipped = asset("benchmarks", name)
    path = Path(name).expanduser()
    for folder in (shipped, path):
        if (folder / "suite.toml").is_file():
            return SuiteBenchmark(folder, engine)
    if name in plugins.installed("benchmarks") or is_there("benchmarks", name):
        made = plugins.make("benchmarks", name, engine)
        plugins.check_shape("benchmarks", name, made, SHAPE)
        return cast("Benchmark", made)
    if name in KINDS:
        raise UserError(f"benchmark {name!r}: say which, as in {EXAMPLES[name]} (see dgm benchmark list)")
    if colon:
        hint = suggestion(kind, list(KINDS))
        raise UserError(f"benchmark {name!r}: no kind of benchmark {kind!r}{hint}")
    hint = suggestion(name, [*suite_names(), *plugins.installed("benchmarks")])
    raise UserError(
        f"no suite {name!r}: no suite.toml in {shipped} or {path.absolute()}, and no plug-in{hint}"
    )
