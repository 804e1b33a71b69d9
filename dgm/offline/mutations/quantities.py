"""Changes of numbers and sums: off by one, other arithmetic, other constants, slices, clamps."""

import ast
from collections.abc import Iterator

from dgm.offline.mutations.code import Change, Code

_SUMS: dict[type[ast.operator], tuple[tuple[str, float], ...]] = {
    ast.Add: (("-", 0.6),),
    ast.Sub: (("+", 0.6),),
    ast.Mult: (("/", 0.3), ("//", 0.4), ("+", 0.2), ("**", 0.1)),
    ast.Div: (("//", 0.5), ("*", 0.4)),
    ast.FloorDiv: (("/", 0.5), ("%", 0.3), ("*", 0.3)),
    ast.Mod: (("//", 0.4),),
    ast.BitOr: (("&", 0.5),),
    ast.BitAnd: (("|", 0.5),),
    ast.Pow: (("*", 0.3),),
}
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitOr: "|", ast.BitAnd: "&", ast.Pow: "**",
}  # fmt: skip
_NUMBERISH = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)


def arithmetic(code: Code) -> Iterator[Change]:
    """Use another operator, swap the operands, or leave one of them out."""
    for node in code.nodes:
        if not isinstance(node, ast.BinOp) or type(node.op) not in _SIGNS:
            continue
        start, end = code.end(node.left), code.start(node.right)
        gap = code.between(start, end)
        sign = _SIGNS[type(node.op)]
        if _is_text(node.left) or _is_text(node.right):
            continue
        for text, prior in _SUMS[type(node.op)]:
            yield Change(start, end, gap.replace(sign, text, 1), "arithmetic", prior)
        left, right = code.text(node.left), code.text(node.right)
        if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod):
            yield code.swap(node, f"{right}{gap}{left}", "swap operands", 0.3)
        small = isinstance(node.right, ast.Constant)
        yield code.swap(node, left, "drop operand", 0.6 if small else 0.2)
        yield code.swap(node, right, "drop operand", 0.15)


def off_by_one(code: Code) -> Iterator[Change]:
    """Add or subtract one where things are counted: indices, ranges, bounds, sizes."""
    for node in code.nodes:
        for place, prior in _find_quantities(node):
            if isinstance(place, ast.Constant) and isinstance(place.value, int) and place.value is not True:
                continue
            if isinstance(place, _NUMBERISH):
                text = code.text(place)
                yield code.swap(place, f"{text} + 1", "off by one", prior)
                yield code.swap(place, f"{text} - 1", "off by one", prior)


def _find_quantities(node: ast.AST) -> Iterator[tuple[ast.expr, float]]:
    match node:
        case ast.Call(func=ast.Name(id="range"), args=args):
            yield from ((arg, 0.9) for arg in args)
        case ast.Slice(lower=lower, upper=upper):
            yield from ((bound, 0.8) for bound in (lower, upper) if bound is not None)
        case ast.Subscript(slice=index) if not isinstance(index, ast.Slice | ast.Tuple | ast.Constant):
            yield index, 0.3
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            if any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops):
                yield from ((side, 0.35) for side in (left, *comparators))
        case ast.Return(value=value) | ast.Assign(value=value) | ast.AugAssign(value=value):
            if isinstance(value, ast.BinOp | ast.Call):
                yield value, 0.25
            elif isinstance(value, ast.Name | ast.Attribute):
                yield value, 0.2
        case ast.Call(args=args):
            yield from ((arg, 0.2) for arg in args if isinstance(arg, ast.BinOp))
        case ast.Tuple(elts=elements):
            yield from ((item, 0.2) for item in elements if isinstance(item, ast.BinOp | ast.Name))
        case _:
            return


