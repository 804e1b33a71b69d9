"""Outcomes of tests in one shape, whatever tool reported them."""

from dataclasses import dataclass
from enum import StrEnum


class TestOutcome(StrEnum):
    """Outcome of a test, from good to bad."""

    __test__ = False  # pytest takes classes of this name for tests

    PASSED = "passed"
    SKIPPED = "skipped"
    FAILED = "failed"
    ERROR = "error"
    """Something around the test failed: a file could not be read or built, a fixture failed."""


_RANK = {outcome: number for number, outcome in enumerate(TestOutcome)}


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test that a report names."""

    __test__ = False

    outcome: TestOutcome
    message: str = ""
    """Text of its failure; empty if it did not fail."""
    summary: str = ""
    """Its failure in few words; empty where the report has none beside the text."""


def keep_worst(results: dict[str, TestResult], name: str, result: TestResult) -> None:
    """Add a result to those of other names; of two of one name the worse stays, of equally bad ones the first."""
    known = results.get(name)
    if known is None or _RANK[result.outcome] > _RANK[known.outcome]:
        results[name] = result
