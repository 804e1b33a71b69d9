"""The languages that are mined whole, and what each needs: a sandbox, packages, a name for its version."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from dgm.benchmarks.environments import ask_cpp, ask_go, ask_jvm, ask_node, ask_python, ask_rust
from dgm.benchmarks.languages import LANGUAGES
from dgm.benchmarks.mining.cargo_packages import CargoEpochs, with_cargo
from dgm.benchmarks.mining.command_packages import CommandEpochs
from dgm.benchmarks.mining.commands import find_command, find_jvm_command, find_report_command
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.go_calls import find_go_call
from dgm.benchmarks.mining.go_modules import GoEpochs
from dgm.benchmarks.mining.jvm_packages import JvmEpochs, with_maven
from dgm.benchmarks.mining.languages import Language, is_code_file, is_test_file, language_of
from dgm.benchmarks.mining.mixed_files import take_apart_rust
from dgm.benchmarks.mining.node_packages import NodeEpochs
from dgm.benchmarks.mining.script_calls import ToolCall, find_call, with_modules
from dgm.benchmarks.mining.validation import Change, take_apart
from dgm.domain import Snapshot
from dgm.protocols import SandboxEngine


@dataclass(frozen=True, slots=True)
class Project:
    """A language that is mined whole."""

    image: str
    """Sandbox recipe."""
    program: str
    """Program whose version the packages are for."""
    ask: Callable[[SandboxEngine, str, Mapping[str, str]], Awaitable[Sequence[str]]]
    """Returns that version, and the machine."""
    epochs: type[Epochs]
    call: Callable[..., ToolCall] | None = None
    """Returns how the tests of a commit are called, by the user's own command if there is one; None: by pytest."""
    prepare: Callable[[Snapshot], Snapshot] = lambda files: files
    """Returns a commit's files as a workspace."""
    restored: Sequence[str] = ()
    """Patterns of tests and configuration; none: those of pytest, which depend on the workspace."""
    take_apart: Callable[[Snapshot, Snapshot, Sequence[str], Sequence[str]], Change] = take_apart
    """Divides a step into its fix and its tests."""
    builds_in: str = ""
    """Sandbox recipe in which packages are installed; empty: ``image``."""
    by_reports: bool = False
    """True if ``call`` takes patterns of reports, too."""


def find_command_call(files: Snapshot, given: str = "") -> ToolCall:
    """Return the call of a commit's tests by a command; arguments and errors are those of ``find_command``."""
    return ToolCall("command", command=find_command(files, given))


def find_report_call(files: Snapshot, given: str = "", reports: Sequence[str] = ()) -> ToolCall:
    """Return the call of a commit's tests by a command; arguments and errors are those of ``find_report_command``."""
    command, patterns = find_report_command(files, given, reports)
    return ToolCall("report", command=command, reports=patterns)


def find_jvm_call(files: Snapshot, given: str = "", reports: Sequence[str] = ()) -> ToolCall:
    """Return the call of a commit's tests by a command; arguments and errors are those of ``find_jvm_command``."""
    command, patterns = find_jvm_command(files, given, reports)
    return ToolCall("report", command=command, reports=patterns)


PROJECTS: Mapping[Language, Project] = {
    Language.PYTHON: Project("python", "Python", ask_python, Epochs),
    Language.JAVASCRIPT: Project(
        "node",
        "node",
        ask_node,
        NodeEpochs,
        find_call,
        with_modules,
        LANGUAGES[Language.JAVASCRIPT].restored,
        builds_in="npm",
    ),
    Language.GO: Project(
        "polyglot-go", "Go", ask_go, GoEpochs, find_go_call, restored=LANGUAGES[Language.GO].restored
    ),
    Language.RUST: Project(
        "polyglot-rust",
        "Rust",
        ask_rust,
        CargoEpochs,
        find_command_call,
        with_cargo,
        LANGUAGES[Language.RUST].restored,
        take_apart_rust,
    ),
    Language.CPP: Project(
        "cpp",
        "C++",
        ask_cpp,
        CommandEpochs,
        find_report_call,
        restored=LANGUAGES[Language.CPP].restored,
        by_reports=True,
    ),
    Language.JVM: Project(
        "jvm",
        "Java",
        ask_jvm,
        JvmEpochs,
        find_jvm_call,
        with_maven,
        LANGUAGES[Language.JVM].restored,
        by_reports=True,
    ),
}


def count_files(files: Snapshot) -> Mapping[Language, tuple[int, int]]:
    """Return the numbers of test files and of code files in each language that is mined."""
    tests = Counter(language_of(name) for name in files if is_test_file(name))
    code = Counter(language_of(name) for name in files if is_code_file(name))
    return {language: (tests[language], code[language]) for language in PROJECTS}
