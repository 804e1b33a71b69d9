"""The opening of a benchmark by its name: a shipped suite, a folder, a data set, a plug-in, or several with ``+``."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, cast, runtime_checkable

from dgm import plugins
from dgm.benchmarks.formats import FORMATS, BenchmarkContext, Format, format_of
from dgm.benchmarks.grader_version import data_of
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.suites import SuiteBenchmark, suite_names
from dgm.benchmarks.toml_table import suggestion
from dgm.config import BenchmarksSettings, GradingSettings, Settings
from dgm.domain import TaskId
from dgm.errors import Infrastructure, UserError
from dgm.paths import asset
from dgm.protocols import Benchmark, SandboxEngine, SandboxSpec

log = logging.getLogger(__name__)

DEFAULTS = BenchmarksSettings()
GRADING = GradingSettings()
_SWEBENCH, _IMAGES_FOR = "swebench:", "x86_64"
HERE = Path()
"""The working folder, the default base of relative paths."""
SHAPE: Mapping[str, int | None] = {
    "name": None,
    "version": None,
    "tasks": 1,
    "task": 1,
    "workspace": 1,
    "again": 3,
    "grade": 3,
}
"""Attributes of a plug-in's benchmark, and the number of arguments of its methods; None for plain attributes."""


class NoSandboxEngine:
    """A sandbox engine for callers that open no sandbox."""

    name = "none"

    def open(self, spec: SandboxSpec) -> NoReturn:
        """Refuse to open a sandbox."""
        raise Infrastructure(f"no sandbox of {spec.image} is opened to read a benchmark")

    async def reap(self, labels: Mapping[str, str]) -> int:  # noqa: ARG002  (there is nothing to remove)
        """Remove nothing."""
        return 0


@runtime_checkable
class HasMachine(Protocol):
    """An engine that knows the architecture of its sandboxes."""

    @property
    def machine(self) -> str:
        """The architecture, in the words of ``uname -m``, such as ``x86_64``."""
        ...


def open_suite(
    name_or_path: str,
    engine: SandboxEngine,
    settings: BenchmarksSettings = DEFAULTS,
    grading: GradingSettings = GRADING,
) -> Benchmark:
    """Open a benchmark by its name.

    Args:
        name_or_path: a shipped suite's name, the path of a suite's folder, ``swebench:…``, ``polyglot:…``, the name of
            a plug-in (an entry point of the group ``dgm.benchmarks``: a factory of a benchmark from a
            ``BenchmarkContext``), or several of these with ``+`` between them.
        engine: opens the sandboxes for grading.
        settings: settings that some benchmarks need in addition to their name.
        grading: settings of the grading.

    Raises:
        UserError: there is none, or a file of it is missing or wrong.
    """
    names = parts(name_or_path)
    if any(name.startswith(_SWEBENCH) for name in names) and isinstance(engine, HasMachine):
        _warn_of_other_machine(engine.machine)
    opened = [_open(BenchmarkContext(name, engine, settings, grading)) for name in names]
    return opened[0] if len(opened) == 1 else MixedBenchmark(opened)


def check_images(benchmark: Benchmark) -> None:
    """Check the images that a suite's tasks name, before anything is paid for.

    Raises:
        UserError: one is missing, or lacks a program that dgm needs.
        Infrastructure: the engine failed.
    """
    match benchmark:
        case MixedBenchmark():
            for part in benchmark.parts.values():
                check_images(part)
        case SuiteBenchmark():
            benchmark.check_images()


def _warn_of_other_machine(machine: str) -> None:
    if machine != _IMAGES_FOR:
        log.warning(
            "SWE-bench publishes images for %s only, and the sandboxes' machine is %s: they run emulated and slowly "
            "there, or not at all",
            _IMAGES_FOR,
            machine,
        )


def parts(name: str, folder: Path = HERE) -> Sequence[str]:
    """Return the names between the ``+``; a path that contains a ``+`` stays whole if it exists.

    Args:
        name: the benchmark's name.
        folder: base of a relative path.

    Raises:
        UserError: a name before, behind or between them is empty.
    """
    words = name.split("+")
    found: list[str] = []
    while words:
        long = [n for n in range(len(words), 1, -1) if _path_of("+".join(words[:n]), folder).exists()]
        taken = long[0] if long else 1
        found.append("+".join(words[:taken]))
        words = words[taken:]
    if not all(word.strip() for word in found):
        raise UserError(
            f"benchmark {name!r}: nothing stands on one side of a '+'; write it as 'starter+FOLDER'"
        )
    return found


def is_local(name: str) -> bool:
    """Return whether a benchmark is a suite or folder: it opens without another machine, a plug-in or an engine.

    Raises:
        UserError: a name before, behind or between two ``+`` is empty.
    """
    return all(map(_local, parts(name)))


