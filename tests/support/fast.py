"""``pytest --fast``: the unit and property tests that start no process, and a failure for one that does.

A test that needs a process carries the marker ``starts_processes``, one that takes too long ``slow`` or ``minutes``;
``--fast`` leaves them out. Every other test runs with an audit hook that refuses each start, with ``--fast`` and
without, so an unmarked test fails at once and says what to do. The hook hears ``subprocess``, ``asyncio``,
``os.fork``, ``os.posix_spawn`` and ``os.system`` alike. Only a ``multiprocessing`` "spawn" context passes it.
"""

import platform
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

FOLDERS = ("unit", "property")
"""Folders of ``tests/`` that ``--fast`` collects."""
STARTS = frozenset(
    {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
)
"""Audit events of a start (https://docs.python.org/3/library/audit_events.html)."""
LEFT_OUT = ("starts_processes", "slow", "minutes", "sampled")
"""Markers of tests that ``--fast`` does not run."""
TESTS = Path(__file__).parents[1]


def is_outside(path: Path) -> bool:
    """Return whether a path is below ``tests/``, but in none of the folders of fast tests."""
    parts = path.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    return bool(parts) and parts[0] not in FOLDERS


def is_fast(item: pytest.Item) -> bool:
    """Return whether ``--fast`` runs a test."""
    return not is_outside(item.path) and not any(item.get_closest_marker(name) for name in LEFT_OUT)


class ProcessRefused(RuntimeError):
    """A process was about to start in a fast test."""


class NoProcesses:
    """A pytest plugin that refuses processes while a fast test runs."""

    def __init__(self) -> None:
        self._active = False
        self._refused: list[str] = []
        # Vendors' clients ask for it; the first answer of a process takes a start of uname, later ones are kept.
        platform.processor()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, details: tuple[object, ...]) -> None:
        if self._active and event in STARTS:
            self._refused.append(f"{event} {details[0] if details else ''}".rstrip())
            raise ProcessRefused(self._refused[-1])

    def _watch(self, item: pytest.Item) -> Generator[None, object, object]:
        """Refuse processes in one phase of a test; fail it even if the code under test hid the refusal."""
        self._active = is_fast(item)
        try:
            return (yield)
        finally:
            self._active = False
            if self._refused:
                first = self._refused[0]
                self._refused.clear()
                pytest.fail(f"starts a process ({first}): mark it with starts_processes", pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._watch(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._watch(item))


class FastOnly:
    """A pytest plugin that selects the fast tests."""

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave other folders' modules unread; a path named on the command line passes this."""
        return True if is_outside(collection_path) else None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = {item for item in items if not is_fast(item)}
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
