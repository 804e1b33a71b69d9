"""The languages that are mined whole, and what each needs: a sandbox, packages, a name for its version."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from dgm.benchmarks.environments import ask_node, ask_python, ask_rust
from dgm.benchmarks.mining.cargo_packages import CargoEpochs
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.languages import Language, is_code_file, is_test_file, language_of
from dgm.benchmarks.mining.node_packages import NodeEpochs
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


PROJECTS: Mapping[Language, Project] = {
    Language.PYTHON: Project("python", "Python", ask_python, Epochs),
    Language.JAVASCRIPT: Project("node", "node", ask_node, NodeEpochs),
    Language.RUST: Project("polyglot-rust", "Rust", ask_rust, CargoEpochs),
}


def count_files(files: Snapshot) -> Mapping[Language, tuple[int, int]]:
    """Return the numbers of test files and of code files in each language that is mined."""
    tests = Counter(language_of(name) for name in files if is_test_file(name))
    code = Counter(language_of(name) for name in files if is_code_file(name))
    return {language: (tests[language], code[language]) for language in PROJECTS}
