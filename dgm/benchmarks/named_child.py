"""Runs pytest on named tests inside the sandbox, in the process that imports the repository.

``named_runner.py`` starts it (Python >= 3.9, any pytest since 6). Code under test shares this process, so nothing that
it says is more than a claim: the host compares it with what tests must report. Two tests of its own, which must fail,
take the same way as all others.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import os
import signal
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

USAGE_ERROR = 4
"""Exit code of pytest for options that it does not know."""
OFF = ("randomly", "random_order", "cacheprovider", "rerunfailures", "flaky", "pytest_rerunfailures")
"""Plug-ins that change the order of tests, repeat them, or write into the workspace."""
NO_AUTOLOAD = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
MESSAGE = 6000
MOST_FOREIGN = 5


class Control(pytest.Item):
    """A test that must fail, under a name that only its runner knows."""

    def runtest(self) -> None:
        """Is wrong, or breaks."""
        if self.name == "asserts":
            assert ["this"] == ["that"]
        raise LookupError(self.name)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:  # noqa: ARG002
        """Keep the output to the repository's own tests."""
        return "(a test of dgm's own, which must fail)"


class Reporter:
    """A plug-in of pytest: one line a test, in the order in which they end."""

    def __init__(self, task: dict[str, Any], say: Callable[..., None], support: types.ModuleType) -> None:
        self._say = say
        self._survey = task["survey"]
        named = task["only"] if self._survey else task["tests"]
        self._wanted = frozenset(named) if named else None
        self._controls = dict(zip(("asserts", "raises"), task["controls"]))  # noqa: B905  (Python 3.9)
        self._workdir = task["workdir"]
        self._paths, self._files = task["paths"], task["files"]
        self._packages = [*sys.path]
        self._sources = task["sources"]
        self._limit_s = task["limit_s"]
        self._describe = support.describe
        self._support = support
        self._check: Callable[[], bool] = lambda: False
        self._pytest: dict[tuple[str, str], object] = {}
        self._outcomes: dict[str, tuple[str, Any, str]] = {}
        self.began = False

    def pytest_addoption(self, pluginmanager: pytest.PytestPluginManager) -> None:
        """Load plug-ins and compile the tests while nothing of the workspace can be imported."""
        sys.path[:] = self._packages
        pluginmanager.load_setuptools_entrypoints("pytest11")
        for plugin in pluginmanager.get_plugins():
            # It replaces methods of pytest's; they count as pytest's own.
            if getattr(plugin, "__name__", "").startswith("pytest_subtests"):
                plugin.pytest_configure(None)
        if not self._pytest:
            self._held = self._support.HeldTests(compile_tests(self._sources, self._workdir, self._files))
            self._held.lead()
            self._check, self._pytest = self._support.untouched(), attributes()
        sys.path[:0] = self._paths
        os.environ[NO_AUTOLOAD] = "1"

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self) -> Iterator[None]:
        """Leave plug-ins to programs that the tests start."""
        os.environ.pop(NO_AUTOLOAD, None)
        yield

    def untouched(self) -> bool:
        """Return whether what runs the tests is what it was."""
        now = attributes()
        same = self._pytest.keys() == now.keys() and all(self._pytest[each] is now[each] for each in now)
        return same and bool(self._check())

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Keep the wanted tests, and add those that must fail."""
        self.began = True
        if self._wanted is not None:
            items[:] = [item for item in items if item.nodeid in self._wanted]
        for item in items:
            self._hold(item)
        items += [Control.from_parent(session, name=name) for name in self._controls]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:  # noqa: ARG002  (the hook's shape)
        """End a test that takes too long, where it lets itself be ended."""
        if self._limit_s:
            signal.signal(signal.SIGALRM, too_late)
            signal.setitimer(signal.ITIMER_REAL, self._limit_s)
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
        """Take the worst of set-up, call and tear-down, by the exception itself and by pytest's report."""
        answer: Any = yield
        report = answer.get_result()
        outcome, error, message = self._outcomes.get(item.nodeid, ("passed", None, ""))
        raised = call.excinfo
        if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
            outcome = "skipped" if outcome == "passed" else outcome
        elif report.outcome != "passed" or raised is not None or hasattr(report, "wasxfail"):
            if outcome != "failed":
                error = self._describe(raised.value if raised else None, self._workdir)
                message = str(report.longrepr or "")[-MESSAGE:]
            outcome = "failed"
        self._outcomes[item.nodeid] = outcome, error, message
        if report.when == "teardown":
            self._tell(item, outcome, error, message)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has no tests, but a reason."""
        if report.failed:
            self._say(broken=report.nodeid, message=str(report.longrepr)[-MESSAGE:])

    def _tell(self, item: pytest.Item, outcome: str, error: object, message: str) -> None:
        name = self._controls[item.name] if isinstance(item, Control) else item.nodeid
        told = {"message": message} if self._survey and message else {}
        self._say(test=name, outcome=outcome if self.untouched() else "failed", error=error, **told)

    def _hold(self, item: pytest.Item) -> None:
        """Refuse a test that is not of the code that was compiled."""
        path = f"{self._workdir}/{item.nodeid.split('::', 1)[0]}"
        if isinstance(item, pytest.Function) and path in self._held.codes:
            module: Any = item.getparent(pytest.Module)
            if self._held.executed.get(id(module.obj), (None, ""))[1] != path:
                self._say(test=item.nodeid, outcome="failed", error=None)


class Coverage:
    """A plug-in of pytest: notes the lines that each test reaches, under the test's name."""

    def __init__(self, folder: str, paths: Sequence[str]) -> None:
        # Of the environment in the sandbox; dgm itself does not need it.
        coverage: Any = importlib.import_module("coverage")
        os.mkdir(folder)  # noqa: PTH102
        self._coverage = coverage.Coverage(
            f"{folder}/data", config_file=False, source=list(paths), data_suffix=False, messages=False
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Begin before the repository is imported."""
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note under the test's name what is reached meanwhile."""
        self._coverage.switch_context(item.nodeid)
        yield
        self._coverage.switch_context("")

    def save(self) -> None:
        """Write the file."""
        self._coverage.stop()
        self._coverage.save()


def too_late(*_: object) -> None:
    """End the test that runs."""
    raise TimeoutError("this test took too long")


def attributes() -> dict[tuple[str, str], object]:
    """Every attribute of pytest's classes and functions that decide whether a test passes."""
    from _pytest import python, reports, runner, unittest

    kinds = (
        pytest.Item, pytest.Function, runner.CallInfo, reports.TestReport, reports.BaseReport, runner, python.Package,
        unittest.TestCaseFunction,
    )  # fmt: skip
    return {
        (kind.__name__, name): value
        for kind in kinds
        for name, value in vars(kind).items()
        if callable(value)
    }


def compile_tests(sources: dict[str, str], workdir: str, files: Sequence[str]) -> dict[str, types.CodeType]:
    """Return the code of test files by their paths; of those that hold tests with pytest's own assertions."""
    from _pytest.assertion.rewrite import rewrite_asserts

    codes = {}
    for name, text in sources.items():
        path, source = f"{workdir}/{name}", text.encode("latin-1")
        with contextlib.suppress(SyntaxError, ValueError, RecursionError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, filename=path)
            if not files or name in files or name.split("/")[-1] == "conftest.py":
                rewrite_asserts(tree, source, path)
            codes[path] = compile(tree, path, "exec", dont_inherit=True)
    return codes


def arguments(task: dict[str, Any], *, plain: bool) -> list[str]:
    """Return pytest's arguments; ``plain`` without the options of the repository's own configuration."""
    found = [word for name in OFF for word in ("-p", f"no:{name}")]
    found += [
        "--tb=short",
        "--color=no",
        f"--maxfail={task['most_failures']}",
        "--continue-on-collection-errors",
        f"--rootdir={task['workdir']}",
    ]
    found += ["-o", "addopts="] if plain else []
    if not plain and importlib.util.find_spec("xdist"):
        found += ["-n0"]
    if not plain and importlib.util.find_spec("pytest_cov"):
        found += ["--no-cov"]
    return [*found, *task["options"], *task["files"]]


def find_foreign(tops: Sequence[str], workdir: str) -> list[str]:
    """Return modules of the project that were imported from elsewhere than the workspace."""
    found = []
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if (
            name.split(".")[0] in tops
            and isinstance(file, str)
            and not os.path.realpath(file).startswith(f"{workdir}/")
        ):
            found.append(f"{name} ({file})")
    return found[:MOST_FOREIGN]


def without_system_packages(paths: Sequence[str]) -> list[str]:
    """Return the paths but those of packages that the system's Python has; all where it is a virtual environment's."""
    if sys.prefix != sys.base_prefix:
        return [*paths]
    return [path for path in paths if not path.endswith(("/dist-packages", "/site-packages"))]


def child(results_fd: int) -> None:
    """The only process that imports the repository: runs the tests and says what became of each."""
    task = json.load(sys.stdin)
    os.set_inheritable(results_fd, False)
    nonce, dumps, write, leave = task["nonce"], json.dumps, os.write, os._exit
    support = types.ModuleType("dgm_support")
    exec(compile(task["support"], "dgm_support", "exec", dont_inherit=True), vars(support))

    def say(**said: object) -> None:
        write(results_fd, f"\n{nonce} {dumps(said)}\n".encode())

    del sys.path[0]
    if task["sealed"]:
        sys.path[:] = without_system_packages(sys.path)
    reporter = Reporter(task, say, support)
    os.chdir(task["workdir"])
    sys.stdin = io.StringIO()
    sys.argv = ["pytest"]
    programs = [f"{path}/bin" for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PATH"] = os.pathsep.join([*programs, os.environ["PATH"]])
    os.environ["PYTHONPATH"] = os.pathsep.join([*task["paths"], os.environ.get("PYTHONPATH", "")])
    reached = Coverage(task["coverage"], task["paths"]) if task["coverage"] else None
    plugins = [reporter, *([reached] if reached else [])]
    with contextlib.suppress(SystemExit):
        status = pytest.main(arguments(task, plain=False), plugins=plugins)
        if status == USAGE_ERROR and not reporter.began:
            pytest.main(arguments(task, plain=True), plugins=plugins)
    for foreign in find_foreign(task["tops"], os.path.realpath(task["workdir"])):
        say(foreign=foreign)
    if reached:
        reached.save()
    say(end=True)
    leave(0)


if __name__ == "__main__":
    child(int(sys.argv[1]))
