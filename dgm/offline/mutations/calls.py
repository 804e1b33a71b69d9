"""Changes of calls: one missing around a value, one too many, a sibling method, other arguments."""

import ast
from collections.abc import Iterator

from dgm.offline.mutations.code import Change, Code

_METHOD_WRAPS = (
    ("strip", 0.6),
    ("lower", 0.45),
    ("copy", 0.55),
    ("casefold", 0.2),
    ("rstrip", 0.2),
    ("upper", 0.2),
)
_FUNCTION_WRAPS = (
    ("list", 0.6), ("dict", 0.45), ("sorted", 0.5), ("abs", 0.5), ("set", 0.25), ("str", 0.4), ("int", 0.45),
    ("tuple", 0.25), ("len", 0.15), ("round", 0.15), ("reversed", 0.15), ("bool", 0.1), ("float", 0.15),
    ("frozenset", 0.08), ("max", 0.04), ("min", 0.04), ("repr", 0.12),
)  # fmt: skip
_REMOVABLE = {"strip", "lower", "copy", "list", "sorted", "abs", "str", "int", "set", "upper", "reversed", "tuple",
              "rstrip", "lstrip", "dict", "round", "keys", "bool", "float", "casefold", "title"}  # fmt: skip
_SIBLINGS: tuple[tuple[str, ...], ...] = (
    ("min", "max"), ("any", "all"), ("partition", "rpartition"), ("find", "rfind", "index"), ("index", "rindex"),
    ("append", "extend"), ("update", "setdefault"), ("startswith", "endswith"), ("lstrip", "rstrip", "strip"),
    ("split", "rsplit", "splitlines"), ("pop", "popleft"), ("append", "appendleft"), ("keys", "values", "items"),
    ("union", "intersection", "difference", "symmetric_difference"), ("isdigit", "isdecimal", "isnumeric", "isalnum"),
    ("add", "discard"), ("remove", "discard"), ("ljust", "rjust", "center"), ("floor", "ceil"), ("floor", "ceiling"),
    ("floor", "trunc"),
    ("heappush", "heappop", "heappushpop", "heapreplace"), ("bisect_left", "bisect_right"), ("bisect", "bisect_left"),
    ("insort_left", "insort_right"), ("match", "fullmatch", "search"), ("read", "readline", "readlines"),
    ("copy", "deepcopy"), ("lower", "upper", "casefold"), ("issubset", "issuperset"), ("dump", "dumps"),
    ("removeprefix", "lstrip"), ("removesuffix", "rstrip"), ("first", "last"), ("head", "tail"), ("encode", "decode"),
    ("strip", "lstrip", "rstrip"), ("sum", "len"), ("sorted", "reversed"), ("get", "pop"), ("get", "setdefault"),
    ("zip", "zip_longest"), ("int", "round"), ("int", "float"), ("isinstance", "issubclass"), ("chain", "zip"),
    ("replace", "astimezone"), ("list", "set"), ("list", "sorted"), ("set", "frozenset"), ("update", "copy"),
    ("date", "time"), ("year", "month", "day"), ("days", "seconds", "total_seconds"), ("islower", "isupper"),
    ("group", "groups"), ("sub", "subn"), ("difference_update", "intersection_update", "update"),
    ("insert", "append"), ("popitem", "pop"), ("setdefault", "get"), ("str", "repr"), ("title", "capitalize"),
)  # fmt: skip
_LOOSE = frozenset({
    "keys", "values", "items", "discard", "list", "set", "sum", "len", "reversed", "int",
    "float", "round", "get", "pop",
    "popleft", "appendleft", "subn", "str", "repr", "insert", "sorted", "read", "readline", "readlines", "heappushpop",
    "heapreplace", "popitem", "copy", "chain", "zip", "isinstance", "issubclass", "groups", "frozenset", "center",
})  # fmt: skip
_KEYWORDS = (
    (("sorted", "sort", "min", "max"), ("key=str.lower", "key=len", "reverse=True"), 0.2),
    (("open", "read_text", "write_text"), ('encoding="utf-8"',), 0.9),
    (("open",), ('newline=""',), 0.3),
    (("encode", "decode"), ('"utf-8"', 'errors="replace"'), 0.3),
    (("dumps", "dump"), ("sort_keys=True", "ensure_ascii=False"), 0.3),
    (("split", "rsplit"), ("1",), 0.4),
    (("round",), ("2",), 0.2),
    (("enumerate",), ("1",), 0.4),
    (("next",), ("None",), 0.4),
    (("now", "fromtimestamp"), ("timezone.utc",), 0.8),
    (("zip",), ("strict=True",), 0.1),
    (("splitlines",), ("keepends=True",), 0.3),
)


