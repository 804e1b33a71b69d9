"""The call of a repository's Go tests: ``go test`` of all packages, or as the user says it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dgm.benchmarks.mining.script_calls import ToolCall, split_steps
from dgm.domain import Snapshot

MODULE = "go.mod"
_NAME = re.compile(rb"^module\s+\"?(?:\S*?/)?([^\s/\"]+?)(?:/v\d+)?\"?\s*$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_BUILD_OPTIONS = frozenset({"tags", "gcflags", "asmflags", "mod", "modfile"})
"""Options of the build that are taken over, all with a value."""
_TEST_OPTIONS = frozenset({"short", "parallel", "cpu", "skip"})
_WITH_VALUE = frozenset({
    "run", "bench", "benchtime", "count", "timeout", "cover", "coverpkg", "coverprofile", "covermode", "parallel",
    "cpu", "skip", "shuffle", "vet", "o", "exec", "p", "ldflags", "list", *_BUILD_OPTIONS,
}) - {"cover"}  # fmt: skip
_OF_SHELL = ("cd", "export", "set")
"""Steps that change the shell they run in, and each step has its own."""


def module_name(files: Snapshot) -> str:
    """Return the last word of the name of a repository's module; empty if it has none at its top."""
    found = _NAME.search(files[MODULE].data) if MODULE in files else None
    return found[1].decode("utf-8", "replace") if found else ""


def find_go_call(files: Snapshot, given: str = "") -> ToolCall:
    """Return how the Go tests of a commit are called.

    Args:
        files: the commit's.
        given: the user's own command, whose last part calls ``go test``, and all before it is the build; empty: all
            packages.

    Raises:
        ValueError: the commit has no module, or the command does not call ``go test``, or has an option that cannot be
            taken over.
    """
    if not any(name.rpartition("/")[2] == MODULE for name in files):
        raise ValueError(f"it has no {MODULE}, and only modules are mined")
    if not given:
        return ToolCall("go")
    steps = split_steps(given)
    words = list(steps[-1]) if steps else []
    env = []
    while words and _ASSIGNMENT.fullmatch(words[0]):
        name, _, value = words.pop(0).partition("=")
        env.append((name, value))
    if words[:2] != ["go", "test"]:
        raise ValueError(
            f"--test {given!r}: its last part must call go test, as in --test 'go test -short ./...'"
        )
    if lost := next((step[0] for step in steps[:-1] if step and step[0] in _OF_SHELL), ""):
        raise ValueError(
            f"--test {given!r}: {lost} holds for one step alone; name packages as ./folder/..., and set variables "
            "before go test"
        )
    import shlex

    call = ToolCall("go", env=tuple(sorted(env)), build=tuple(shlex.join(step) for step in steps[:-1]))
    return _add_words(call, words[2:], given)


def _add_words(call: ToolCall, words: Sequence[str], given: str) -> ToolCall:
    flags, options, patterns = list[str](), list[str](), list[str]()
    for name, value in _read_options(words):
        if not name:
            patterns.append(value)
        elif name == "run":
            raise ValueError(
                f"--test {given!r}: -run is not taken over; name packages, or leave tests out by -skip"
            )
        elif name == "args":
            raise ValueError(f"--test {given!r}: -args is not taken over; leave it out")
        elif name in _BUILD_OPTIONS:
            flags.append(f"-{name}={value}")
        elif name in _TEST_OPTIONS:
            options.append(f"-test.{name}={value}" if value else f"-test.{name}")
    return replace(call, flags=tuple(flags), options=tuple(options), patterns=tuple(patterns))


def _read_options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each option; a word that is none has no name."""
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-"):
            yield "", word
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.removeprefix("test.")
        if not equals and name in _WITH_VALUE and waiting:
            value = waiting.pop(0)
        yield name, value
