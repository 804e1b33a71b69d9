"""How the tests of a commit are called: as its language's record says, as its scripts do, or by ``--test CMD``."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dgm.benchmarks.languages import LANGUAGES, RUNNERS, Language, Results
from dgm.benchmarks.test_spec import TestSpec
from dgm.domain import Snapshot

MANIFEST = "package.json"
MAX_DEPTH = 6
"""Maximum number of scripts that call each other."""
TOOLS = "node --test, vitest, jest or mocha"
_FIRST = ("test", "test:unit", "unit", "test:only", "tests")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_WRAPPERS = frozenset({"cross-env", "cross-env-shell", "npx", "c8", "nyc", "dotenv", "env", "pnpx"})
_BUILDS = re.compile(
    r"\b(?:build|compile|generate|codegen|tsc|esbuild|rollup|tsup|unbuild|babel|swc|webpack|parcel)\b"
)
_NO_BUILD = re.compile(
    r"\b(?:eslint|lint|prettier|standard|xo|size|docs|publint|attw|reset|husky|simple-git-hooks|lefthook)\b|--noEmit"
)
_TOOL = re.compile(r"(?:.*/)?_?(vitest|jest|mocha)(?:\.m?js)?")
_DROPPED = re.compile(
    r"--?(?:run|watch\w*|coverage\S*|collectCoverage\S*|reporters?\S*|verbose|ci|colors?|silent|ui|typecheck\S*|w|R"
    r"|b|bail|exit|forbid-only|parallel|p|maxWorkers\S*|update\S*|test|test-reporter\S*|test-coverage\S*"
    r"|test-concurrency\S*|test-timeout\S*|experimental-test-coverage|test-force-exit)(?:=.*)?"
)
"""Options that change what is printed, or how long it takes."""
_WITH_VALUE = frozenset({
    "--import", "--require", "-r", "--loader", "--experimental-loader", "--conditions", "-C", "--env-file", "--config",
    "-c", "--root", "--project", "--dir", "--environment", "--pool", "--mode", "--testTimeout", "--test-reporter",
    "--reporter", "--reporters", "--test-reporter-destination", "--maxWorkers", "-w", "-R",
})  # fmt: skip
_MOCHA_WITH_VALUE = frozenset({
    "--ui", "-u", "--timeout", "-t", "--extension", "--spec", "--file", "--exclude", "--ignore", "--grep", "-g",
})  # fmt: skip
"""Others have ``--ui`` without a value."""
_GO_BUILD_OPTIONS = frozenset({"tags", "gcflags", "asmflags", "mod", "modfile"})
_GO_OPTIONS = frozenset({"short", "parallel", "cpu", "skip"})
_GO_WITH_VALUE = _GO_BUILD_OPTIONS | frozenset({
    "run", "bench", "benchtime", "count", "timeout", "coverpkg", "coverprofile", "covermode", "parallel", "cpu", "skip",
    "shuffle", "vet", "o", "exec", "p", "ldflags", "list",
})  # fmt: skip
_CARGO = re.compile(r"\bcargo(?: +\+\S+)? +(?:test|t)\b")
_ALL_PROGRAMS = "--no-fail-fast"


def find_call(
    language: Language, files: Snapshot, command: str = "", reports: Sequence[str] = ()
) -> TestSpec:
    """Return how the tests of a commit are called: a spec without names and limits.

    Args:
        language: of the tests.
        files: the commit's.
        command: the user's own; empty: the usual one.
        reports: the user's own patterns of reports in JUnit's XML.

    Raises:
        ValueError: no usual call fits the commit, or the user's cannot be taken over; the message says why.
    """
    match LANGUAGES[language].results:
        case Results.PYTEST:
            return _call("pytest", options=_pytest_options(command))
        case Results.GO_JSON:
            return _find_go_call(files, command)
        case Results.CARGO:
            return _call("command", command=(_find_cargo_command(files, command),))
        case _ if language is Language.JAVASCRIPT:
            return _find_script_call(files, command)
    if bool(command) != bool(reports):
        lacking, present = ("mining.reports", "--test") if command else ("--test", "mining.reports")
        raise ValueError(
            f"{present} needs {lacking}, too: CMD writes reports in JUnit's XML, and GLOB names them"
        )
    if command:
        return _call("report", command=(command,), reports=tuple(reports))
    usual = next((each for each in LANGUAGES[language].tests if each.manifest in files), None)
    if usual is None:
        known = " or ".join(each.manifest for each in LANGUAGES[language].tests)
        raise ValueError(
            f"it has no {known}; say how its tests run with --test CMD, and which reports they write with the setting "
            "mining.reports"
        )
    return _call("report", command=(usual.command,), reports=usual.reports)


def _call(runner: str, **more: Any) -> TestSpec:  # noqa: ANN401  (fields of the spec)
    return TestSpec(runner=runner, restored=RUNNERS[runner].restored, **more)


def read_manifest(files: Snapshot) -> Mapping[str, object]:
    """Return a commit's ``package.json``; empty if it has none that can be read."""
    entry = files.get(MANIFEST)
    try:
        manifest = json.loads(entry.data) if entry else {}
    except (ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _pytest_options(command: str) -> tuple[str, ...]:
    words = shlex.split(command)
    starts = (["pytest"], ["python", "-m", "pytest"], ["python3", "-m", "pytest"], ["py.test"])
    start = next((each for each in starts if words[: len(each)] == each), None)
    if words and start is None:
        raise ValueError(f"--test {command!r}: must call pytest, as in --test 'pytest -m \"not slow\"'")
    return tuple(words[len(start or []) :])


def _find_cargo_command(files: Snapshot, command: str) -> str:
    usual = LANGUAGES[Language.RUST].tests[0]
    if not command:
        if usual.manifest not in files:
            raise ValueError(
                f"it has no {usual.manifest}; say how its tests run with --test 'cd crate && cargo test'"
            )
        return usual.command
    call = _CARGO.search(command)
    if call is None:
        raise ValueError(f"--test {command!r} does not call cargo test, whose output tells the tests")
    if "&&" in command[call.end() :]:
        raise ValueError(
            f"--test {command!r}: what stands after cargo test && never runs, as tests that must fail are added; use ;"
        )

    def with_all_programs(match: re.Match[str]) -> str:
        # A test that must fail is in every program; the next one is to run all the same.
        rest = re.split(r"[;&|\n]", command[match.end() :])[0]
        return match[0] if _ALL_PROGRAMS in rest else f"{match[0]} {_ALL_PROGRAMS}"

    return _CARGO.sub(with_all_programs, command)


def _find_go_call(files: Snapshot, command: str) -> TestSpec:
    if not any(name.rpartition("/")[2] == "go.mod" for name in files):
        raise ValueError("it has no go.mod, and only modules are mined")
    if not command:
        return _call("go")
    steps = _split_steps(command)
    env, words = _split_assignments(steps[-1] if steps else [])
    if words[:2] != ["go", "test"]:
        raise ValueError(
            f"--test {command!r}: its last part must call go test, as in --test 'go test -short ./...'"
        )
    if lost := next((step[0] for step in steps[:-1] if step[0] in ("cd", "export", "set")), ""):
        raise ValueError(
            f"--test {command!r}: {lost} holds for one step alone; name packages as ./folder/..., and set variables "
            "before go test"
        )
    flags, options, patterns = list[str](), list[str](), list[str]()
    waiting = list(words[2:])
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.lstrip("-").removeprefix("test.").partition("=")
        if not word.startswith("-"):
            patterns.append(word)
            continue
        if not equals and name in _GO_WITH_VALUE and waiting:
            value = waiting.pop(0)
        if name in ("run", "args"):
            hint = "name packages, or leave tests out by -skip" if name == "run" else "leave it out"
            raise ValueError(f"--test {command!r}: -{name} is not taken over; {hint}")
        if name in _GO_BUILD_OPTIONS:
            flags.append(f"-{name}={value}")
        elif name in _GO_OPTIONS:
            options.append(f"-test.{name}={value}" if value else f"-test.{name}")
    build = tuple(shlex.join(step) for step in steps[:-1])
    return _call(
        "go",
        flags=tuple(flags),
        options=tuple(options),
        patterns=tuple(patterns),
        env=tuple(sorted(env.items())),
        build=build,
    )


def _find_script_call(files: Snapshot, command: str) -> TestSpec:
    manifest = read_manifest(files)
    scripts = {name: text for name, text in _table(manifest, "scripts").items() if isinstance(text, str)}
    if command:
        call = _read_steps(command, scripts, guess=False)
        if call is None:
            raise ValueError(f"--test {command!r} calls none of {TOOLS}")
        return call
    for name in (*_FIRST, *(name for name in scripts if "test" in name and name not in _FIRST)):
        if name in scripts and (call := _read_steps(f"npm run {name}", scripts, guess=True)):
            if call.runner == "node" and not call.build and "prepare" in scripts:
                # What npm runs after an installation makes what node's tests run.
                steps = [_shell(step) for step in _expand("npm run prepare", scripts, 0)]
                call = replace(call, build=tuple(step for step in steps if not _NO_BUILD.search(step)))
            return call
    needed = {**_table(manifest, "dependencies"), **_table(manifest, "devDependencies")}
    for tool in ("vitest", "jest", "mocha"):
        if tool in needed:
            return _call(tool)
    raise ValueError(f"no script of its {MANIFEST} calls {TOOLS}; say how with --test 'node --test'")


def _table(manifest: Mapping[str, object], key: str) -> Mapping[str, object]:
    table = manifest.get(key)
    return table if isinstance(table, dict) else {}


def _read_steps(command: str, scripts: Mapping[str, str], *, guess: bool) -> TestSpec | None:
    """Return the first tool that a command calls, together with its further calls; None if it calls none.

    Args:
        command: of a shell.
        scripts: of the package.
        guess: keep of the steps before it only those that look like a build; otherwise all.
    """
    build: list[str] = []
    first: TestSpec | None = None
    for step in _expand(command, scripts, 0):
        call = _read_tool(step)
        if call is None:
            text = shlex.join(step)
            is_build = bool(_BUILDS.search(text)) and not _NO_BUILD.search(text)
            build += [_shell(step)] if first is None and (is_build or not guess) else []
        elif first is None:
            first = replace(call, build=tuple(build))
        elif (call.runner, call.flags) == (first.runner, first.flags) and first.patterns and call.patterns:
            first = replace(first, patterns=tuple(dict.fromkeys([*first.patterns, *call.patterns])))
    return first


def _shell(step: Sequence[str]) -> str:
    """Return a step as a shell reads it: patterns keep their meaning."""
    return " ".join(
        word if re.fullmatch(r"[\w@%+=:,./*?{}\[\]-]+", word) else shlex.quote(word) for word in step
    )


def _expand(command: str, scripts: Mapping[str, str], depth: int) -> Iterator[list[str]]:
    """Yield the steps of a command; a step that runs a script becomes those of the script."""
    for step in _split_steps(command):
        words = [w for w in step if not _ASSIGNMENT.fullmatch(w) and w not in ("cross-env", "-s", "--silent")]
        name = ""
        if len(words) > 1 and words[0] in ("npm", "yarn", "pnpm"):
            is_run = words[1] in ("run", "run-script")
            name = (
                " ".join(words[2:3])
                if is_run
                else words[1]
                if words[1] == "test" or words[0] != "npm"
                else ""
            )
        if name not in scripts or depth >= MAX_DEPTH:
            yield step
            continue
        if f"pre{name}" in scripts:
            yield from _expand(scripts[f"pre{name}"], scripts, depth + 1)
        yield from _expand(scripts[name], scripts, depth + 1)


def _split_steps(command: str) -> list[list[str]]:
    """Return the words of each step of a shell command; none if it cannot be read."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="&|;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    steps: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word in ("&&", ";", "||", "&", "|"):
                steps.append([])
            else:
                steps[-1].append(word)
    except ValueError:
        return []
    return [step for step in steps if step]


def _split_assignments(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables before a command, and its words."""
    env, rest = dict[str, str](), list(words)
    while rest and (match := _ASSIGNMENT.fullmatch(rest[0])):
        env[match[1]] = match[2]
        rest.pop(0)
    return env, rest


def _read_tool(step: Sequence[str]) -> TestSpec | None:
    env, words = _split_assignments(step)
    while words and (words[0] in _WRAPPERS or words[0].startswith("-")):
        more, words = _split_assignments(words[1:])
        env |= more
    if not words:
        return None
    pairs = tuple(sorted(env.items()))
    is_node = words[0].rpartition("/")[2] == "node"
    if is_node and "--test" in words:
        flags, patterns = _sort_words(words[1:])
        return _call("node", flags=tuple(flags), patterns=tuple(patterns), env=pairs)
    position = next((n for n, w in enumerate(words) if "/" in w and _TOOL.fullmatch(w)), 0) if is_node else 0
    tool = _TOOL.fullmatch(words[position])
    if tool is None:
        return None
    flags, _ = _sort_words(words[1:position])
    options, patterns = _sort_words(
        words[position + 1 :], _MOCHA_WITH_VALUE if tool[1] == "mocha" else frozenset()
    )
    patterns = [word for word in patterns if word not in ("run", "watch", "dev")]
    return _call(tool[1], flags=tuple(flags), options=tuple(options), patterns=tuple(patterns), env=pairs)


def _sort_words(
    words: Sequence[str], with_value: frozenset[str] = frozenset()
) -> tuple[list[str], list[str]]:
    """Return the options that are kept, a value with ``=``, and the other words."""
    options: list[str] = []
    others: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        value = waiting.pop(0) if word in _WITH_VALUE | with_value and waiting else None
        if _DROPPED.fullmatch(word) and word.partition("=")[0] not in with_value:
            continue
        if word == "--" or not word.startswith("-"):
            others += [] if word == "--" else [word]
        elif value is None:
            options.append(word)
        else:
            options += [f"{word}={value}"] if word.startswith("--") else [word, value]
    return options, others
