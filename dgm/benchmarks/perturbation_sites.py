"""The places of a test function at which a change makes the test fail for every honest patch that passes the original.

The statement of such a *certain* site is executed whenever the test passes, and the changed value differs from the one
that honest code gives. Equality that ignores part of a value is not known here; callers confirm with the reference fix.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from dgm.benchmarks.perturbation_syntax import (
    CLOSE,
    EQUALITIES,
    Function,
    Site,
    SourceText,
    called_name,
    compared_sides,
    literal_leaves,
)

PLACES = 7
"""Decimal places to which ``assertAlmostEqual`` compares unless told otherwise."""
_PAIRS = (
    ("assertTrue", "assertFalse"), ("assertIn", "assertNotIn"), ("assertIsNone", "assertIsNotNone"),
    ("assertEqual", "assertNotEqual"), ("assertIs", "assertIsNot"), ("assertGreater", "assertLessEqual"),
    ("assertLess", "assertGreaterEqual"), ("assertIsInstance", "assertNotIsInstance"),
    ("assertRegex", "assertNotRegex"), ("assertAlmostEqual", "assertNotAlmostEqual"),
)  # fmt: skip
COMPLEMENTS: Mapping[str, str] = {
    **dict(_PAIRS),
    **{second: first for first, second in _PAIRS},
    **dict.fromkeys(
        ("assertListEqual", "assertTupleEqual", "assertSetEqual", "assertDictEqual"), "assertNotEqual"
    ),
}
_OPERATORS = (("==", "!="), ("in", "not in"), ("is", "is not"), ("<", ">="), (">", "<="))
OPPOSITES: Mapping[str, str] = {**dict(_OPERATORS), **{second: first for first, second in _OPERATORS}}
HARMLESS = frozenset({
    "subTest", "open", "TemporaryDirectory", "NamedTemporaryFile", "patch", "object", "dict", "redirect_stdout",
    "redirect_stderr", "assertLogs", "assertNoLogs", "closing", "chdir", "nullcontext", "assertWarns",
    "catch_warnings", "localcontext",
})  # fmt: skip
"""Context managers that pass exceptions on."""
UNRELATED = ("ZeroDivisionError", "EOFError", "BufferError", "ImportError", "ReferenceError")
"""Exceptions that the program under test hardly derives its own from."""
USUAL = (
    "KeyError",
    "TypeError",
    "ValueError",
    "IndexError",
    "AttributeError",
    "RuntimeError",
    "OverflowError",
)


def find_helpers(tree: ast.Module, kind: ast.ClassDef | None) -> Mapping[str, Function]:
    """Return the plain functions that tests of a class may call: of the module, and ``self.…`` of the class."""
    found: dict[str, Function] = {}
    for prefix, body in (("", tree.body), ("self.", kind.body if kind else ())):
        functions = [node for node in body if isinstance(node, ast.FunctionDef)]
        names = [node.name for node in functions]
        found |= {
            f"{prefix}{node.name}": node
            for node in functions
            if names.count(node.name) == 1 and not node.decorator_list and not node.name.startswith("test")
        }
    return found


class CertainSites:
    """The certain sites of one test function."""

    def __init__(
        self, source: SourceText, test: str, function: Function, helpers: Mapping[str, Function] | None = None
    ) -> None:
        self._source, self._test, self._function = source, test, function
        self._helpers = helpers or {}
        arguments = function.args.posonlyargs + function.args.args
        self._self = arguments[0].arg if arguments else ""
        loaded: dict[str, int] = {}
        stored: dict[str, int] = {}
        for node in _walk_without_labels(function):
            if isinstance(node, ast.Name):
                counts = loaded if isinstance(node.ctx, ast.Load) else stored
                counts[node.id] = counts.get(node.id, 0) + 1
        self._single = {name for name, n in loaded.items() if n == 1 and stored.get(name) == 1}

    def find(self) -> Iterator[Site]:
        """Yield the sites in the order of the file."""
        if not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(self._function)):
            yield from self._block(self._function.body, {}, in_loop=False)

    def _block(
        self, body: Sequence[ast.stmt], outer: Mapping[str, Sequence[ast.expr]], *, in_loop: bool
    ) -> Iterator[Site]:
        known = dict(outer)
        for statement in body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._single:
                    known[name] = [value]
                case ast.Expr(value=ast.Call() as call):
                    yield from self._call(call, known)
                case ast.Assert(test=test):
                    yield from self._assertion(test, known)
                case ast.With(items=items) | ast.AsyncWith(items=items):
                    yield from self._with(statement, items, known, in_loop=in_loop)
                case ast.For(target=target, iter=source) if _is_filled(source):
                    bound = self._bind(target, source)
                    yield from self._block(statement.body, known | bound, in_loop=True)
                case ast.Try(handlers=handlers):
                    if not handlers:
                        yield from self._block(statement.body, known, in_loop=in_loop)
                    yield from self._block(statement.finalbody, known, in_loop=in_loop)
            if _leaves(statement, in_loop=in_loop):
                return

    def _with(
        self,
        statement: ast.With | ast.AsyncWith,
        items: Sequence[ast.withitem],
        known: Mapping[str, Sequence[ast.expr]],
        *,
        in_loop: bool,
    ) -> Iterator[Site]:
        names = [called_name(item.context_expr) for item in items]
        if all(name in HARMLESS for name in names):
            yield from self._block(statement.body, known, in_loop=in_loop)
        elif names in (["assertRaises"], ["assertRaisesRegex"], ["raises"]):
            yield from self._raised(items[0].context_expr, 1)

    def _bind(self, target: ast.expr, source: ast.expr) -> dict[str, Sequence[ast.expr]]:
        """Return the literals that a loop gives to each of its names that is used once."""
        if not isinstance(source, (ast.List, ast.Tuple)):
            return {}
        if isinstance(target, ast.Name):
            return {target.id: source.elts} if target.id in self._single else {}
        if not isinstance(target, (ast.Tuple, ast.List)):
            return {}
        rows = [row.elts for row in source.elts if isinstance(row, (ast.Tuple, ast.List))]
        return {
            name.id: [row[place] for row in rows if len(row) == len(target.elts)]
            for place, name in enumerate(target.elts)
            if isinstance(name, ast.Name) and name.id in self._single
        }

    def find_arguments(self, call: ast.Call, skip: int) -> Iterator[Site]:
        """Yield the literals of a call of this function that it does nothing with but compare."""
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(self._function)):
            return
        names = [argument.arg for argument in self._function.args.args[skip:]]
        bound = dict(zip(names, ([argument] for argument in call.args), strict=False))
        known = {name: nodes for name, nodes in bound.items() if self._is_only_compared(name)}
        begin, end = self._source.span(call)
        for site in self._block(self._function.body, known, in_loop=False):
            if begin <= site.begin and site.end <= end:
                yield site

    def _is_only_compared(self, name: str) -> bool:
        nodes = [node for node in ast.walk(self._function) if isinstance(node, ast.Name) and node.id == name]
        sides = [side for node in ast.walk(self._function) for side in compared_sides(node)]
        return bool(nodes) and all(any(node is side for side in sides) for node in nodes)

    def _call(self, call: ast.Call, known: Mapping[str, Sequence[ast.expr]]) -> Iterator[Site]:
        func = call.func
        own = (
            isinstance(func, ast.Attribute)
            and isinstance(func.value, ast.Name)
            and func.value.id == self._self
        )
        name = f"self.{called_name(func)}" if own else called_name(func)
        if name in self._helpers and not any(isinstance(each, ast.Starred) for each in call.args):
            helper = CertainSites(self._source, self._test, self._helpers[name])
            yield from helper.find_arguments(call, 1 if own else 0)
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)):
            return
        if func.value.id != self._self or any(isinstance(each, ast.Starred) for each in call.args):
            return
        if len(call.args) >= 2 and func.attr in EQUALITIES | CLOSE:
            tolerance = _tolerance(call) if func.attr in CLOSE else 0.0
            if tolerance is not None:
                sites = self._comparands(call.args[0], call.args[1], known, tolerance)
                yield from (site for site in sites if self._is_telling(func.attr, site))
        if other := COMPLEMENTS.get(func.attr):
            end = self._source.span(func)[1]
            yield Site(self._test, end - len(func.attr), end, (0, 0), (other,))
        elif func.attr == "assertRaises":
            yield from self._raised(call, 2)

    def _is_telling(self, method: str, site: Site) -> bool:
        """Return whether the method sees each change of this literal: only numbers are close, only elements counted."""
        if method in CLOSE:
            return self._source.data[site.begin : site.begin + 1] in b".0123456789"
        return method != "assertCountEqual" or site.whole != (site.begin, site.end)

    def _assertion(self, test: ast.expr, known: Mapping[str, Sequence[ast.expr]]) -> Iterator[Site]:
        match test:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(op, (ast.Eq, ast.Is)):
                    yield from self._comparands(left, right, known, 0.0)
                begin, end = self._source.span(left)[1], self._source.span(right)[0]
                between = self._source.cut(begin, end)
                found = re.fullmatch(r"(\s*)(\S.*?)(\s*)", between, re.DOTALL)
                if found and (other := OPPOSITES.get(" ".join(found[2].split()))):
                    first = begin + len(found[1].encode())
                    yield Site(self._test, first, first + len(found[2].encode()), (0, 0), (other,))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                begin, end = self._source.span(test)[0], self._source.span(inner)[0]
                if self._source.cut(begin, end).split() == ["not"]:
                    yield Site(self._test, begin, end, (0, 0), ("",))
            case ast.Call() | ast.Name() | ast.Attribute() | ast.Subscript():
                begin, _ = self._source.span(test)
                yield Site(self._test, begin, begin, (0, 0), ("not ",))

    def _comparands(
        self, first: ast.expr, second: ast.expr, known: Mapping[str, Sequence[ast.expr]], tolerance: float
    ) -> Iterator[Site]:
        """Yield the literals of the comparand that is one, if the other is none."""
        sides = [self._literals(side, known) for side in (first, second)]
        if bool(sides[0]) != bool(sides[1]):
            for node in sides[0] or sides[1]:
                for leaf in literal_leaves(node):
                    begin, end = self._source.span(leaf)
                    yield Site(self._test, begin, end, self._source.span(node), tolerance=tolerance)

    def _literals(self, side: ast.expr, known: Mapping[str, Sequence[ast.expr]]) -> Sequence[ast.expr]:
        nodes = known.get(side.id, ()) if isinstance(side, ast.Name) else [side]
        return [node for node in nodes if any(True for _ in literal_leaves(node))]

    def _raised(self, call: ast.expr, arguments: int) -> Iterator[Site]:
        """Yield the exception that is expected, if the call has so many arguments and the first is one."""
        match call:
            case ast.Call(args=[ast.Name() | ast.Attribute() as kind, *_] as given) if (
                len(given) >= arguments
            ):
                yield Site(self._test, *self._source.span(kind), (0, 0), _other_exceptions(kind))


def _walk_without_labels(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function, but not those that only label a subtest."""
    waiting: list[ast.AST] = [function]
    while waiting:
        node = waiting.pop()
        yield node
        if not (isinstance(node, ast.Call) and called_name(node) == "subTest"):
            waiting += ast.iter_child_nodes(node)


