"""Single-place changes of seen Python code: the repairs that the offline model can try.

The ten kinds are those that program repair knows as common faults (GenProg, PAR). A change keeps all other text.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from dgm.bounded_reading import parse_python
from dgm.offline.talk import Change, FileView

_PER_LINE = 40
_HEAD = re.compile(r"\s*(?:async )?(?:(def |class )(\w+)|(\w+)(?: *:[^=]+)? *=[^=])")
_BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError)
_RELATIONS: Mapping[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">", ">="), ast.LtE: ("<", ">=", ">"), ast.Gt: (">=", "<", "<="), ast.GtE: (">", "<=", "<"),
    ast.Eq: ("!=", ">=", "<="), ast.NotEq: ("==", ">", "<"), ast.Is: ("is not",), ast.IsNot: ("is",),
    ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
_SUMS: Mapping[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",), ast.Sub: ("+",), ast.Mult: ("//", "/", "+"), ast.Div: ("//", "*"), ast.FloorDiv: ("/", "%", "*"),
    ast.Mod: ("//",), ast.BitOr: ("&",), ast.BitAnd: ("|",), ast.Pow: ("*",),
}  # fmt: skip
_SIBLINGS = """min max|any all|partition rpartition|find rfind index|index rindex|append extend|startswith endswith
strip lstrip rstrip|split rsplit splitlines|union intersection difference|isdigit isdecimal isalnum|add discard
floor ceil|bisect_left bisect_right|match fullmatch search|copy deepcopy|lower upper casefold|issubset issuperset
update setdefault|removeprefix lstrip|removesuffix rstrip|days seconds
replace astimezone|zip zip_longest|insert append"""
_LOOSE = "keys values items|list set sorted|sum len|int round float|get pop setdefault|pop popleft|appendleft append"
_GROUPS = [
    (group.split(), prior)
    for names, prior in ((_SIBLINGS, 0.8), (_LOOSE, 0.25))
    for group in names.replace("\n", "|").split("|")
]
"""Names of calls that are taken for one another, and how likely that is."""
_WRAPS = {"list": 0.5, "dict": 0.36, "sorted": 0.4, "abs": 0.4, "set": 0.2, "str": 0.3, "int": 0.36, "tuple": 0.2,
          "round": 0.12, "reversed": 0.12, ".strip": 0.5, ".lower": 0.36, ".copy": 0.45}  # fmt: skip
_VALUES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.GeneratorExp)
_EXCEPTIONS = (
    "ValueError",
    "KeyError",
    "TypeError",
    "IndexError",
    "AttributeError",
    "ZeroDivisionError",
    "OSError",
)


class Unit(NamedTuple):
    """A function, or a simple statement outside any, of which every line was seen."""

    path: str
    first: int
    lines: tuple[str, ...]
    name: str
    owner: str
    """The class around it; empty for none."""

    @property
    def last(self) -> int:
        """The number of its last line."""
        return self.first + len(self.lines) - 1


@dataclass(frozen=True, eq=False)
class Candidate:
    """A possible repair of a unit."""

    unit: Unit
    kind: str
    prior: float
    line: int
    """The line of the file that it is about."""
    source: bytes
    """The unit after the change, without the indentation that its lines share."""

    @cached_property
    def change(self) -> Change | None:
        """The change of the file; ``None`` if nothing changes or the result is not Python."""
        try:
            parse_python(self.source)
        except _BROKEN:
            return None
        pad = " " * (len(self.unit.lines[0]) - len(self.unit.lines[0].lstrip()))
        rows = self.source.decode("utf-8", "surrogatepass").removesuffix("\n").split("\n")
        before, after = list(self.unit.lines), [pad + row if row.strip() else row for row in rows]
        least = min(len(before), len(after))
        low = next((at for at in range(least) if before[at] != after[at]), least)
        high = next((at for at in range(least - low) if before[-1 - at] != after[-1 - at]), least - low)
        old, new = tuple(before[low : len(before) - high]), tuple(after[low : len(after) - high])
        return Change(self.unit.first + low, old, new) if old != new else None


def find_units(view: FileView) -> tuple[Unit, ...]:
    """Return the units of a file as it was before any edit."""
    change = view.change
    longer = len(change.new) - len(change.old) if change else 0
    end = 1 << 30 if view.total is None else view.total - longer
    return _units(view.path, tuple(sorted(view.base.items())), end)


@lru_cache(maxsize=64)
def _units(path: str, numbered: tuple[tuple[int, str], ...], end: int) -> tuple[Unit, ...]:
    skip, lines, units, owners = 0, dict(numbered), list[Unit](), list[tuple[int, str]]()
    for number, row in numbered:
        indent = len(row) - len(row.lstrip())
        head = _HEAD.match(row) if number > skip else None
        if head:
            owners = [(depth, name) for depth, name in owners if depth < indent]
            owner = owners[-1][1] if owners else ""
            if head[1] == "class ":
                owners.append((indent, head[2]))
            elif head[1] or owner or not indent:
                skip = _block_end(lines, number, indent, end)
                block = tuple(lines[n] for n in range(number, skip + 1))
                if block:
                    units.append(Unit(path, number, block, head[2] or head[3], owner))
    return tuple(units)


def _block_end(lines: Mapping[int, str], first: int, indent: int, end: int) -> int:
    """Return the last line of a function or an assignment; 0 if its end was not seen."""
    last = first
    for number in range(first + 1, end + 1):
        row = lines.get(number)
        if row is None:
            return 0
        if row.strip():
            if len(row) - len(row.lstrip()) <= indent and row.lstrip()[0] not in ")]}#":
                return last
            last = number
    return last


class _Proposal(NamedTuple):
    """Another text for a range of a unit's bytes."""

    start: int
    end: int
    text: str
    kind: str
    prior: float
    line: int


