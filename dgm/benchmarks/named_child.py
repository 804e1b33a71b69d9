"""Runs pytest on named tests inside the sandbox, in the process that imports the repository.

``sandbox_runner.py`` starts it (Python >= 3.9, any pytest since 6). Code under test shares this process, so nothing
that it says is more than a claim: the host compares it with what tests must report. Two tests of its own, which must
fail, take the same way as all others. Test files are imported as they were read before anything graded ran.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import signal
import sys
import traceback
import unittest
import unittest.case
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

BROUGHT = sys.argv[2:]
"""Folder with a pytest of dgm's own, or nothing; and ``last``, if the sandbox's own comes first."""
if BROUGHT:
    sys.path.insert(len(sys.path) if BROUGHT[1:] else 1, BROUGHT[0])

import pytest  # noqa: E402

if TYPE_CHECKING:
    from types import CodeType, ModuleType

USAGE_ERROR = 4
"""Exit code of pytest for options that it does not know."""
OFF = (
    "randomly", "random_order", "cacheprovider", "rerunfailures", "flaky", "pytest_rerunfailures",
    "black", "flake8", "mypy", "ruff", "isort", "pylint", "pycodestyle", "checkdocs",
)  # fmt: skip
"""Plug-ins that change the order of tests, repeat them, write into the workspace, or add checks of style as tests."""
NO_AUTOLOAD = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
MESSAGE = 6000
MOST_PLACES = 8
"""Maximum number of places in own files that are told of an exception."""
FRAMEWORK = (
    unittest.TestCase, unittest.TestResult, unittest.TestSuite, unittest.TestSuite.__mro__[1],
    vars(unittest.case)["_Outcome"],
)  # fmt: skip
DECIDING = (
    "__build_class__", "__import__", "isinstance", "issubclass", "getattr", "type", "AssertionError", "Exception",
    "compile", "exec",
)  # fmt: skip
"""Python's own names by which tests are made and judged."""


