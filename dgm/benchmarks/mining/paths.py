"""Languages of a repository's files, and which of them are code and which are tests, by their paths alone.

Paths are relative to the repository, with ``/``. The rules follow what test runners collect by default and what
projects usually do; a project with other habits is mined by ``--test`` and its reports.
"""

import re
from dataclasses import dataclass

from dgm.benchmarks.languages import LANGUAGES, Language, language_of

_USUAL_FOLDERS = frozenset({"test", "tests"})
_ROOT_TEST_FOLDERS = frozenset({"testing"})
"""Hold tests at the top of a repository; further down they are code that helps its users to test."""
_SUPPORT_NAMES = frozenset({"conftest.py"})
_SUPPORT_FOLDERS = frozenset({"testdata", "__mocks__", "__snapshots__", "__fixtures__"})
"""Hold what tests read, wherever they are."""
_OTHER_FOLDERS = frozenset({
    "doc", "docs", "documentation", "example", "examples", "demo", "demos", "sample", "samples", "tutorial",
    "tutorials", "benches", "benchmarks", "dist", "node_modules", "vendor", "vendored", "_vendor", "third_party",
    "thirdparty", "migrations", "generated",
})  # fmt: skip
_ROOT_OTHER_FOLDERS = frozenset({
    "bench", "benchmark", "perf", "script", "scripts", "tool", "tools", "ci", "build", "out", "target", "extern",
    "external",
})  # fmt: skip
"""Are packages' names as well, and hold other things only at the top of a repository."""
_SOURCES = re.compile(
    r"(?P<module>(?:.*?/)?)src/(?P<set>[\w.-]+)/(?:java|kotlin|scala|groovy|resources)\b[\w.-]*/"
    r"|(?P<in>(?:.*?/)?)src/main/.*\.(?:java|kt|scala|groovy)"
)
"""A set of sources of a module, as Maven, Gradle and sbt lay it out."""
_MAIN_SET = re.compile(r"main|[a-z]\w*Main")
_TEST_SET = re.compile(r"it|spec|tests?(?:[A-Z_.-].*)?|.*(?:Tests?|[_.-]tests?)")
_OTHER_SET = re.compile(r"jmh|perf|bench(?:mark)?s?|examples?|samples?|gen|generated.*")
_INVOKED = re.compile(
    r"(?:.*/)?src/it/(?:.+\.(?:java|kt|scala|groovy)|.+/src/.+|(?:.+/)?(?:pom|settings)\.xml|.+/invoker\.properties)"
)
"""Projects that Maven's invoker builds as tests."""
_DOTTED = re.compile(r"(?:^|/)\.")
_OTHER_NAMES = re.compile(
    r"setup\.py|noxfile\.py|fabfile\.py|versioneer\.py|_?version\.py|__version__\.py|build\.rs"
    r"|[\w-]+file\.[cm]?js|.*\.(?:config|conf|setup|min|d)\.[cm]?[jt]s|.*\.bundle\.js"
    r"|(?:package|module)-info\.java"
    r"|.*_pb2(?:_grpc)?\.py|.*\.pb\.(?:go|cc|h)|.*[._]generated\.\w+|.*_gen\.go|zz_generated.*"
)
"""Names of files that build, declare or are generated."""


def is_test_file(path: str) -> bool:
    """Return whether a file is a program of tests: a runner collects it, or it lies in a folder of tests.

    Files that tests only read, and ``conftest.py``, are ``is_test_material``.
    """
    language = language_of(path)
    if language is None or _is_foreign(path):
        return False
    *folders, name = path.split("/")
    if name in _SUPPORT_NAMES or _SUPPORT_FOLDERS.intersection(folders):
        return False
    if found := _find_sources(path):
        return found.is_test
    return bool(LANGUAGES[language].test_names.fullmatch(name)) or _in_test_folder(language, folders)


def is_test_material(path: str) -> bool:
    """Return whether a file belongs to the tests in any way: a test file, its helpers, its data."""
    *folders, name = path.split("/")
    if _is_foreign(path):
        return False
    if found := _find_sources(path):
        return found.is_test
    return (
        is_test_file(path)
        or name in _SUPPORT_NAMES
        or _in_test_folder(language_of(path), folders)
        or bool(_SUPPORT_FOLDERS.intersection(folders))
    )


def is_code_file(path: str) -> bool:
    """Return whether a file is code of the project: neither tests nor documents, examples, tools, or generated."""
    if language_of(path) is None or _DOTTED.search(path) or is_test_material(path):
        return False
    *folders, name = path.split("/")
    if found := _find_sources(path):
        # Below it folders are packages, and may have any name.
        folders = found.module.split("/")[:-1]
        if found.is_other:
            return False
    other = _OTHER_FOLDERS.intersection(folders) or _ROOT_OTHER_FOLDERS.intersection(folders[:1])
    return not other and not _OTHER_NAMES.fullmatch(name) and path != "tasks.py"


@dataclass(frozen=True, slots=True)
class _Sources:
    """A set of sources of the JVM's builds."""

    module: str
    """Folder before ``src``, with a slash behind it; empty for the top."""
    is_test: bool
    is_other: bool
    """True if it is neither tests nor code: benchmarks, generated files."""


def _find_sources(path: str) -> _Sources | None:
    """Return the set of sources that a file belongs to; None if it lies in none, or in one that tells nothing."""
    if language_of(path) not in (Language.JVM, None):
        return None
    if _INVOKED.fullmatch(path):
        return _Sources("", is_test=True, is_other=False)
    found = _SOURCES.match(path)
    if found is None:
        return None
    module, name = found["module"] or found["in"] or "", found["set"] or "main"
    if _MAIN_SET.fullmatch(name):
        return _Sources(module, _in_test_folder(None, module.split("/")), is_other=False)
    if _TEST_SET.fullmatch(name):
        return _Sources(module, is_test=True, is_other=False)
    return _Sources(module, is_test=False, is_other=True) if _OTHER_SET.fullmatch(name) else None


def _in_test_folder(language: Language | None, folders: list[str]) -> bool:
    known = LANGUAGES[language].test_folders if language else _USUAL_FOLDERS
    return bool(known.intersection(folders)) or bool(_ROOT_TEST_FOLDERS.intersection(folders[:1]))


def _is_foreign(path: str) -> bool:
    """Return whether a file belongs to another project, whose tests the runner does not run."""
    folders = path.split("/")[:-1]
    return any(each in folders for each in ("node_modules", "vendor", "_vendor", "third_party", "thirdparty"))
