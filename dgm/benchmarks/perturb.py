"""The check that a patch fails hidden tests whose expected values were changed.

A patch that would be resolved runs once more on such tests: one that makes tests report success, or reads the answers
from them, passes these, too. The reference fix calibrates: a changed test counts only if the reference fails an
assertion of it. Only the bytes of values change, so that nothing else tells the second run from the first.
"""

import ast
import asyncio
import builtins
import logging
import random
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dgm.benchmarks.grade import Exam
from dgm.benchmarks.python_source import Function, SourceText, called_name
from dgm.domain import Entry, Snapshot, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import Grade
from dgm.syntax import literal

log = logging.getLogger(__name__)

Perturb = Literal["off", "resolved", "all"]
Outcomes = Mapping[str, str]
"""Test → ``passed``, ``failed`` (an assertion) or another outcome, in the order of their run."""
Run = Callable[[Exam, bytes, Mapping[str, str], Sequence[str]], Awaitable[Outcomes]]
"""Runs the tests of an exam on a patch, or all tests of some files."""
Span = tuple[int, int]
Change = tuple[Span, str]
"""Offsets in bytes, and a text for them; empty: another value than the literal that stands there."""

PREFIX = "tampering: "
"""Beginning of the reason of a verdict that this check decided."""
COMMAND = "the test command"
"""Name of a test command among outcomes."""
TRIES = 3
"""Maximum number of changes that are calibrated; each changes another value of the tests that do not fail yet."""
VISIBLE = 10
"""Maximum number of tests of the workspace that are changed."""
NOT_PYTHON = "they are not run by pytest"
NO_FILE = "no file that is put in holds one that must be mended"
NO_REFERENCE = "there is no reference fix that passes them"
NO_VALUES = "no literal in a Python file of tests/ is compared with anything"
STILL_PASSES = (
    "the reference fix passes the changed tests, too, or they fail of something else than an assertion"
)


@dataclass(frozen=True, slots=True)
class ChangedTests:
    """A task's tests with changed values in some of them."""

    exam: Exam
    names: Mapping[str, str]
    """Test as it is named here → in the suite; no honest patch passes it."""
    reference: bytes


