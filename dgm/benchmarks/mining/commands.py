"""The command by which a commit's tests are built and run, where no tool of its language is known whole."""

import re
from collections.abc import Sequence

from dgm.benchmarks.mining.cargo_packages import MANIFEST
from dgm.domain import Snapshot

CARGO_TEST = "cargo test --offline --tests --no-fail-fast"
"""The usual command in Rust: unit and integration tests, without examples in documents."""
CMAKE = "CMakeLists.txt"
CMAKE_TEST = (
    'cmake -S . -B "$DGM_BUILD" -DCMAKE_BUILD_TYPE=Debug && cmake --build "$DGM_BUILD" '
    '&& ctest --test-dir "$DGM_BUILD" --timeout 60 --output-junit "$DGM_BUILD/dgm-ctest.xml"'
)
CMAKE_REPORTS = ("$DGM_BUILD/dgm-ctest.xml",)
"""The usual command in C++, and the report that it writes."""
MAVEN, MAVEN_TEST = "pom.xml", "mvn -B -o test"
MAVEN_REPORTS = ("target/surefire-reports/*.xml", "**/target/surefire-reports/*.xml")
GRADLE, GRADLE_TEST = ("build.gradle", "build.gradle.kts"), "gradle --offline --no-daemon --continue test"
GRADLE_REPORTS = ("build/test-results/**/*.xml", "**/build/test-results/**/*.xml")
"""The usual commands on the JVM, and the reports that they write."""
_CARGO = re.compile(r"\bcargo(?: +\+\S+)? +(?:test|t)\b")


def find_command(files: Snapshot, given: str) -> str:
    """Return the command for a commit's tests.

    Args:
        files: the commit's.
        given: the user's own; empty: the usual one.

    Raises:
        ValueError: there is no usual one for the commit, or the given one does not call ``cargo test``, or would run
            something only after it succeeds.
    """
    if not given:
        if MANIFEST not in files:
            raise ValueError(
                f"it has no {MANIFEST}; say how its tests run with --test 'cd crate && cargo test'"
            )
        return CARGO_TEST
    call = _CARGO.search(given)
    if call is None:
        raise ValueError(f"--test {given!r} does not call cargo test, whose output tells the tests")
    if "&&" in given[call.end() :]:
        raise ValueError(
            f"--test {given!r}: what stands after cargo test && never runs, as tests that must fail are added; use ;"
        )
    # A test that must fail is in every program; the next one is to run all the same.
    return _CARGO.sub(lambda found: f"{found[0]}{_missing_option(given[found.end() :])}", given)


def _missing_option(rest: str) -> str:
    return "" if "--no-fail-fast" in re.split(r"[;&|\n]", rest)[0] else " --no-fail-fast"


def find_report_command(
    files: Snapshot, given: str, reports: Sequence[str] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return the command for a commit's tests in C++, and patterns of the reports that it writes.

    Args:
        files: the commit's.
        given: the user's own command; empty: the usual one.
        reports: the user's own patterns.

    Raises:
        ValueError: there is no usual one for the commit, or only one of command and patterns is given.
    """
    if own := _find_own(given, reports):
        return own
    if CMAKE not in files:
        raise _lacking(CMAKE)
    return CMAKE_TEST, CMAKE_REPORTS


def find_jvm_command(files: Snapshot, given: str, reports: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """Return the same for a language of the JVM; arguments and errors are those of ``find_report_command``."""
    if own := _find_own(given, reports):
        return own
    if MAVEN in files:
        return MAVEN_TEST, MAVEN_REPORTS
    if any(name in files for name in GRADLE):
        return GRADLE_TEST, GRADLE_REPORTS
    raise _lacking(f"{MAVEN} and no {GRADLE[0]}")


def _find_own(given: str, reports: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    if given and reports:
        return given, tuple(reports)
    if given or reports:
        lacking, kept = ("--report", "--test") if given else ("--test", "--report")
        raise ValueError(
            f"{kept} needs {lacking}, too: CMD writes reports in JUnit's XML, and GLOB names them"
        )
    return None


def _lacking(name: str) -> ValueError:
    return ValueError(
        f"it has no {name}; say how its tests run, and which reports they write, with --test CMD --report GLOB"
    )