def _local(name: str) -> bool:
    kind, colon, rest = name.partition(":")
    if not colon or kind not in FORMATS:
        return find_suite_folder(name) is not None
    found = format_of(kind)
    return found.is_local and (_is_there(found, _path_of(name)) if rest else bool(found.shipped))


def absolute(name: str, folder: Path = HERE) -> str:
    """Return a benchmark's name with absolute paths, valid in any other folder.

    Args:
        name: the benchmark's name.
        folder: base of a relative path.

    Raises:
        UserError: a name before, behind or between two ``+`` is empty.
    """
    return "+".join(_absolute(part, folder) for part in parts(name, folder))


def absolute_subset(name_or_file: str, folder: Path = HERE) -> str:
    """Return a subset's name, or the absolute path of its file."""
    from dgm.benchmarks.swebench_rows import subset_names

    file = folder / Path(name_or_file).expanduser()
    return name_or_file if name_or_file in subset_names() or not file.is_file() else _absolute_path(file)


def statement_of(
    name: str, version: str, task: TaskId, settings: BenchmarksSettings = DEFAULTS
) -> str | None:
    """Return the problem of a task as agents get it.

    Return None if the benchmark is not on this machine, is of another version, or has no such task.

    Args:
        name: name of the benchmark, as in ``open_suite``.
        version: the expected ``Benchmark.version``.
        task: task of the benchmark.
        settings: as in ``open_suite``.
    """
    try:
        benchmark = open_suite(name, NoSandboxEngine(), settings) if is_local(name) else None
        if benchmark is None or data_of(benchmark.version) != data_of(version):
            return None
        return benchmark.task(task).prompt
    except (UserError, Infrastructure, OSError, ValueError):
        # OSError and ValueError: the name is none that a file system takes.
        return None


def make_paths_absolute(settings: Settings) -> Settings:
    """Return the settings with absolute paths of benchmarks and subsets, valid in any other folder.

    Raises:
        UserError: the benchmark's name is not valid.
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
    place = _path_of(name, folder)
    if colon and kind in FORMATS:
        # An empty rest means the shipped one; names of data sets take precedence over files with the same name.
        found = format_of(kind)
        there = rest not in found.data_sets and _is_there(found, place)
        return f"{kind}:{_absolute_path(place)}" if rest and there else name
    shipped = asset("benchmarks", name) / "suite.toml"
    return _absolute_path(place) if (place / "suite.toml").is_file() and not shipped.is_file() else name


def _is_there(found: Format, place: Path) -> bool:
    return place.is_dir() if found.is_folder else place.is_file()


def _absolute_path(path: Path) -> str:
    # A linked file keeps its name, which identifies the benchmark.
    return str(path.resolve() if path.is_dir() else path.parent.resolve() / path.name)


def _path_of(name: str, folder: Path = HERE) -> Path:
    kind, colon, rest = name.partition(":")
    return folder / Path(rest if colon and kind in FORMATS else name).expanduser()


def find_suite_folder(name: str) -> Path | None:
    """Return the folder of a suite by its name or path; None if the name means something else.

    Args:
        name: one benchmark's name, without ``+``.
    """
    places = (asset("benchmarks", name), Path(name).expanduser())
    return next((folder for folder in places if (folder / "suite.toml").is_file()), None)


def _open(context: BenchmarkContext) -> Benchmark:
    name = context.name
    kind, colon, _ = name.partition(":")
    if colon and kind in FORMATS:
        return cast("Benchmark", plugins.make_plugin("benchmarks", kind, context, FORMATS))
    shipped, path = asset("benchmarks", name), Path(name).expanduser()
    if folder := find_suite_folder(name):
        return SuiteBenchmark(folder, context.engine, context.grading.perturb)
    if name in plugins.find_installed("benchmarks") or plugins.is_available("benchmarks", name):
        # A built-in format never goes by its bare name, so that a plug-in may have it.
        return cast("Benchmark", plugins.make_plugin("benchmarks", name, context, {}, SHAPE))
    if name in FORMATS:
        example = format_of(name).example
        raise UserError(f"benchmark {name!r}: say which, as in {example}")
    if colon:
        hint = suggestion(kind, list(FORMATS))
        raise UserError(f"benchmark {name!r}: no kind of benchmark {kind!r}{hint}")
    hint = suggestion(name, [*suite_names(), *plugins.find_installed("benchmarks")])
    folders = " or ".join(sorted({str(shipped), str(path.absolute())}))
    raise UserError(f"no suite {name!r}: no suite.toml in {folders}, and no plug-in{hint}")
