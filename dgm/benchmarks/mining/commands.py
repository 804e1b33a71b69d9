"""The command by which a commit's tests are built and run, where no tool of its language is known whole."""

import re

from dgm.benchmarks.mining.cargo_packages import MANIFEST
from dgm.domain import Snapshot

CARGO_TEST = "cargo test --offline --tests --no-fail-fast"
"""The usual command in Rust: unit and integration tests, without examples in documents."""
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