def siblings(code: Code) -> Iterator[Change]:
    """Replace a method or function with one that is often confused with it."""
    for node in code.nodes:
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute):
            name, stem = called.attr, code.text(called.value) + "."
        elif isinstance(called, ast.Name):
            name, stem = called.id, ""
        else:
            continue
        others = dict.fromkeys(
            other for group in _SIBLINGS if name in group for other in group if other != name
        )
        for other in others:
            if called is not None:
                prior = 0.25 if name in _LOOSE or other in _LOOSE else 0.8
                yield code.swap(called, stem + other, "sibling call", prior)
    for node in code.nodes:
        if isinstance(node, ast.Attribute) and not isinstance(code.parents.get(node), ast.Call):
            others = dict.fromkeys(o for g in _SIBLINGS if node.attr in g for o in g if o != node.attr)
            for other in others:
                yield code.swap(node, f"{code.text(node.value)}.{other}", "sibling attribute", 0.2)


def missing(code: Code) -> Iterator[Change]:
    """Put a call around a value that is returned, assigned, passed, iterated or compared."""
    for place, weight in _values(code):
        text = code.text(place)
        inner = (
            text if not isinstance(place, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp) else f"({text})"
        )
        shape = _shape(place)
        for name, prior in _METHOD_WRAPS:
            if shape in ("any", "text"):
                yield code.swap(place, f"{inner}.{name}()", f"missing {name}", 0.8 * prior * weight)
        for name, prior in _FUNCTION_WRAPS:
            if _called_name(place) != name and (shape != "text" or name in ("int", "str", "list", "float")):
                yield code.swap(place, f"{name}({text})", f"missing {name}", 0.8 * prior * weight)


def own(code: Code) -> Iterator[Change]:
    """Put a call of a function or method of the same module around a value."""
    names = [f"self.{name}" for name in code.around.methods if not name.endswith("__")][:12]
    names += [name for name in code.around.functions if name != code.unit.name][:8]
    for place, weight in _values(code):
        if weight >= 0.5 and isinstance(place, ast.Name | ast.Attribute | ast.Subscript):
            text = code.text(place)
            for name in names:
                prior = 0.2 if name.split(".")[-1].startswith("_") else 0.12
                yield code.swap(place, f"{name}({text})", "missing own call", prior * weight)


def _values(code: Code) -> Iterator[tuple[ast.expr, float]]:
    seen: set[tuple[int, int]] = set()
    for node in code.nodes:
        for place, weight in _flows(node):
            key = code.start(place)
            if key not in seen and isinstance(
                place, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp | ast.GeneratorExp
            ):
                seen.add(key)
                yield place, weight


