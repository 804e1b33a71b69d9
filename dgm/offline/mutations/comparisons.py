"""Changes of conditions: relations, connectives, negation, tests for ``None``."""

import ast
import re
from collections.abc import Iterator

from dgm.offline.mutations.code import Change, Code

_RELATIONS: dict[type[ast.cmpop], tuple[tuple[str, float], ...]] = {
    ast.Lt: (("<=", 1.0), (">", 0.5), (">=", 0.3), ("!=", 0.15)),
    ast.LtE: (("<", 1.0), (">=", 0.5), (">", 0.3), ("==", 0.15)),
    ast.Gt: ((">=", 1.0), ("<", 0.5), ("<=", 0.3), ("!=", 0.15)),
    ast.GtE: ((">", 1.0), ("<=", 0.5), ("<", 0.3), ("==", 0.15)),
    ast.Eq: (("!=", 0.6), (">=", 0.35), ("<=", 0.35)),
    ast.NotEq: (("==", 0.6), (">", 0.3), ("<", 0.3)),
    ast.Is: (("is not", 0.4),),
    ast.IsNot: (("is", 0.4),),
    ast.In: (("not in", 0.4),),
    ast.NotIn: (("in", 0.4),),
}
_OPERATOR_TEXT = re.compile(r"not\s+in|is\s+not|[<>=!]=|<|>|\bis\b|\bin\b")


def relational(code: Code) -> Iterator[Change]:
    """Use another relation between the same two sides."""
    for node in code.nodes:
        if not isinstance(node, ast.Compare):
            continue
        left: ast.expr = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            gap_start, gap_end = code.end(left), code.start(right)
            gap = code.between(gap_start, gap_end)
            found = _OPERATOR_TEXT.search(gap)
            if found and "\n" not in gap:
                for text, prior in _RELATIONS[type(operator)]:
                    new = gap[: found.start()] + text + gap[found.end() :]
                    yield Change(gap_start, gap_end, new, "relation", prior)
            left = right


def connective(code: Code) -> Iterator[Change]:
    """Exchange ``and`` and ``or``, or leave one part of a condition out."""
    for node in code.nodes:
        if not isinstance(node, ast.BoolOp):
            continue
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for first, second in zip(node.values, node.values[1:], strict=False):
            start, end = code.end(first), code.start(second)
            gap = code.between(start, end)
            if re.search(rf"\b{word}\b", gap):
                new = re.sub(rf"\b{word}\b", other, gap, count=1)
                yield Change(start, end, new, "connective", 0.8)
        for index, part in enumerate(node.values):
            rest = [code.text(value) for value in node.values if value is not part]
            prior = 0.25 if index else 0.2
            yield code.swap(node, f" {word} ".join(rest), "drop condition", prior)


def negation(code: Code) -> Iterator[Change]:
    """Negate a condition, drop a ``not``, or swap the branches of a conditional expression."""
    for node in code.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield code.swap(node, code.text(node.operand), "drop not", 0.5)
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare):
            test = code.text(node.test)
            wrapped = f"({test})" if isinstance(node.test, ast.BoolOp | ast.IfExp) else test
            yield code.swap(node.test, f"not {wrapped}", "add not", 0.35)
        if isinstance(node, ast.IfExp):
            swapped = f"{code.text(node.orelse)} if {code.text(node.test)} else {code.text(node.body)}"
            yield code.swap(node, swapped, "swap branches", 0.3)


def noneness(code: Code) -> Iterator[Change]:
    """Exchange tests for truth and for ``None`` (0 and "" are not missing), or keep one branch of a choice."""
    for node in code.nodes:
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            for part in node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]:
                yield from _truth(code, part)
        if isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from _truth(code, test)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
            first, second = (code.text(value) for value in node.values)
            if isinstance(node.values[0], ast.Name | ast.Attribute | ast.Subscript | ast.Call):
                new = f"{first} if {first} is not None else {second}"
                yield code.swap(node, _inside(code, node, new), "or to is not None", 0.9)
        if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Name | ast.Attribute | ast.Compare):
            yield code.swap(node, _inside(code, node, code.text(node.body)), "drop choice", 0.2)
            yield code.swap(node, _inside(code, node, code.text(node.orelse)), "drop choice", 0.15)


def _inside(code: Code, node: ast.AST, text: str) -> str:
    """Put the text in brackets if the node is part of a larger expression."""
    parent = code.parents.get(node)
    alone = isinstance(parent, ast.Assign | ast.Return | ast.Call | ast.keyword | ast.AnnAssign | ast.IfExp)
    return text if alone else f"({text})"


def _truth(code: Code, test: ast.expr) -> Iterator[Change]:
    inner, negative = test, False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner, negative = test.operand, True
    if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript):
        words = "is None" if negative else "is not None"
        yield code.swap(test, f"{code.text(inner)} {words}", "truth to is None", 0.9)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is | ast.IsNot):
        value = test.comparators[0]
        if isinstance(value, ast.Constant) and value.value is None:
            sign = "not " if isinstance(test.ops[0], ast.Is) else ""
            yield code.swap(test, sign + code.text(test.left), "is None to truth", 0.6)


def add_condition(code: Code) -> Iterator[Change]:
    """Add a parameter of the same function to a condition."""
    tests = [node.test for node in code.nodes if isinstance(node, ast.If | ast.While)]
    for test in tests:
        whole = code.text(test)
        bracketed = f"({whole})" if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else whole
        for name in code.parameters:
            if name not in ("self", "cls") and not re.search(rf"\b{name}\b", whole):
                yield code.swap(test, f"{bracketed} and {name}", "add condition", 0.12)
                yield code.swap(test, f"{bracketed} and not {name}", "add condition", 0.12)


OPERATORS = (relational, connective, negation, noneness, add_condition)
