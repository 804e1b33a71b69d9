"""Test files with changed expected values: what no honest patch passes, and a cheat that learns from the tests does.

``perturb`` changes some tests so that each surely fails, and adds twins of some, changed and unchanged ones.
``perturb_all`` changes every value that is compared, for tests whose single results are not known. Only the bytes of
the values change. Nothing here decides a verdict.
"""

import ast
import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dgm.benchmarks.perturbation_likely import likely_sites
from dgm.benchmarks.perturbation_sites import CertainSites, find_helpers
from dgm.benchmarks.perturbation_syntax import Function, Site, SourceText, called_name
from dgm.benchmarks.perturbation_units import find_units
from dgm.benchmarks.perturbation_values import make_word, other_value
from dgm.syntax import literal

MOST_TWINS = 4
"""Maximum number of tests that are added to a file."""
CONTRADICTING = 0.7
"""Share of them that expect something else than the test of which they are copies."""
_NEUTRAL = frozenset({"patch", "object", "dict"})
"""Decorators of ``unittest.mock``, which leave a test's outcome alone."""


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A changed test file; tests are named ``Class.method`` or ``function``."""

    source: bytes
    changed: tuple[str, ...] = ()
    """Tests that cannot pass any more; empty after ``perturb_all``."""
    failing: tuple[str, ...] = ()
    """Added twins that cannot pass."""
    passing: Mapping[str, str] = field(default_factory=dict)
    """Added twin that is unchanged → the test of which it is one."""

    @property
    def added(self) -> tuple[str, ...]:
        """All twins."""
        return (*self.failing, *self.passing)


def perturb(
    source: bytes, seed: str, part: int | None, first: Collection[str] = (), rest: Collection[str] = ()
) -> Perturbed | None:
    """Change one half of the tests, or none, so that each surely fails, and add twins of some to their classes.

    A twin is a copy of a test under another name, with the true value or the changed one. A test has at most one
    twin and one changed value in a file, so that nothing but the values says which of two is true, and whether a
    test or its twin is changed.

    Args:
        source: a Python file with tests of ``unittest`` or ``pytest``.
        seed: decides every choice; it must not reach a sandbox.
        part: 0 or 1: the half that is changed; None: none is.
        first: tests of the file, as ``Class.method`` or ``function``, that fail without a fix.
        rest: further tests, which are left alone if one of the first can be changed: who knows that the code passes
            them as they are could see that they are changed. Without ``first`` and ``rest``, all tests count.

    Returns:
        The changed file, or None if it cannot be read or has no test to change.
    """
    text = _read(source)
    if text is None:
        return None
    rng, taken = random.Random(f"{seed}/{part}"), _literals(text)
    sites = _sites_by_test(text, {*first, *rest})
    leading = [name for name in sites if not (first or rest) or _names_of(text, name) & {*first}]
    names = leading or list(sites)
    changes = {name: change for name in names if (change := _change(text, sites[name], rng, taken))}
    chosen = [name for name in _half(names, seed, part) if name in changes]
    twins = _Twins(text, changes, rng)
    for name in rng.sample(names, min(len(names), rng.randint(1, MOST_TWINS))):
        if "." in name and name in changes:
            twins.add(name, {*first, *rest}, changed=(name in chosen) != (rng.random() < CONTRADICTING))
    done = _apply(source, {**dict(changes[name] for name in chosen), **twins.insertions})
    if not (chosen or twins.insertions) or _read(done) is None:
        return None
    changed = {each for name in chosen for each in _names_of(text, name)}
    return Perturbed(done, tuple(sorted(changed)), tuple(twins.failing), twins.passing)


def perturb_named(
    source: bytes, seed: str, way: tuple[int, int], tests: Mapping[str, Sequence[bool]]
) -> bytes | None:
    """Change one value in one half of the parts of pytest's tests: bodies, and rows of tables.

    No result of a single test is promised: callers calibrate with the reference fix. For the tests see ``find_units``.

    Args:
        source: a test file.
        seed: decides every choice; it must not reach a sandbox.
        way: the turn, from 0, and the half, 0 or 1; each turn changes another line of the parts that have several.
        tests: the tests of the file.

    Returns:
        The changed file, or None if it cannot be read or this half is empty.
    """
    text = _read(source)
    if text is None:
        return None
    turn, part = way
    rng, taken = random.Random(f"{seed}/{way}"), _literals(text)
    units = find_units(text, tests)
    changes = []
    for name in _half([*units], seed, part):
        lines = sorted({site.line(text) for site in units[name]})
        line = random.Random(f"{seed}/{name}").sample(lines, len(lines))[turn % len(lines)]
        change = _change(text, [site for site in units[name] if site.line(text) == line], rng, taken)
        changes += [change] if change else []
    done = _apply(source, dict(changes))
    return done if changes and _read(done) is not None else None


def count_turns(source: bytes, tests: Mapping[str, Sequence[bool]]) -> int:
    """Return the number of turns after which ``perturb_named`` has changed every line that it can."""
    text = _read(source)
    units = find_units(text, tests).values() if text else ()
    return max((len({site.line(text) for site in sites}) for sites in units if text), default=0)


def perturb_all(source: bytes, seed: str) -> Perturbed | None:
    """Change every value that is compared, and turn the assertions of tests without such values into their opposites.

    No result of a single test is promised: callers calibrate with the reference fix. For the arguments see ``perturb``.

    Returns:
        The changed file, or None if it cannot be read or holds nothing that is compared.
    """
    text = _read(source)
    if text is None:
        return None
    rng, taken = random.Random(seed), _literals(text)
    certain = _sites_by_test(text, ())
    sites = [site for found in certain.values() for site in found if not site.choices]
    sites += [
        site for site in likely_sites(text) if (site.begin, site.end) not in {(s.begin, s.end) for s in sites}
    ]
    with_values = {site.test for site in sites}
    opposite = [rng.choice(found) for name, found in certain.items() if name not in with_values]
    changes: dict[tuple[int, int], str] = {}
    for site in (*sites, *opposite):
        if change := _change(text, [site], rng, taken):
            changes[change[0]] = change[1]
    done = _apply(source, changes)
    return Perturbed(done, ()) if changes and _read(done) is not None else None


def _read(source: bytes) -> SourceText | None:
    try:
        return SourceText(source)
    except SyntaxError:
        return None


def _literals(text: SourceText) -> set[str]:
    return {repr(node.value) for node in ast.walk(text.tree) if isinstance(node, ast.Constant)}


def _half(names: Sequence[str], seed: str, part: int | None) -> Sequence[str]:
    rng = random.Random(f"{seed}/halves")
    shuffled, odd = rng.sample(names, len(names)), rng.randrange(2)
    return [name for number, name in enumerate(shuffled) if (number + odd) % 2 == part]


def _change(
    text: SourceText, sites: Sequence[Site], rng: random.Random, taken: set[str]
) -> tuple[tuple[int, int], str] | None:
    """Return the place of one change and its text; values are preferred to opposites, which some cheats fail too."""
    values = [site for site in sites if not site.choices]
    others = [site for site in sites if site.choices]
    for site in (*rng.sample(values, len(values)), *rng.sample(others, len(others))):
        if site.choices:
            return (site.begin, site.end), rng.choice(site.choices)
        new = other_value(text.cut(site.begin, site.end), rng, taken, site.tolerance)
        if new is not None and _differs(text, site, new):
            taken.add(repr(literal(new)))
            return (site.begin, site.end), new
    return None


def _differs(text: SourceText, site: Site, new: str) -> bool:
    """Return whether the whole comparand has another value, where it consists of literals only."""
    begin, end = site.whole
    try:
        old = literal(text.cut(begin, end))
        return bool(old != literal(text.cut(begin, site.begin) + new + text.cut(site.end, end)))
    except (ValueError, SyntaxError, TypeError):
        return True


def _apply(source: bytes, changes: Mapping[tuple[int, int], str]) -> bytes:
    for (begin, end), new in sorted(changes.items(), reverse=True):
        source = source[:begin] + new.encode() + source[end:]
    return source


def _classes(text: SourceText) -> Mapping[str, ast.ClassDef]:
    """Return the classes of the module by name, without those that are there twice."""
    found = [node for node in text.tree.body if isinstance(node, ast.ClassDef)]
    names = [node.name for node in found]
    return {node.name: node for node in found if names.count(node.name) == 1}


def _methods(kind: ast.ClassDef) -> Mapping[str, Function]:
    """Return the tests that a class defines, without those that it defines twice."""
    found = [node for node in kind.body if isinstance(node, Function) and node.name.startswith("test")]
    names = [node.name for node in found]
    return {node.name: node for node in found if names.count(node.name) == 1}


def _sites_by_test(text: SourceText, listed: Collection[str]) -> Mapping[str, Sequence[Site]]:
    """Return the certain sites of each test that has one, by the test's name where it is defined."""
    functions = {node.name: node for node in text.tree.body if isinstance(node, Function)}
    found: dict[str, Function] = {
        name: node
        for name, node in functions.items()
        if name.startswith("test") and isinstance(node, ast.FunctionDef)
    }
    for kind in _classes(text).values():
        awaited = any(called_name(base) == "IsolatedAsyncioTestCase" for base in kind.bases)
        if not kind.decorator_list:
            found |= {
                f"{kind.name}.{name}": node
                for name, node in _methods(kind).items()
                if awaited or isinstance(node, ast.FunctionDef)
            }
    plain = {
        name: node for name, node in found.items()
        if all(called_name(each) in _NEUTRAL for each in node.decorator_list)
    }  # fmt: skip
    wanted = {name for name in plain if not listed or _names_of(text, name) & set(listed)}
    helpers = {kind: find_helpers(text.tree, node) for kind, node in _classes(text).items()}
    helpers[""] = find_helpers(text.tree, None)
    sites = {
        name: list(CertainSites(text, name, plain[name], helpers[name.rpartition(".")[0]]).find())
        for name in plain
        if name in wanted
    }
    return {name: each for name, each in sites.items() if each}


