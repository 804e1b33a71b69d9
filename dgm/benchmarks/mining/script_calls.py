"""The call of a package's tests: the tool, its arguments and the build before it, read from ``package.json``.

Scripts that call other scripts are followed. Coverage, linters and reporters are left out.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dgm.domain import Entry, Snapshot
from dgm.npm_locks import MANIFEST, MODULES

MOST_DEPTH = 6
"""Maximum number of scripts that call each other."""
_FIRST = ("test", "test:unit", "unit", "test:only", "tests")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_WRAPPERS = frozenset({"cross-env", "cross-env-shell", "npx", "c8", "nyc", "dotenv", "env", "pnpx"})
_MANAGERS = frozenset({"npm", "yarn", "pnpm"})
_BUILDS = re.compile(
    r"\b(?:build|compile|generate|codegen|tsc|esbuild|rollup|tsup|unbuild|babel|swc|webpack|parcel)\b"
)
_NO_BUILD = re.compile(
    r"\b(?:eslint|lint|prettier|standard|xo|size|docs|publint|attw|reset|husky|simple-git-hooks|lefthook)\b|--noEmit"
)
_DROPPED = re.compile(
    r"--?(?:run|watch\w*|coverage\S*|collectCoverage\S*|reporters?\S*|verbose|ci|colors?|silent|ui|typecheck\S*|w|R"
    r"|b|bail|exit|forbid-only|parallel|p|maxWorkers\S*|update\S*|test|test-reporter\S*|test-coverage\S*"
    r"|test-concurrency\S*|test-timeout\S*|experimental-test-coverage|test-force-exit)(?:=.*)?"
)
_OF_MOCHA = frozenset({
    "--ui", "-u", "--timeout", "-t", "--extension", "--spec", "--file", "--exclude", "--ignore", "--grep", "-g",
})  # fmt: skip
"""Options of mocha with a value; others have ``--ui`` without one."""
_WITH_VALUE = frozenset({
    "--import", "--require", "-r", "--loader", "--experimental-loader", "--conditions", "-C", "--env-file", "--config",
    "-c", "--root", "--project", "--dir", "--environment", "--pool", "--mode", "--testTimeout", "--test-reporter",
    "--reporter", "--reporters", "--test-reporter-destination", "--maxWorkers", "-w", "-R",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a test tool."""

    kind: str
    """The runner: ``node``, ``vitest``, ``jest``, ``mocha``, ``go``, ``command`` or ``report``."""
    flags: tuple[str, ...] = ()
    """Arguments of node before its program."""
    options: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Files, folders and patterns that are named."""
    env: tuple[tuple[str, str], ...] = ()
    build: tuple[str, ...] = ()
    """Shell commands before it."""
    command: str = ""
    """The whole call, of the kinds ``command`` and ``report`` only."""
    reports: tuple[str, ...] = ()
    """Patterns of the files that it writes, of the kind ``report`` only."""


def read_manifest(files: Snapshot) -> Mapping[str, object]:
    """Return a commit's ``package.json``; empty if it has none that can be read."""
    entry = files.get(MANIFEST)
    try:
        found = json.loads(entry.data) if entry else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def find_call(files: Snapshot, given: str = "") -> ToolCall:
    """Return how the tests of a commit are called.

    Args:
        files: the commit's.
        given: the user's own command, whose last part calls the tool, and all before it is the build; empty: as the
            scripts of ``package.json`` say it.

    Raises:
        ValueError: no tool is called that is known here; the message says what was looked at.
    """
    manifest = read_manifest(files)
    scripts = {name: text for name, text in _table(manifest, "scripts").items() if isinstance(text, str)}
    if given:
        call = _read_steps(given, scripts, guess=False)
        if call is None:
            raise ValueError(f"--test {given!r} calls none of {_names()}")
        return call
    others = [name for name in scripts if "test" in name and name not in _FIRST]
    for name in (*_FIRST, *others):
        if name in scripts and (call := _read_steps(f"npm run {name}", scripts, guess=True)):
            return _with_preparation(call, scripts)
    needed = {**_table(manifest, "dependencies"), **_table(manifest, "devDependencies")}
    for tool in ("vitest", "jest", "mocha"):
        if tool in needed:
            return ToolCall(tool)
    raise ValueError(f"no script of its {MANIFEST} calls {_names()}; say how with --test 'node --test'")


def with_modules(files: Snapshot) -> Snapshot:
    """Return a commit's files with a folder ``node_modules`` of their own, in which tools keep their caches.

    Packages are in a folder above, which is read-only.
    """
    return {**files, f"{MODULES}/.keep": Entry(b"Packages are in /node_modules.\n")}


def _with_preparation(call: ToolCall, scripts: Mapping[str, str]) -> ToolCall:
    """Return a call of node with what npm runs after an installation: its tests run what that makes."""
    if call.kind != "node" or call.build or "prepare" not in scripts:
        return call
    steps = _expand("npm run prepare", scripts, 0)
    return replace(call, build=tuple(_shell(step) for step in steps if not _NO_BUILD.search(" ".join(step))))


