"""A program of dgm's own inside a grading sandbox: its files go in, its messages come out, and its end is told.

A message is a line that begins with a nonce, which only that program knows, so that no output of the graded code can
pass for one.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.benchmarks.grade import put_graded_files, unresolved
from dgm.errors import Infrastructure
from dgm.protocols import Completed

__all__ = [
    "check_prepared",
    "describe_ending",
    "put_graded_files",
    "read_messages",
    "read_stages",
    "unresolved",
]


def read_messages(output: bytes, nonce: str) -> Sequence[Mapping[str, Any]]:
    """Return the messages in their order; a last line that was cut off is none."""
    start = nonce.encode() + b" "
    messages = []
    for line in output.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            messages += [json.loads(line[len(start) :])] if line.startswith(start) else []
    return messages


def read_stages(output: bytes, nonce: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the messages by stage; only the first message of a stage counts."""
    return {str(message["stage"]): message for message in reversed(read_messages(output, nonce))}


def check_prepared(stages: Mapping[str, object], completed: Completed) -> None:
    """Check that the program came to the point from which the graded code is to blame.

    Raises:
        Infrastructure: it did not.
    """
    if "prepared" not in stages and not completed.timed_out:
        end = completed.output[-300:]
        raise Infrastructure(
            f"the test runner ended with {completed.exit_code} before it ran a test: {end!r}"
        )


def describe_ending(completed: Completed, limit: str = "in time") -> str:
    """Return how the graded code ended the program; its exit status could spell out what hidden tests say."""
    if completed.timed_out:
        return f"the tests did not end {limit}"
    if completed.out_of_memory:
        return "the tests ran out of memory"
    if completed.truncated:
        return "the tests report more than can be read"
    status = completed.exit_code if completed.exit_code in (0, 1, -9, 137) else "neither 0 nor 1"
    return f"the graded code ended the test runner (exit status {status})"