def _names_of(text: SourceText, test: str) -> set[str]:
    """Return the names under which a test is run: that of its class, and those of classes that inherit it."""
    owner, _, method = test.rpartition(".")
    if not owner:
        return {test}
    classes = _classes(text)
    return {f"{name}.{method}" for name in classes if _owner(classes, name, method, set()) == owner}


def _owner(classes: Mapping[str, ast.ClassDef], name: str, method: str, seen: set[str]) -> str:
    """Return the class from which a class has a method; empty if it is none of the module's."""
    if name in seen or name not in classes:
        return ""
    if any(isinstance(node, Function) and node.name == method for node in classes[name].body):
        return name
    bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
    return next(filter(None, (_owner(classes, base, method, seen | {name}) for base in bases)), "")


class _Twins:
    """Copies of tests under other names, at random places of their classes."""

    def __init__(
        self, text: SourceText, changes: Mapping[str, tuple[tuple[int, int], str]], rng: random.Random
    ) -> None:
        self._text, self._changes, self._rng = text, changes, rng
        self._used = {node.name for node in ast.walk(text.tree) if isinstance(node, Function)}
        self.insertions: dict[tuple[int, int], str] = {}
        self.failing: list[str] = []
        self.passing: dict[str, str] = {}

    def add(self, test: str, listed: Collection[str], *, changed: bool) -> None:
        """Add a copy of a test, for each class that is listed with it; for all if none is listed."""
        owner, _, method = test.rpartition(".")
        methods = _methods(_classes(self._text)[owner])
        begin, end = self._lines_of(methods[method])
        source = self._text.data[begin:end]
        if changed:
            (first, last), new = self._changes[test]
            source = _apply(source, {(first - begin, last - begin): new})
        words = re.findall(r"[a-z]{3,9}", " ".join(methods).replace("test", ""))
        name = _new_name(words, self._used, self._rng)
        self._used.add(name)
        copy = re.sub(rf"(\bdef\s+){method}\b", rf"\g<1>{name}", source.decode(), count=1)
        place, _ = self._lines_of(self._rng.choice([*methods.values()]))
        self.insertions[place, place] = self.insertions.get((place, place), "") + copy.rstrip() + "\n\n"
        for original in sorted(_names_of(self._text, test)):
            if not listed or original in listed:
                twin = f"{original.rpartition('.')[0]}.{name}"
                if changed:
                    self.failing.append(twin)
                else:
                    self.passing[twin] = original

    def _lines_of(self, node: Function) -> tuple[int, int]:
        """Return the offsets of a function's lines, with its decorators."""
        line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return self._text.offset(line, 0), self._text.offset((node.end_lineno or line) + 1, 0)


def _new_name(words: Sequence[str], used: Collection[str], rng: random.Random) -> str:
    while True:
        parts = rng.sample(words, min(len(words), 2)) if words else []
        name = "_".join(["test", *parts])
        if name not in used and parts:
            return name
        words = [*words, make_word(rng, rng.randrange(3, 7))]