def _names() -> str:
    return "node --test, vitest, jest or mocha"


def _table(manifest: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = manifest.get(key)
    return found if isinstance(found, dict) else {}


def _read_steps(command: str, scripts: Mapping[str, str], *, guess: bool) -> ToolCall | None:
    """Return the first tool that a command calls, together with its further calls; None if it calls none.

    Args:
        command: of a shell.
        scripts: of the package.
        guess: keep of the steps before it only those that look like a build; otherwise all.
    """
    build: list[str] = []
    found: ToolCall | None = None
    for step in _expand(command, scripts, 0):
        call = _read_tool(step)
        if call is None:
            text = shlex.join(step)
            is_build = bool(_BUILDS.search(text)) and not _NO_BUILD.search(text)
            if found is None and (is_build or not guess):
                build.append(_shell(step))
        elif found is None:
            found = replace(call, build=tuple(build))
        elif (call.kind, call.flags) == (found.kind, found.flags) and found.patterns and call.patterns:
            found = replace(found, patterns=tuple(dict.fromkeys([*found.patterns, *call.patterns])))
    return found


def _shell(step: Sequence[str]) -> str:
    """Return a step as a shell reads it: patterns keep their meaning."""
    return " ".join(
        word if re.fullmatch(r"[\w@%+=:,./*?{}\[\]-]+", word) else shlex.quote(word) for word in step
    )


def _expand(command: str, scripts: Mapping[str, str], depth: int) -> Iterator[list[str]]:
    for step in split_steps(command):
        name = _called_script(step)
        if name is None or name not in scripts or depth >= MOST_DEPTH:
            yield step
            continue
        if f"pre{name}" in scripts:
            yield from _expand(scripts[f"pre{name}"], scripts, depth + 1)
        yield from _expand(scripts[name], scripts, depth + 1)


def split_steps(command: str) -> list[list[str]]:
    """Return the words of each step of a shell command; none if it cannot be read."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    steps: list[list[str]] = [[]]
    try:
        words = list(lexer)
    except ValueError:
        return []
    for word in words:
        if word in ("&&", ";", "||", "&", "|"):
            steps.append([])
        else:
            steps[-1].append(word)
    return [step for step in steps if step]


def _called_script(step: Sequence[str]) -> str | None:
    words = [
        word
        for word in step
        if not _ASSIGNMENT.fullmatch(word) and word not in ("cross-env", "-s", "--silent")
    ]
    if len(words) < 2 or words[0] not in _MANAGERS:
        return None
    if words[1] in ("run", "run-script"):
        return words[2] if len(words) > 2 else None
    return words[1] if words[1] == "test" or words[0] != "npm" else None


def _read_tool(step: Sequence[str]) -> ToolCall | None:
    words, env = list(step), dict[str, str]()
    while words and (words[0] in _WRAPPERS or _ASSIGNMENT.fullmatch(words[0]) or words[0][:1] == "-"):
        word = words.pop(0)
        if _ASSIGNMENT.fullmatch(word) and word[:1] != "-":
            name, _, value = word.partition("=")
            env[name] = value
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    pairs = tuple(sorted(env.items()))
    if program == "node" and "--test" in words:
        flags, patterns = _sort_words(words[1:])
        return ToolCall("node", tuple(flags), (), tuple(patterns), pairs)
    if program == "node":
        place = next(
            (n for n, word in enumerate(words) if re.search(r"/_?(?:jest|vitest|mocha)(?:\.m?js)?$", word)), 0
        )
        if not place:
            return None
        flags, _ = _sort_words(words[1:place])
        tool = words[place].rpartition("/")[2].partition(".")[0].lstrip("_")
    elif program in ("vitest", "jest", "mocha", "_mocha"):
        tool, flags, place = program.lstrip("_"), [], 0
    else:
        return None
    options, patterns = _sort_words(words[place + 1 :], _OF_MOCHA if tool == "mocha" else frozenset())
    patterns = [word for word in patterns if word not in ("run", "watch", "dev")]
    return ToolCall(tool, tuple(flags), tuple(options), tuple(patterns), pairs)


def _sort_words(words: Sequence[str], own: frozenset[str] = frozenset()) -> tuple[list[str], list[str]]:
    """Return the options that are kept, a value with ``=``, and the other words; ``own`` ones have a value, too."""
    options: list[str] = []
    others: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        value = waiting.pop(0) if word in _WITH_VALUE | own and waiting else None
        if _DROPPED.fullmatch(word) and word.partition("=")[0] not in own:
            continue
        if word == "--" or not word.startswith("-"):
            others += [] if word == "--" else [word]
        elif value is None:
            options.append(word)
        else:
            options += [f"{word}={value}"] if word.startswith("--") else [word, value]
    return options, others
