"""The statement of a task, read from a benchmark without starting, fetching or grading anything."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from dgm.benchmarks.opening import DEFAULTS, is_local, open_suite
from dgm.config import BenchmarksSettings
from dgm.domain import TaskId
from dgm.errors import Infrastructure, UserError
from dgm.protocols import Sandbox, SandboxSpec


class _Unused:
    """The engine of a benchmark that is only read."""

    name = "none"

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        raise Infrastructure(f"no sandbox of {spec.image} is opened to read a benchmark")

    async def reap(self, labels: Mapping[str, str]) -> int:  # noqa: ARG002
        return 0


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
        benchmark = open_suite(name, _Unused(), settings) if is_local(name) else None
        if benchmark is None or benchmark.version != version:
            return None
        return benchmark.task(task).prompt
    except (UserError, Infrastructure, OSError, ValueError):
        # OSError and ValueError: the name is none that a file system takes.
        return None
