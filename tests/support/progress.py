"""``pytest --progress``: how many tests of all are done, and about how much time is left.

On a terminal it is a bar; elsewhere a line for each twentieth of the work. Failures are named at once.
"""

import time
from collections.abc import Generator
from pathlib import PurePosixPath

import pytest
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

WEIGHTS = {"docker": 15, "e2e": 40, "tui": 20, "property": 3}
"""Folder of ``tests/`` → how long one of its tests takes, in those of ``tests/unit``; only for the time left."""
TestStatus = tuple[str, object, object]
PARTS = 20
"""Lines of a run that is not on a terminal."""


def weight_of(test_id: str) -> int:
    """Return how much of the work a test is."""
    parts = PurePosixPath(test_id.partition("::")[0]).parts
    return WEIGHTS.get(parts[1], 1) if len(parts) > 1 else 1


def minutes_text(seconds: float) -> str:
    """Return a rough time in words."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class ProgressBar:
    """A pytest plugin of the process that starts the others, or of the only one."""

    def __init__(self, config: pytest.Config, console: Console) -> None:
        self._config = config
        self._console = console
        self._bar = Progress(
            TextColumn("{task.fields[tests]}"),
            BarColumn(),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=console,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, tests="collecting", left="")
        self._weights: dict[str, int] = {}
        self._begun_s = time.monotonic()
        self._done = self._work = self._failed = self._lines = 0
        self._is_reporting = False

    def pytest_sessionstart(self) -> None:
        self._bar.start()

    def pytest_sessionfinish(self) -> None:
        self._bar.stop()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Begin the count: each process collects the same tests."""
        if not self._weights:
            self._begin(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._begin([item.nodeid for item in session.items])

    def _begin(self, test_ids: list[str]) -> None:
        self._weights = {test_id: weight_of(test_id) for test_id in test_ids}
        self._begun_s = time.monotonic()
        self._bar.update(self._task, total=sum(self._weights.values()))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, TestStatus, TestStatus]:
        """Count a test that is reported without printing a letter for it; the summary has its words."""
        status = yield
        return (status[0], "", "") if self._is_reporting else status

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        if report.failed:
            self._failed += 1
            self._console.print(f"FAILED {report.nodeid}", markup=False, highlight=False, soft_wrap=True)
        self._is_reporting = True
        try:
            yield
        finally:
            self._is_reporting = False

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        weight = self._weights.get(nodeid, 0)
        self._done += 1
        self._work += weight
        total = sum(self._weights.values()) or 1
        tests = f"{self._done:,} of {len(self._weights):,} tests"
        if self._failed:
            tests += f", {self._failed:,} failed"
        elapsed_s = time.monotonic() - self._begun_s
        left = f"about {minutes_text(elapsed_s * (total / max(self._work, 1) - 1))} left"
        self._bar.update(self._task, advance=weight, tests=tests, left=left)
        if not self._console.is_terminal and (line := self._work * PARTS // total) > self._lines:
            self._lines = line
            self._console.print(f"{self._work / total:4.0%}  {tests}, {left}", highlight=False)


def register_progress(config: pytest.Config) -> None:
    """Show progress in the process that has the terminal."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        reporter.showfspath = False
        console = Console(file=reporter._tw._file, force_terminal=reporter._tw.hasmarkup or None)
        config.pluginmanager.register(ProgressBar(config, console), "progress-bar")
