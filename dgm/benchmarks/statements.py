"""What a task asks for, read from a benchmark that is only looked at: nothing is started, fetched or graded."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from dgm.benchmarks.opening import DEFAULTS, local, open_suite
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
    """The problem of a task as agents get it.

    None where the benchmark does not lie on this machine, is of another version, or has no such task.

    Args:
        name: of the benchmark, as in ``open_suite``.
        version: as ``Benchmark.version`` was.
        task: of the benchmark.
        settings: as in ``open_suite``.
    """
    try:
        benchmark = open_suite(name, _Unused(), settings) if local(name) else None
        if benchmark is None or benchmark.version != version:
            return None
        return benchmark.task(task).prompt
    except (UserError, Infrastructure, OSError, ValueError):
        # The last two: a name that no file system takes.
        return None