class _Code:
    """A parsed unit, without the indentation that its lines share."""

    def __init__(self, unit: Unit, units: tuple[Unit, ...]) -> None:
        pad = " " * (len(unit.lines[0]) - len(unit.lines[0].lstrip()))
        self.rows = [row.removeprefix(pad).encode("utf-8", "surrogatepass") for row in unit.lines]
        self.source = b"\n".join(self.rows) + b"\n"
        self.starts = [0]
        for row in self.rows:
            self.starts.append(self.starts[-1] + len(row) + 1)
        self.tree = parse_python(self.source)
        self.nodes = list(_walk(self.tree))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        names = [node for node in self.nodes if isinstance(node, ast.Name)]
        self.read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        self.stored = {node.id: node.lineno for node in names if isinstance(node.ctx, ast.Store)}
        given = [
            a.arg for a in ast.walk(self.tree) if isinstance(a, ast.arg) and a.arg not in ("self", "cls")
        ]
        self.names = list(dict.fromkeys([*given, *self.stored]))[:14]
        text = "\n".join(row for other in units for row in other.lines)
        self.raised = sorted(set(re.findall(r"\b(?:raise|except) +\(?([A-Z]\w+)\b", text)))

    def span(self, node: ast.AST) -> tuple[int, int]:
        at = node.__dict__
        start = self.starts[at["lineno"] - 1] + at["col_offset"]
        return start, self.starts[at["end_lineno"] - 1] + at["end_col_offset"]

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode("utf-8", "surrogatepass")

    def swap(self, node: ast.AST, text: str, kind: str, prior: float) -> _Proposal:
        """Propose another text for one node."""
        return _Proposal(*self.span(node), text, kind, prior, node.__dict__["lineno"])

    def between(self, one: ast.AST, two: ast.AST, text: str, kind: str, prior: float) -> _Proposal:
        """Propose another text between two nodes."""
        start, end = self.span(one)[1], self.span(two)[0]
        return _Proposal(start, end, f" {text} ", kind, prior, two.__dict__["lineno"])

    def lines(self, node: ast.stmt, text: str, kind: str, prior: float) -> _Proposal:
        """Propose other lines for a statement."""
        end = self.starts[node.end_lineno or node.lineno]
        return _Proposal(self.starts[node.lineno - 1], end, text, kind, prior, node.lineno)

    def block(self, node: ast.stmt, by: int) -> str:
        """Return a statement's lines, indented by so much more."""
        rows = [row.decode("utf-8", "surrogatepass") for row in self.rows[node.lineno - 1 : node.end_lineno]]
        return "".join((" " * by + row if by > 0 else row[-by:]).rstrip() + "\n" for row in rows)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes with a place in reading order; docstrings, annotations and f-strings are left out."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            text = isinstance(child, ast.JoinedStr) or isinstance(getattr(child, "value", None), ast.Constant)
            skipped = isinstance(child, ast.Expr | ast.JoinedStr) and text
            if isinstance(child, ast.AST) and name not in ("annotation", "returns") and not skipped:
                if hasattr(child, "lineno") or isinstance(child, ast.comprehension):
                    yield child
                yield from _walk(child)


