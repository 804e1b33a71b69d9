"""What grading needs to know of a language: which tests to put in, what to run, how to read what comes of it.

For every grading a *mark* is made up. It goes into the names of the tests, or under every line of our own
reporters, and names one more test, the control, which must fail. So a result counts only if it was not just
printed, and a program whose tests all pass has been judged by a framework that still can fail.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dgm.benchmarks.polyglot_reports import Report
from dgm.domain import Entry, Snapshot

BUILD_S, TESTS_S = 180.0, 120.0
GRADERS = Path(__file__).parent
"""Where the files lie that are put into the sandbox."""


@dataclass(frozen=True, slots=True)
class Step:
    """One program of a grading."""

    name: str
    """``build`` or ``tests``."""
    argv: Sequence[str]
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one grading puts in and runs."""

    tests: Snapshot
    """Test files as they are run, in place of those of the exercise."""
    steps: Sequence[Step]
    results: str | None = None
    """File or folder in which the test programs leave their results; none: on their output."""
    luggage: Snapshot = field(default_factory=dict)
    """What goes beside the runner."""


@dataclass(frozen=True, slots=True)
class Room:
    """Where a grading takes place and what it is marked with."""

    name: str
    """The exercise's."""
    workdir: str
    scratch: str
    """A folder of its own, under a name that graded code is not told of; not there yet."""
    luggage: str
    mark: str


@dataclass(frozen=True, slots=True)
class Language:
    """Everything that is peculiar to a language."""

    name: str
    title: str
    hidden: re.Pattern[str]
    """Paths that agents never see, whatever ``config.json`` names."""
    test_file: re.Pattern[str]
    """Files among the hidden ones that hold tests."""
    expected: Callable[[Snapshot], Sequence[str]]
    """Names of the tests in these files, as far as they can be told from the text."""
    plan: Callable[[Room, Snapshot], Plan]
    read: Callable[[str, str, str], Report]
    """Results, marked lines and mark → what became of each test."""

    @property
    def image(self) -> str:
        """The recipe with its tool chain."""
        return f"polyglot-{self.name}"


def text(file: Entry) -> str:
    """A file's text, whatever its bytes."""
    return file.data.decode("utf-8", "surrogateescape")


def entry(content: str) -> Entry:
    """The file that ``text`` would read so."""
    return Entry(content.encode("utf-8", "surrogateescape"))


def found(pattern: re.Pattern[str], tests: Snapshot) -> list[str]:
    """What the pattern's group finds in the files, each once."""
    return list(dict.fromkeys(name for file in tests.values() for name in pattern.findall(text(file))))