class HeldLoader(importlib.machinery.SourceFileLoader):
    """Runs the code of one test file that was compiled before anything graded was imported."""

    def __init__(self, name: str, path: str, held: HeldTests, run: Callable[..., None] = exec) -> None:
        super().__init__(name, path)
        self._held, self._run = held, run

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (the loader's own)
        """Return what was compiled."""
        return self._held.codes[self.path]

    def exec_module(self, module: ModuleType) -> None:
        """Run it, whatever ``exec`` is by now."""
        self._held.executed[id(module)] = (module, self.path)
        self._run(self._held.codes[self.path], vars(module))


class HeldTests:
    """Finds the test files that were compiled, so that nothing else can stand in for them."""

    def __init__(self, codes: dict[str, CodeType]) -> None:
        self.codes = codes
        """Path → code."""
        self.executed: dict[int, tuple[ModuleType, str]] = {}
        """Identity of a module → the module and its path."""
        self._names = {part.removesuffix(".py") for path in codes for part in path.split("/")[-2:]}
        suffixes = importlib.machinery.all_suffixes()
        self._endings = [f"{inside}{suffix}" for inside in ("/__init__", "") for suffix in suffixes]
        self._stat, self._cwd = os.stat, os.getcwd

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module of the first folder that has it, if it is a test's."""
        tail = name.rpartition(".")[2]
        for folder in (sys.path if path is None else path) if tail in self._names else ():
            stem = f"{folder or self._cwd()}/{tail}"
            for file in (f"{stem}/__init__.py", f"{stem}.py"):
                if file in self.codes:
                    inside = [stem] if file.endswith("/__init__.py") else None
                    return importlib.util.spec_from_file_location(
                        name, file, loader=HeldLoader(name, file, self), submodule_search_locations=inside
                    )
            if any(self._exists(stem + ending) for ending in self._endings):
                return None
        return None

    def _exists(self, file: str) -> bool:
        try:
            self._stat(file)
        except (OSError, ValueError):
            return False
        return True

    def lead(self) -> None:
        """Make this the first finder of ``sys.meta_path``, whatever is inserted there later."""
        sys.meta_path = LedBy(self, sys.meta_path)


class LedBy(list[Any]):
    """A list that begins with one element whatever is inserted before it."""

    def __init__(self, first: HeldTests, others: Iterable[Any]) -> None:
        super().__init__([first, *(each for each in others if each is not first)])
        self._first = first

    def __iter__(self) -> Iterator[Any]:
        yield self._first
        yield from (each for each in list.__iter__(self) if each is not self._first)


class Failing(unittest.TestCase):
    """A test of ``unittest`` that must fail."""

    def runTest(self) -> None:  # noqa: N802  (unittest's name)
        """Fail."""
        self.assertEqual("this", "that")  # noqa: PT009  (this is what must not be tampered with)


class Control(pytest.Item):
    """A test that must fail, under a name that only its runner knows."""

    def runtest(self) -> None:
        """Fail an assertion, or raise an error where ``unittest`` sees a failure."""
        if self.name == "asserts":
            assert ["this"] == ["that"]
        result = unittest.TestResult()
        Failing().run(result)
        if result.failures:
            raise LookupError(self.name)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:  # noqa: ARG002
        """Keep the output to the repository's own tests."""
        return "(a test of dgm's own, which must fail)"


def shorten(report: str) -> str:
    """Return the end of pytest's report on a failure, and before it the error, where local variables push it out."""
    end = report[-MESSAGE:]
    if len(report) == len(end) or re.search(r"^E ", end, re.M):
        return end
    errors = "\n".join(row for row in report.splitlines() if row.startswith("E "))
    return f"{errors[: MESSAGE // 2]}\n{report[-MESSAGE // 2 :]}"


def describe(error: BaseException | None, workdir: str) -> dict[str, object]:
    """Return the kind of an exception, and the places in the workspace that it went through."""
    places: list[tuple[str, int | None]] = []
    if error is not None:
        places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
    inside = [(name[len(workdir) + 1 :], line) for name, line in places if name.startswith(f"{workdir}/")]
    return {"kind": type(error).__name__, "lines": inside[-MOST_PLACES:]}


def framework() -> dict[tuple[int, str], object]:
    """Return every attribute of ``unittest``'s classes that decide whether a test passes."""
    return {
        (place, name): value for place, kind in enumerate(FRAMEWORK) for name, value in vars(kind).items()
    }


def untouched() -> Callable[[], bool]:
    """Return a check whether ``unittest`` and Python's own functions are as now, and no code is traced."""
    before, own = framework(), {name: vars(builtins)[name] for name in DECIDING}
    profile, trace = sys.getprofile, sys.gettrace
    path = sys.meta_path

    def check() -> bool:
        now = framework()
        same = before.keys() == now.keys() and all(before[name] is now[name] for name in now)
        builtin = all(vars(builtins).get(name) is value for name, value in own.items())
        return same and builtin and profile() is None and trace() is None and sys.meta_path is path

    return check


class Reporter:
    """A plug-in of pytest: one line a test, in the order in which they end."""

    def __init__(self, task: dict[str, Any], say: Callable[..., None]) -> None:
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
        self._check: Callable[[], bool] = lambda: False
        self._pytest: dict[tuple[str, str], object] = {}
        self._outcomes: dict[str, tuple[str, Any, str]] = {}
        self.began = False

    def pytest_addoption(self, pluginmanager: pytest.PytestPluginManager) -> None:
        """Load plug-ins and compile the tests while nothing of the workspace can be imported."""
        sys.path[:] = self._packages
        if not BROUGHT or BROUGHT[1:]:
            pluginmanager.load_setuptools_entrypoints("pytest11")
        for plugin in pluginmanager.get_plugins():
            # It replaces methods of pytest's; they count as pytest's own.
            if getattr(plugin, "__name__", "").startswith("pytest_subtests"):
                plugin.pytest_configure(None)
        if not self._pytest:
            self._held = HeldTests(compile_tests(self._sources, self._workdir, self._files))
            self._held.lead()
            self._check, self._pytest = untouched(), attributes()
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
                error = describe(raised.value if raised else None, self._workdir)
                message = shorten(str(report.longrepr or ""))
            outcome = "failed"
        self._outcomes[item.nodeid] = outcome, error, message
        if report.when == "teardown":
            self._report(item, outcome, error, message)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has no tests, but a reason."""
        if report.failed:
            self._say(broken=report.nodeid, message=shorten(str(report.longrepr)))

    def pytest_exception_interact(self, call: pytest.CallInfo[Any], report: object) -> None:
        """Report the error of a file that cannot be imported as that of each of its tests."""
        if isinstance(report, pytest.CollectReport) and call.excinfo and not self._survey:
            error = describe(call.excinfo.value.__cause__ or call.excinfo.value, self._workdir)
            for test in sorted(self._wanted or ()):
                if test.startswith(f"{report.nodeid}::"):
                    self._say(test=test, outcome="failed", error=error)

    def _report(self, item: pytest.Item, outcome: str, error: object, message: str) -> None:
        name = self._controls[item.name] if isinstance(item, Control) else item.nodeid
        details = {"message": message} if self._survey and message else {}
        self._say(test=name, outcome=outcome if self.untouched() else "failed", error=error, **details)

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


def compile_tests(sources: dict[str, str], workdir: str, files: Sequence[str]) -> dict[str, CodeType]:
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
    """Return top-level modules of the project of which something was imported from elsewhere than the workspace."""
    found = []
    for name, module in sorted(sys.modules.items()):
        file, top = getattr(module, "__file__", None), name.split(".")[0]
        if top in tops and isinstance(file, str) and not os.path.realpath(file).startswith(f"{workdir}/"):
            found.append(top)
    return found[:1]


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

    def say(**said: object) -> None:
        write(results_fd, f"\n{nonce} {dumps(said)}\n".encode())

    del sys.path[0]
    if task["sealed"]:
        sys.path[:] = without_system_packages(sys.path)
    reporter = Reporter(task, say)
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