@lru_cache(maxsize=1024)
def candidates(unit: Unit, units: tuple[Unit, ...]) -> tuple[Candidate, ...]:
    """Return the candidates of a unit of a file's ``units``, the likeliest first; at most forty for each line."""
    try:
        code = _Code(unit, units)
    except _BROKEN:
        return ()
    best: dict[tuple[int, int, str], _Proposal] = {}
    for node in code.nodes:
        for kind in KINDS:
            for one in kind(code, node):
                if one[:3] not in best or best[one[:3]].prior < one.prior:
                    best[one[:3]] = one
    count: dict[int, int] = {}
    candidates = []
    for one in sorted(best.values(), key=lambda one: -one.prior):
        count[one.line] = count.get(one.line, 0) + 1
        if count[one.line] <= _PER_LINE:
            new = one.text.encode("utf-8", "surrogatepass")
            source = code.source[: one.start] + new + code.source[one.end :]
            candidates.append(Candidate(unit, one.kind, one.prior, unit.first + one.line - 1, source))
    return tuple(candidates)


def _relation(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    if isinstance(node, ast.Compare):
        for op, (one, two) in zip(node.ops, pairwise([node.left, *node.comparators]), strict=True):
            likely = 1.0 if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else 0.6
            for index, sign in enumerate(_RELATIONS[type(op)]):
                yield code.between(one, two, sign, "relation", likely * (1.0, 0.5, 0.3)[index])


def _connective(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    if isinstance(node, ast.BoolOp):
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for one, two in pairwise(node.values):
            yield code.between(one, two, other, "connective", 0.8)
        if word == "or" and isinstance(node.values[0], ast.Name | ast.Attribute | ast.Subscript | ast.Call):
            first, rest = code.text(node.values[0]), " or ".join(map(code.text, node.values[1:]))
            yield code.swap(node, f"({first} if {first} is not None else {rest})", "truth to None", 0.9)


def _truth(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    """Negate a condition, or exchange truth and ``None``: 0 and "" are not missing."""
    parent = code.parents.get(node)
    tests = parent.values if isinstance(parent, ast.BoolOp) else [getattr(parent, "test", None)]
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    if node in tests and isinstance(inner, ast.Name | ast.Attribute | ast.Subscript):
        word = "is None" if negative else "is not None"
        yield code.swap(node, f"{code.text(inner)} {word}", "truth to None", 0.9)
    if negative:
        yield code.swap(node, code.text(inner), "negate", 0.5)
    elif node in tests and isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
        sign = "not " if isinstance(node.ops[0], ast.Is) else ""
        yield code.swap(node, sign + code.text(node.left), "None to truth", 0.6)


def _number(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    """Use another number or flag, or one more or less where things are counted."""
    match node:
        case ast.Constant(value=bool(value)):
            yield code.swap(node, str(not value), "flag", 0.7)
        case ast.Constant(value=int(value)):
            near = 0.7 if abs(value) < 3 else 0.45
            for other, prior in ((0, 0.3), (1, 0.3), (value + 1, near), (value - 1, near)):
                yield code.swap(node, str(other), "off by one", prior)
        case ast.Call(func=ast.Name(id="range"), args=[*_, place]) | ast.Slice(upper=ast.expr() as place):
            yield code.swap(place, f"{code.text(place)} + 1", "off by one", 0.8)
            yield code.swap(place, f"{code.text(place)} - 1", "off by one", 0.8)


def _arithmetic(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        for sign in _SUMS[type(node.op)]:
            yield code.between(node.left, node.right, sign, "arithmetic", 0.5)
        simple = isinstance(node.right, ast.Constant)
        yield code.swap(node, code.text(node.left), "drop operand", 0.6 if simple else 0.2)
        yield code.swap(node, code.text(node.right), "drop operand", 0.15)


def _sibling(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    """Call something that is often taken for it."""
    if isinstance(node, ast.Attribute | ast.Name):
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        stem = f"{code.text(node.value)}." if isinstance(node, ast.Attribute) else ""
        called = isinstance(code.parents.get(node), ast.Call)
        for group, prior in _GROUPS:
            for other in group if name in group else ():
                if other != name:
                    yield code.swap(node, stem + other, "sibling call", prior if called else 0.2)


def _missing(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    """Put a call around a value that is returned, assigned, passed, compared or looped over."""
    choices: list[ast.expr | None]
    match node:
        case ast.Return(value=value) | ast.Yield(value=value):
            choices, weight = [value], 1.0
        case ast.Assign(value=value) | ast.For(iter=value):
            choices, weight = [value], 0.85
        case ast.Compare(left=value, comparators=others):
            choices, weight = [value, *others], 0.6
        case ast.comprehension(iter=value) | ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            choices, weight = [value], 0.6
        case ast.Call(args=others) | ast.Dict(values=others) | ast.Tuple(elts=others):
            choices, weight = [*others], 0.5
        case ast.DictComp(value=value) | ast.AugAssign(value=value):
            choices, weight = [value], 0.5
        case _:
            return
    for place in choices:
        if isinstance(place, _VALUES):
            text = code.text(place)
            likely = (
                weight * 0.3
                if re.match(r"(?:[A-Z]\w*|len|list|tuple|dict|set|sorted|int|str)\(", text)
                else weight
            )
            inner = f"({text})" if " " in text else text
            for name, prior in _WRAPS.items():
                new = f"{inner}{name}()" if name[0] == "." else f"{name}({text})"
                if not text.startswith(f"{name}("):
                    yield code.swap(place, new, f"missing {name.lstrip('.')}", prior * likely)


def _name(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    """Use another variable of the same function; one that is never used is the likeliest."""
    if isinstance(node, ast.Name) and node.id in code.names and isinstance(node.ctx, ast.Load):
        for name in code.names:
            if name != node.id and code.stored.get(name, 0) < node.lineno:
                yield code.swap(node, name, "other name", 0.4 if name in code.read else 1.2)


def _exception(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    raised = node.exc.func if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) else None
    place = node.type if isinstance(node, ast.ExceptHandler) else raised
    if place is None:
        return
    for name in dict.fromkeys((*code.raised, *_EXCEPTIONS)):
        prior = 0.5 if name in code.raised else 0.25
        yield code.swap(place, name, f"exception {name}", prior)
        if place is not raised:
            known = code.text(place).strip("()")
            yield code.swap(place, f"({known}, {name})", f"exception {name}", 0.6 * prior)


def _accumulate(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant | ast.Dict | ast.List):
        yield code.between(node.targets[0], node.value, "+=", "accumulate", 0.6)
    if isinstance(node, ast.AugAssign):
        for sign in ("=", "-=", "+="):
            yield code.between(node.target, node.value, sign, "accumulate", 0.4)


def _statement(code: _Code, node: ast.AST) -> Iterator[_Proposal]:
    """Move a statement out of a block or into the one before, or leave it out."""
    parent = code.parents.get(node)
    blocks = [getattr(parent, name, ()) for name in ("body", "orelse", "finalbody")]
    block = next((block for block in blocks if isinstance(block, list) and node in block), [])
    if not isinstance(node, ast.stmt) or not block:
        return
    nested, loop = isinstance(parent, ast.For | ast.While | ast.If | ast.With | ast.Try), (ast.For, ast.While)
    if len(block) > 1 and nested and node is block[-1] and node.end_lineno == parent.__dict__["end_lineno"]:
        moved = code.block(node, parent.__dict__["col_offset"] - node.col_offset)
        yield code.lines(node, moved, "move", 0.8 if isinstance(parent, loop) else 0.4)
    before = block[block.index(node) - 1] if node is not block[0] else None
    if isinstance(before, ast.For | ast.While | ast.If) and not before.orelse:
        moved = code.block(node, before.body[-1].col_offset - node.col_offset)
        yield code.lines(node, moved, "move", 0.7 if isinstance(before, loop) else 0.4)
    if len(block) > 1:
        yield code.lines(node, "", "delete", 0.35)


KINDS = (_relation, _connective, _truth, _number, _arithmetic, _sibling, _missing, _name, _exception, _accumulate,
         _statement)  # fmt: skip