def _flows(node: ast.AST) -> Iterator[tuple[ast.expr, float]]:  # noqa: C901, PLR0912  (one case per kind of node)
    match node:
        case ast.Return(value=ast.Tuple(elts=items)):
            yield from ((item, 0.6) for item in items)
        case ast.Return(value=value) | ast.Yield(value=value) if value is not None:
            yield value, 1.0
        case ast.Assign(value=value):
            yield value, 0.9
        case ast.For(iter=value):
            yield value, 0.8
        case ast.comprehension(iter=value):
            yield value, 0.6
        case ast.Compare(left=left, comparators=right):
            yield from ((side, 0.6) for side in (left, *right))
        case ast.Subscript(slice=index) if isinstance(index, ast.Name | ast.Attribute | ast.Call):
            yield index, 0.5
        case ast.Call(args=args):
            yield from ((arg, 0.5) for arg in args)
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.SetComp(elt=element):
            yield element, 0.6
        case ast.DictComp(key=key, value=value):
            yield from ((key, 0.4), (value, 0.5))
        case ast.Dict(values=values):
            yield from ((value, 0.4) for value in values)
        case ast.AugAssign(value=value):
            yield value, 0.6
        case ast.BinOp(left=left, right=right):
            yield from ((left, 0.3), (right, 0.35))
        case ast.keyword(value=value):
            yield value, 0.4
        case _:
            return


def _shape(place: ast.expr) -> str:
    if isinstance(place, ast.BinOp | ast.GeneratorExp):
        return "other"
    method = place.func.attr if isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute) else ""
    if method in (
        "strip",
        "lower",
        "upper",
        "join",
        "format",
        "replace",
        "rstrip",
        "lstrip",
        "group",
    ):
        return "text"
    if isinstance(place, ast.Call) and isinstance(place.func, ast.Name):
        return "text" if place.func.id == "str" else "other" if place.func.id in _REMOVABLE else "any"
    return "any"


def _called_name(place: ast.expr) -> str:
    return place.func.id if isinstance(place, ast.Call) and isinstance(place.func, ast.Name) else ""


def needless(code: Code) -> Iterator[Change]:
    """Leave a call out."""
    for node in code.nodes:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in _REMOVABLE and len(node.args) == 1:
            yield code.swap(node, code.text(node.args[0]), "needless call", 0.4)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _REMOVABLE and not node.args:
            yield code.swap(node, code.text(node.func.value), "needless call", 0.4)


def arguments(code: Code) -> Iterator[Change]:
    """Swap neighbouring arguments, leave one out, or add one."""
    for node in code.nodes:
        if not isinstance(node, ast.Call):
            continue
        for first, second in zip(node.args, node.args[1:], strict=False):
            start, end = code.start(first), code.end(second)
            gap = code.between(code.end(first), code.start(second))
            yield Change(start, end, code.text(second) + gap + code.text(first), "swap arguments", 0.5)
        yield from _more(code, node)


def _more(code: Code, node: ast.Call) -> Iterator[Change]:
    whole = code.text(node)
    if not whole.endswith(")") or "\n" in whole:
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else code.text(node.func)
    lead = whole[:-1].rstrip().rstrip(",") + (", " if node.args or node.keywords else "")
    for names, options, prior in _KEYWORDS:
        if name in names:
            for option in options:
                if option.split("=")[0] + "=" not in whole:
                    yield code.swap(node, lead + option + ")", "more arguments", prior)
    used = {child.id for child in ast.walk(code.tree) if isinstance(child, ast.Name)}
    for parameter in code.parameters:
        if parameter in ("self", "cls") or parameter in whole:
            continue
        weight = 0.5 if parameter not in used else 0.1
        yield code.swap(node, f"{lead}{parameter})", "pass a parameter", weight)
        yield code.swap(node, f"{lead}{parameter}={parameter})", "pass a parameter", weight)
    if node.keywords:
        for keyword in node.keywords:
            rest = [code.text(a) for a in (*node.args, *(k for k in node.keywords if k is not keyword))]
            prior = 0.35 if keyword.arg in ("reverse", "key", "default") else 0.15
            yield code.swap(node, f"{code.text(node.func)}({', '.join(rest)})", "drop keyword", prior)
    if len(node.args) >= 2:
        rest = [code.text(a) for a in (*node.args[:-1], *node.keywords)]
        yield code.swap(node, f"{code.text(node.func)}({', '.join(rest)})", "drop argument", 0.2)


OPERATORS = (siblings, missing, needless, arguments, own)