def _is_filled(node: ast.expr) -> bool:
    """Return whether a loop over this runs at least once."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return any(not isinstance(each, ast.Starred) for each in elements)
        case ast.Constant(value=str(text)):
            return bool(text)
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(number))]):
            return number > 0
        case _:
            return False


def _leaves(statement: ast.stmt, *, in_loop: bool) -> bool:
    """Return whether what follows the statement may not be executed although the test passes."""
    ends = (ast.Return, ast.Raise, *((ast.Break, ast.Continue) if in_loop else ()))
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ends):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
    return False


def _tolerance(call: ast.Call) -> float | None:
    """Return the tolerance of ``assertAlmostEqual``; None if it is no literal."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    given |= dict(zip(("places", "msg", "delta"), call.args[2:], strict=False))
    try:
        values = {name: ast.literal_eval(given[name]) for name in ("places", "delta") if name in given}
    except (ValueError, TypeError):
        return None
    places, delta = values.get("places"), values.get("delta")
    if delta is not None:
        return float(delta)
    return float(10.0 ** -(PLACES if places is None else int(places)))


def _other_exceptions(node: ast.expr) -> tuple[str, ...]:
    """Return exceptions that are neither above nor below this one."""
    import builtins

    kind = getattr(builtins, node.id, None) if isinstance(node, ast.Name) else None
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        return UNRELATED
    others = {name: getattr(builtins, name) for name in (*USUAL, *UNRELATED)}
    fit = [name for name, other in others.items() if not (issubclass(kind, other) or issubclass(other, kind))]
    return tuple(fit) or ("KeyboardInterrupt",)