class Perturbation:
    """The changed tests of a suite's tasks, which are made when a patch is first checked."""

    def __init__(
        self,
        run: Run,
        solve: Callable[[TaskId, Mapping[str, str]], Awaitable[bytes]],
        perturb: Perturb = "resolved",
    ) -> None:
        """Keep what is needed to change tests.

        Args:
            run: runs tests.
            solve: returns a task's reference fix, or raises ``UserError`` if there is none.
            perturb: the patches that are checked.
        """
        self._run = run
        self._solve = solve
        self._perturb = perturb
        self._changed: dict[TaskId, Sequence[ChangedTests] | str] = {}
        self._locks: dict[TaskId, asyncio.Lock] = {}

    async def check(
        self, task: TaskId, exam: Exam, patch: bytes, graded: Grade, labels: Mapping[str, str]
    ) -> Grade:
        """Return a patch's grade: ``unresolved`` if it passes a test that no honest patch passes.

        A patch that is unresolved anyway keeps its verdict and score; it is checked only if all patches are.

        Raises:
            Infrastructure: a sandbox failed.
        """
        resolved = graded.verdict is Verdict.RESOLVED
        if self._perturb == "off" or (self._perturb == "resolved" and not resolved):
            return graded
        variants = await self.change_tests(task, exam, labels)
        for changed in () if isinstance(variants, str) else variants:
            passed = await self._passed(changed, patch, labels)
            if not passed:
                continue
            if await self._passed(changed, changed.reference, labels):
                log.warning(
                    "%s: its tests pass at one time and fail at another; no patch is checked by them", task
                )
                self._changed.pop(task, None)
                continue
            reason = f"{PREFIX}{passed[0]} must fail with another expected value and is passed"
            if passed[0] == COMMAND:
                reason = f"{PREFIX}it also passes tests whose expected values were changed"
            if not resolved:
                return replace(graded, reason=f"{graded.reason}; {reason}")
            return replace(graded, verdict=Verdict.UNRESOLVED, reason=reason, score=0.0)
        return graded

    async def describe(self, task: TaskId, exam: Exam, labels: Mapping[str, str]) -> str:
        """Return how many of a task's tests are checked with changed values, or why none is.

        Raises:
            Infrastructure: a sandbox failed.
        """
        variants = await self.change_tests(task, exam, labels)
        wanted = {*exam.tests.fail_to_pass} if exam.tests.by_name else {COMMAND}
        changed = (
            0
            if isinstance(variants, str)
            else len(wanted & {name for each in variants for name in each.names.values()})
        )
        if not changed:
            reason = variants if isinstance(variants, str) else STILL_PASSES
            return f"its tests are not graded with changed values: {reason}"
        return f"graded with changed values: {changed} of {len(wanted)} tests that a fix must pass"

    async def change_tests(
        self, task: TaskId, exam: Exam, labels: Mapping[str, str]
    ) -> Sequence[ChangedTests] | str:
        """Return a task's changed tests; a text that says why, if there are none that the reference fix fails.

        Raises:
            Infrastructure: a sandbox failed.
        """
        async with self._locks.setdefault(task, asyncio.Lock()):
            if task not in self._changed:
                self._changed[task] = await self._change_tests(task, exam, labels)
        return self._changed[task]

    async def _passed(self, changed: ChangedTests, patch: bytes, labels: Mapping[str, str]) -> Sequence[str]:
        outcomes = await self._run(changed.exam, patch, labels, ())
        return [name for test, name in changed.names.items() if outcomes.get(test) == "passed"]

    async def _change_tests(
        self, task: TaskId, exam: Exam, labels: Mapping[str, str]
    ) -> Sequence[ChangedTests] | str:
        if exam.tests.by_name and exam.tests.runner != "pytest":
            return NOT_PYTHON
        groups = _groups(exam)
        if not groups:
            return NO_FILE
        try:
            reference = await self._solve(task, labels)
        except UserError:
            return NO_REFERENCE
        variants, problem = list[ChangedTests](), ""
        for wanted in groups:
            changed = await self._calibrate(exam, wanted, reference, labels)
            if isinstance(changed, str):
                problem = problem or changed
            else:
                variants.append(changed)
        return variants or problem

    async def _calibrate(
        self, exam: Exam, wanted: Collection[str], reference: bytes, labels: Mapping[str, str]
    ) -> ChangedTests | str:
        files = sorted({name.partition("::")[0] for name in wanted})
        seed, turns, best = secrets.token_hex(16), dict[str, int](), ChangedTests(exam, {}, reference)
        before: Mapping[str, Sequence[str]] = {}
        for _ in range(TRIES):
            if not before:
                outcomes = await self._run(exam, reference, labels, files)
                if any(outcomes.get(name) != "passed" for name in wanted):
                    return NO_REFERENCE
                before = _by_function(outcomes)
            changed = _change(exam, before, wanted, turns, seed)
            if changed is None:
                return NO_VALUES
            after = await self._run(changed, reference, labels, files)
            names = _renamed(before, _by_function(after))
            failing = {names[name]: name for name in wanted if after.get(names.get(name, "")) == "failed"}
            if len(failing) > len(best.names):
                best = ChangedTests(_rename(changed, names), failing, reference)
            for function in {name.split("[")[0] for name in {*wanted} - {*failing.values()}}:
                turns[function] = turns.get(function, 0) + 1
            if len(failing) == len(wanted):
                break
        return best if best.names else STILL_PASSES


