"""Statements for validated units: what is known of each, by a model or by the template, checked, and journaled."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dgm.benchmarks.languages import Language, language_of
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.leaks import Evidence
from dgm.benchmarks.mining.paths import is_test_file
from dgm.benchmarks.mining.statements import (
    MOST_SHOWN_WORDS,
    Ask,
    StatementRefused,
    check_statement,
    model_statement,
    template_statement,
)
from dgm.domain import Snapshot

_WORD = re.compile(r"[A-Za-z_]\w+")
_SHOWN_FAILURES = 3


class ChangedFiles(Protocol):
    """A change of code and tests."""

    @property
    def fix(self) -> bytes:
        """The change of the code, as a patch."""
        ...

    @property
    def test_patch(self) -> bytes:
        """The change of the tests, as a patch."""
        ...

    @property
    def hidden(self) -> Snapshot:
        """Test and configuration files as they are after the change."""
        ...


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement, or why there is none."""

    text: str = ""
    reason: str = ""
    told: tuple[str, ...] = ()
    """Tests that it shows; empty if it is a model's."""

    def choose(self, tests: Sequence[str]) -> tuple[str, ...]:
        """Return those of the tests that a fix must pass: a task is not graded by what its statement does not tell."""
        return tuple(test for test in tests if not self.told or test in self.told)


def make_evidence(
    message: str, files: "ChangedFiles", failures: Mapping[str, str], workspace: Snapshot
) -> Evidence:
    """Return what is known of a task.

    Args:
        message: of the commits.
        files: the change.
        failures: test that the fix mends → what it prints without it.
        workspace: the files without the fix.
    """
    told = _choose_failures(failures)
    # In Rust a hidden file of the code holds its modules of tests alone.
    return Evidence(
        message=message,
        test_diff=files.test_patch.decode("utf-8", "replace"),
        fix_diff=files.fix.decode("utf-8", "replace"),
        failure="\n\n".join(text for _, text in told),
        fail_to_pass=tuple(failures),
        old_names=old_names(workspace),
        failures=tuple((test, text) for test, text in failures.items() if text),
        test_files={
            name: entry.data.decode("utf-8", "replace")
            for name, entry in sorted(files.hidden.items())
            if is_test_file(name) or language_of(name) is Language.RUST
        },
    )


def _choose_failures(failures: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return some failing tests with their outputs, one of each function first."""
    printed = [(test, text) for test, text in failures.items() if text]
    functions: dict[str, tuple[str, str]] = {}
    for test, text in printed:
        functions.setdefault(test.partition("[")[0], (test, text))
    first = list(functions.values())
    return tuple([*first, *(one for one in printed if one not in first)][:_SHOWN_FAILURES])


def old_names(workspace: Snapshot) -> frozenset[str]:
    """Return all names and words in the programs of a workspace, and in its documents."""
    found: set[str] = set()
    for name, entry in workspace.items():
        if language_of(name) or name.endswith((".pyi", ".md", ".rst", ".txt", ".toml", ".cfg")):
            found.update(_WORD.findall(entry.data.decode("utf-8", "replace")))
    return frozenset(found)


async def state(key: str, evidence: Evidence, journal: MiningJournal, ask: Ask | None) -> Stated:
    """Return the statement of a task; from the journal if it was made before.

    Raises:
        Infrastructure: the model failed.
    """
    known = journal.get(f"statement {key}")
    if known is None:
        known = await _make(evidence, ask)
        journal.put(f"statement {key}", known)
    return Stated(known["text"], known["reason"], tuple(known.get("told", ())))


async def _make(evidence: Evidence, ask: Ask | None) -> dict[str, Any]:
    try:
        if ask:
            return {"text": (await model_statement(evidence, ask)).text, "reason": ""}
        text, told = template_statement(evidence)
        problems = check_statement(text, evidence, MOST_SHOWN_WORDS)
    except StatementRefused as error:
        return {"text": "", "reason": f"no statement: {error}"}
    if problems:
        return {"text": "", "reason": f"no statement: {problems[0]}"}
    return {"text": text, "reason": "", "told": list(told)}