def constants(code: Code) -> Iterator[Change]:
    """Use another number, flag or text, such as a text that the unit already contains."""
    texts = sorted({n.value for n in code.nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)})
    for node in code.nodes:
        if not isinstance(node, ast.Constant):
            continue
        value = node.value
        if isinstance(value, bool):
            yield code.swap(node, str(not value), "flag", 0.7)
        elif value is None:
            for text, prior in (("0", 0.15), ('""', 0.1), ("[]", 0.1), ("False", 0.1), ("True", 0.1)):
                yield code.swap(node, text, "constant", prior)
        elif isinstance(value, int):
            yield from _integers(code, node, value)
        elif isinstance(value, float):
            yield code.swap(node, repr(value * 10), "constant", 0.1)
            yield code.swap(node, repr(value / 10), "constant", 0.1)
        elif isinstance(value, str):
            yield from _texts(code, node, value, texts)


def _integers(code: Code, node: ast.Constant, value: int) -> Iterator[Change]:
    small = abs(value) <= 2
    for other in (value + 1, value - 1):
        yield code.swap(node, str(other), "constant by one", 0.7 if small else 0.45)
    for other, prior in (
        (0, 0.3),
        (1, 0.3),
        (-value, 0.2),
        (value * 10, 0.1),
        (value // 10, 0.1),
        (60, 0.03),
    ):
        if other not in (value, value + 1, value - 1):
            yield code.swap(node, str(other), "constant", prior)
    parent = code.parents.get(node)
    if value == 0 and isinstance(parent, ast.Assign | ast.arguments | ast.Return):
        yield code.swap(node, "None", "constant", 0.2)


def _texts(code: Code, node: ast.Constant, value: str, texts: list[str]) -> Iterator[Change]:
    source = code.text(node)
    if not source or source[0] not in "\"'" or "\n" in source:
        return
    quote = source[0]
    known = {
        "": " ",
        " ": "",
        ",": ", ",
        "\n": "",
        "ascii": "utf-8",
        "utf-8": "utf-8-sig",
        "latin-1": "utf-8",
        "r": "rb",
        "w": "a",
    }
    if value in known:
        yield code.swap(node, repr(known[value]), "text", 0.35)
    if value in ("strict", "ignore", "replace"):
        for other in ("strict", "ignore", "replace", "surrogateescape"):
            yield code.swap(node, quote + other + quote, "text", 0.3)
    if len(value) > 1 and value.strip() != value:
        yield code.swap(node, quote + value.strip() + quote, "text", 0.2)
    for other in texts:
        if (
            other != value
            and len(other) <= 40
            and "\n" not in other
            and "\\" not in other
            and '"' not in other
        ):
            yield code.swap(node, f'"{other}"', "text", 0.12)


def slices(code: Code) -> Iterator[Change]:
    """Change a bound of a slice, or take the last item for the first."""
    for node in code.nodes:
        if not isinstance(node, ast.Subscript):
            continue
        target = code.text(node.value)
        if isinstance(node.slice, ast.Slice):
            lower, upper, step = (
                code.text(part) if part is not None else ""
                for part in (node.slice.lower, node.slice.upper, node.slice.step)
            )
            tail = f":{step}" if step else ""
            options = [(f"{lower}:", 0.4), (f":{upper}", 0.4), (f"{lower}:-1", 0.15), (f"1:{upper}", 0.2)]
            if not step:
                options.append((f"{lower}:{upper}:-1", 0.15))
            for text, prior in options:
                if text != f"{lower}:{upper}":
                    yield code.swap(node, f"{target}[{text}{tail}]", "slice", prior)
        elif isinstance(node.slice, ast.Constant) and node.slice.value == 0:
            yield code.swap(node, f"{target}[-1]", "last for first", 0.45)
        elif code.text(node.slice) == "-1":
            yield code.swap(node, f"{target}[0]", "last for first", 0.45)


def clamps(code: Code) -> Iterator[Change]:
    """Keep a value within a bound."""
    for node in code.nodes:
        place = node.value if isinstance(node, ast.Return | ast.Assign) else None
        if isinstance(place, ast.BinOp) and not _is_text(place.left):
            text = code.text(place)
            yield code.swap(place, f"max(0, {text})", "clamp", 0.4)
            for name in code.parameters:
                if name not in ("self", "cls"):
                    yield code.swap(place, f"min({text}, {name})", "clamp", 0.15)
                    yield code.swap(place, f"max({text}, {name})", "clamp", 0.1)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


OPERATORS = (arithmetic, off_by_one, constants, slices, clamps)