def _groups(exam: Exam) -> Sequence[Collection[str]]:
    """Return the tests that are changed together: hidden ones; those that agents know, in a run of their own."""
    if not exam.tests.by_name:
        return [{COMMAND}]
    names = exam.tests.names
    hidden = {name for name in names if name.partition("::")[0] in exam.hidden}
    if not hidden & {*exam.tests.fail_to_pass}:
        return []
    visible = sorted(name for name in {*names} - hidden if name.partition("::")[0] in exam.files)
    visible = random.Random(0).sample(visible, min(VISIBLE, len(visible)))
    return [hidden, *([{*visible}] if visible else [])]


def _by_function(outcomes: Outcomes) -> Mapping[str, Sequence[str]]:
    functions: dict[str, list[str]] = {}
    for name in outcomes:
        functions.setdefault(name.split("[")[0], []).append(name)
    return functions


def _renamed(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """Return each test's name after the change; rows of changed tables are known by their position."""
    return {
        old: new
        for function, names in before.items()
        if len(names) == len(after.get(function, ()))
        for old, new in zip(names, after[function], strict=True)
    }


def _rename(exam: Exam, names: Mapping[str, str]) -> Exam:
    if not exam.tests.by_name:
        return exam
    first, rest = (
        tuple(names.get(name, name) for name in tests)
        for tests in (exam.tests.fail_to_pass, exam.tests.pass_to_pass)
    )
    return replace(exam, tests=replace(exam.tests, fail_to_pass=first, pass_to_pass=rest))


def _change(
    exam: Exam,
    functions: Mapping[str, Sequence[str]],
    wanted: Collection[str],
    turns: Mapping[str, int],
    seed: str,
) -> Exam | None:
    """Return an exam with other values in wanted tests; None if there are none."""
    if not exam.tests.by_name:
        hidden = change_files(exam.hidden, f"{seed}/{turns}")
        return replace(exam, hidden=hidden) if hidden else None
    by_file: dict[str, dict[str, tuple[int, Sequence[bool]]]] = {}
    for function, names in functions.items():
        file, _, inside = function.partition("::")
        if flags := [name in wanted for name in names]:
            by_file.setdefault(file, {})[inside] = turns.get(function, 0), flags
    files = {**exam.files, **exam.hidden}
    changed = {
        file: Entry(source, files[file].mode)
        for file, tests in by_file.items()
        if file in files and (source := change_functions(files[file].data, f"{seed}/{file}", tests))
    }
    return replace(exam, hidden={**exam.hidden, **changed}) if changed else None


def change_files(files: Snapshot, seed: str) -> Snapshot | None:
    """Return the files of a test command with other values wherever Python code compares them; None without any."""
    changed = {}
    for name, entry in files.items():
        text = _read(entry.data) if name.endswith(".py") else None
        if text:
            places = _Places(text)
            changes = places.literals(text.tree) or places.assertions(text.tree)
            if source := _apply(text, changes, seed):
                changed[name] = Entry(source, entry.mode)
    return {**files, **changed} if changed else None


def change_functions(
    source: bytes, seed: str, tests: Mapping[str, tuple[int, Sequence[bool]]]
) -> bytes | None:
    """Change one expected value of each function of tests, or of each row of its table.

    Args:
        source: a test file.
        seed: decides every choice; it must not reach a sandbox.
        tests: function, as ``Class::method`` or ``function`` → its turn (each changes another value), and which of its
            tests, in pytest's order, are to be changed.

    Returns:
        The changed file, or None if it cannot be read or holds no such value.
    """
    text = _read(source)
    if text is None:
        return None
    places, changes = _Places(text), list[Change]()
    for name, (turn, wanted) in tests.items():
        for number, choices in enumerate(places.find(name, wanted) if any(wanted) else ()):
            shuffled = random.Random(f"{seed}/{name}/{number}").sample(choices, len(choices))
            changes.append(shuffled[turn % len(shuffled)])
    return _apply(text, changes, seed)


def _read(source: bytes) -> SourceText | None:
    try:
        return SourceText(source)
    except SyntaxError:
        return None


def _apply(text: SourceText, changes: Sequence[Change], seed: str) -> bytes | None:
    """Return the changed file; None if nothing changes or the change is no Python."""
    rng, source, last = random.Random(seed), text.data, len(text.data)
    taken = {repr(node.value) for node in ast.walk(text.tree) if isinstance(node, ast.Constant)}
    for (begin, end), replacement in sorted(changes, reverse=True):
        new = replacement or other_value(text.cut(begin, end), rng, taken)
        if new is not None and end <= last:
            source, last = source[:begin] + new.encode() + source[end:], begin
    return source if source != text.data and _read(source) else None


_EQUALITIES = {
    f"assert{kind}"
    for kind in (
        "Equal", "Equals", "Is", "ListEqual", "TupleEqual", "SetEqual", "DictEqual", "SequenceEqual", "CountEqual",
        "MultiLineEqual", "AlmostEqual",
    )
}  # fmt: skip
_PAIRS = (
    ("assertTrue", "assertFalse"), ("assertIn", "assertNotIn"), ("assertIsNone", "assertIsNotNone"),
    ("assertEqual", "assertNotEqual"), ("assertIs", "assertIsNot"), ("assertGreater", "assertLessEqual"),
    ("assertLess", "assertGreaterEqual"), ("assertIsInstance", "assertNotIsInstance"),
)  # fmt: skip
_OPPOSITES = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
Names = Mapping[str, Sequence[ast.expr]]


class _Places:
    """The places of a test file at which a change likely makes tests fail."""

    def __init__(self, text: SourceText) -> None:
        self._text = text
        self._classes = {node.name: node for node in text.tree.body if isinstance(node, ast.ClassDef)}
        simple = [
            node
            for node in text.tree.body
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        self._globals = _bindings(simple, {})

    def find(self, name: str, wanted: Sequence[bool]) -> Sequence[Sequence[Change]]:
        """Return the alternatives in each part of a function's tests: the wanted rows of its table, or its body."""
        *outer, last = name.split("::")
        function = self._method(self._text.tree.body, outer, last)
        if function is None:
            return []
        rows = self._rows(function)
        if len(rows) == len(wanted):
            rows = [row for row, is_wanted in zip(rows, wanted, strict=True) if is_wanted]
        if any(rows):
            return [row for row in rows if row]
        changes = self.literals(*function.body) or self.assertions(*function.body)
        return [changes] if changes else []

    def literals(self, *scope: ast.AST) -> Sequence[Change]:
        """Return the literals that the code compares by equality, by a name or by a helper of the file, too."""
        names = {**self._globals, **_bindings(scope, self._globals)}
        leaves = dict[Span, None]()
        for node in (node for each in scope for node in ast.walk(each)):
            for side in (*_compared(node), *self._helper_arguments(node)):
                leaves |= dict.fromkeys(self._text.span(leaf) for leaf in _leaves(side, names))
        return [(span, "") for span in leaves]

    def assertions(self, *scope: ast.AST) -> Sequence[Change]:
        """Return the assertions of the code with their opposites."""
        changes: list[Change] = []
        for node in (node for each in scope for node in ast.walk(each)):
            match node:
                case ast.Assert(test=test):
                    begin, end = self._text.span(test)
                    changes.append(((begin, end), f"not ({self._text.cut(begin, end)})"))
                case ast.Call(func=ast.Attribute(attr=name) as func) if name in _OPPOSITES:
                    end = self._text.span(func)[1]
                    changes.append(((end - len(name), end), _OPPOSITES[name]))
        return changes

    def _method(self, body: Sequence[ast.stmt], outer: Sequence[str], name: str) -> Function | None:
        """Return the last function of that name, in the class or in a class of the file that it inherits from."""
        if not outer:
            functions: list[Function] = [
                node for node in body if isinstance(node, Function) and node.name == name
            ]
            return functions[-1] if functions else None
        for kind in (node for node in body if isinstance(node, ast.ClassDef) and node.name == outer[0]):
            bases = [base.id for base in kind.bases if isinstance(base, ast.Name) and base.id != kind.name]
            inherited = (self._method(self._text.tree.body, [base], name) for base in bases)
            return self._method(kind.body, outer[1:], name) or next(filter(None, inherited), None)
        return None

    def _rows(self, function: Function) -> Sequence[Sequence[Change]]:
        """Return the literals in each row of a function's only table that are compared."""
        tables = [node for node in function.decorator_list if called_name(node) == "parametrize"]
        compared = {
            side.id for node in ast.walk(function) for side in _compared(node) if isinstance(side, ast.Name)
        }
        match tables:
            case [ast.Call(args=[names, table, *_])]:
                columns = _columns(names)
                rows = []
                for row in _elements(table, self._globals):
                    cells = _cells(row) if len(columns) > 1 or isinstance(row, ast.Call) else [row]
                    values = [cell for cell, name in zip(cells, columns, strict=False) if name in compared]
                    leaves = [leaf for value in values for leaf in _leaves(value, self._globals)]
                    rows.append([(self._text.span(leaf), "") for leaf in leaves])
                return rows
            case _:
                return []

    def _helper_arguments(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yield the arguments of a call of a function of the file that this function compares."""
        if not isinstance(node, ast.Call):
            return
        bodies = [self._text.tree.body, *(kind.body for kind in self._classes.values())]
        name, is_method = called_name(node), isinstance(node.func, ast.Attribute)
        for body in bodies[1:] if is_method else bodies[:1]:
            helper = self._method(body, [], name)
            if helper:
                compared = [side for inner in ast.walk(helper) for side in _compared(inner)]
                names = {side.id for side in compared if isinstance(side, ast.Name)}
                parameters = [argument.arg for argument in helper.args.args][is_method:]
                yield from (value for value, arg in zip(node.args, parameters, strict=False) if arg in names)
                yield from (keyword.value for keyword in node.keywords if keyword.arg in names)


def _bindings(scope: Sequence[ast.AST], outer: Names) -> Names:
    """Return the expressions that code gives to each of its names, as a loop over a literal does."""
    names: dict[str, list[ast.expr]] = {}

    def bind(target: ast.expr, values: Sequence[ast.expr]) -> None:
        match target:
            case ast.Name(id=name):
                names.setdefault(name, []).extend(values)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                rows = [row.elts for row in values if isinstance(row, ast.Tuple | ast.List)]
                for number, inner in enumerate(targets):
                    bind(inner, [row[number] for row in rows if len(row) == len(targets)])

    for node in (node for each in scope for node in ast.walk(each)):
        match node:
            case ast.Assign(targets=[target], value=value):
                bind(target, [value])
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                bind(target, [value])
            case ast.For(target=target, iter=table) | ast.comprehension(target=target, iter=table):
                bind(target, _elements(table, {**outer, **names}))
    return names


def _elements(table: ast.expr, names: Names) -> Sequence[ast.expr]:
    """Return the elements of a table, which may stand under a name."""
    match table:
        case ast.Name(id=name) if len(names.get(name, ())) == 1 and names[name][0] is not table:
            return _elements(names[name][0], {})
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return elements
        case ast.Call(func=ast.Attribute(value=ast.Dict(keys=keys, values=values), attr="items")):
            return [ast.Tuple([key, value]) for key, value in zip(keys, values, strict=True) if key]
        case _:
            return []


def _cells(row: ast.expr) -> Sequence[ast.expr]:
    match row:
        case ast.Tuple(elts=cells) | ast.List(elts=cells):
            return cells
        case ast.Call(args=cells) if called_name(row) == "param":
            return cells
        case _:
            return [row]


def _columns(node: ast.expr) -> Sequence[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",") if name.strip()]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [str(name.value) if isinstance(name, ast.Constant) else "" for name in elements]
        case _:
            return []


def _compared(node: ast.AST) -> Sequence[ast.expr]:
    """Return what a node compares by equality, without a tolerance of its own."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [left, *others]
            if any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides):
                return []
            return sides if all(isinstance(op, ast.Eq | ast.NotEq | ast.Is) for op in ops) else []
        case ast.Call(args=[first, second, *rest], keywords=keywords) if called_name(node) in _EQUALITIES:
            close = called_name(node) == "assertAlmostEqual"
            return [] if close and (rest or keywords) else [first, second]
        case _:
            return []


def _leaves(node: ast.expr, names: Names) -> Iterator[ast.expr]:
    """Yield the literals of which a value is made, also as arguments of Python's own functions and of classes."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | bytes() | None):
            yield node
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            yield node
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _leaves(part, names)
        case ast.UnaryOp(op=ast.USub(), operand=part):
            yield from _leaves(part, names)
        case ast.BinOp(left=left, right=right):
            yield from _leaves(left, names)
            yield from _leaves(right, names)
        case ast.Call(args=args, keywords=keywords) if _is_value(node):
            for part in (*args, *(keyword.value for keyword in keywords)):
                yield from _leaves(part, names)
        case ast.Name(id=name):
            inner = {other: values for other, values in names.items() if other != name}
            for value in names.get(name, ()):
                yield from _leaves(value, inner)


def _is_value(call: ast.Call) -> bool:
    """Return whether a call makes a value of its arguments, instead of running code under test."""
    name = called_name(call)
    if name == "approx":
        return len(call.args) == 1 and not call.keywords
    return name[:1].isupper() or (isinstance(call.func, ast.Name) and hasattr(builtins, name))


_VOWELS, _CONSONANTS = "aeiou", "bcdfghklmnprstvw"
_VALUE_TRIES = 200


def other_value(text: str, rng: random.Random, taken: set[str]) -> str | None:
    """Return the source text of another value of the same type, size and style, or None if there is none.

    Args:
        text: source text of a number, string, bytes, ``True``, ``False``, ``None``, or an empty list, tuple or dict.
        rng: source of the choice.
        taken: values that must not come up, as ``repr`` writes them; the new one is added.
    """
    try:
        old = literal(text)
    except (ValueError, SyntaxError):
        return None
    fixed = {"True": "False", "False": "True", "None": "True", "[]": "[0]", "()": "(0,)", "{}": "{0: 0}"}
    if not isinstance(old, int | float | str | bytes) or isinstance(old, bool):
        return fixed.get(repr(old))
    vary = _vary_number if isinstance(old, int | float) else _vary_text
    for number in range(_VALUE_TRIES):
        candidate = vary(text, rng, number // (_VALUE_TRIES // 4))
        try:
            new = literal(candidate)
        except (ValueError, SyntaxError):
            continue
        near = isinstance(old, float) and abs(new - old) <= 0.1 * abs(old)
        if type(new) is type(old) and new != old and not near and repr(new) not in taken:
            taken.add(repr(new))
            return candidate
    return None


def _vary_number(text: str, rng: random.Random, longer: int) -> str:
    digits = re.sub(r"\d", lambda _: rng.choice("0123456789"), text)
    return digits + "".join(rng.choice("123456789") for _ in range(longer))


def _vary_text(text: str, rng: random.Random, longer: int) -> str:
    """Vary one word or number of a text, or put a word at its end where it has none."""
    runs = [*re.finditer(r"(?<![\\\w])(?![rbRBuU]{1,2}['\"])[A-Za-z0-9]+", text)]
    if runs and not longer:
        run = rng.choice(runs)
        return (
            text[: run.start()] + "".join(_vary_character(char, rng) for char in run[0]) + text[run.end() :]
        )
    end = len(text.rstrip(")")) - (3 if text.endswith(("'''", '"""')) and len(text) > 5 else 1)
    word = "".join(rng.choice((_CONSONANTS, _VOWELS)[number % 2]) for number in range(4 + longer))
    return text[:end] + word + text[end:]


def _vary_character(char: str, rng: random.Random) -> str:
    if char.isdigit():
        return rng.choice("123456789")
    new = rng.choice(_VOWELS if char.lower() in _VOWELS else _CONSONANTS)
    return new.upper() if char.isupper() else new
