"""Laws of the syntax key: any real change of the seed changes it, and nothing that only looks like one does."""

import ast
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import Entry
from dgm.meta.seeds import read_seed
from dgm.meta.similarity import syntax_key

SEED = read_seed()
KEY = syntax_key(SEED)
FILES = sorted(path for path in SEED if path.endswith(".py"))
OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.Add: ast.Sub,
    ast.Mod: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def key_with(path: str, text: str) -> str:
    return syntax_key({**SEED, path: Entry(text.encode())})


def is_idle(node: object) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def change(tree: ast.Module, choose: random.Random) -> bool:
    """Makes one real change in place; says whether it found one to make."""
    node = choose.choice(list(ast.walk(tree)))
    if isinstance(node, ast.Constant):
        idle = any(
            is_idle(item) and item.value is node for item in ast.walk(tree) if isinstance(item, ast.Expr)
        )
        return change_constant(node) and not idle
    return rename(node) or rearrange(node, choose)


def change_constant(node: ast.Constant) -> bool:
    match node.value:
        case bool(value):
            node.value = not value
        case int(value) | float(value):
            node.value = value + 1
        case str(value) | bytes(value):
            node.value = value + value if value else None
        case _:
            return False
    return True


def rename(node: ast.AST) -> bool:
    for field in ("id", "attr", "arg", "name"):
        if isinstance(getattr(node, field, None), str):
            setattr(node, field, getattr(node, field) + "_")
            return True
    return False


def rearrange(node: ast.AST, choose: random.Random) -> bool:
    match node:
        case ast.If() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Compare(ops=[op]) if type(op) in OPPOSITE:
            node.ops = [OPPOSITE[type(op)]()]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OPPOSITE:
            node.op = OPPOSITE[type(op)]()
        case ast.Call(args=[first, *rest]):
            node.args = choose.choice([rest, [first, first, *rest]])
        case ast.Module(body=body) | ast.For(body=body) if not all(map(is_idle, body)):
            del body[choose.choice([n for n, item in enumerate(body) if not is_idle(item)])]
        case ast.Dict(keys=[_, *_]):
            del node.keys[0], node.values[0]
        case _:
            return False
    return True


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 2**32))
def test_any_real_change_of_the_seed_changes_its_key(path, seed):
    tree = ast.parse(SEED[path].data)
    if change(tree, random.Random(seed)):
        assert key_with(path, ast.unparse(ast.fix_missing_locations(tree))) != KEY


class Redressed(ast.NodeTransformer):
    """Adds and removes what does nothing."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if is_idle(node.body[0]) and len(node.body) > 1 and self.choose.random() < 0.5:
            del node.body[0]
        if self.choose.random() < 0.5:
            node.body.insert(0, ast.Expr(ast.Constant(f"Says {self.choose.random()}.")))
        if self.choose.random() < 0.3:
            node.body.append(ast.Pass())
        return node


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 2**32))
def test_comments_layout_and_docstrings_do_not_change_it(path, seed):
    choose = random.Random(seed)
    tree = Redressed(choose).visit(ast.parse(SEED[path].data))
    lines = ast.unparse(ast.fix_missing_locations(tree)).split("\n")
    # A text of several lines is written by ``unparse`` in one, so that comments and empty lines fit between any two.
    several = ast.parse("\n".join(lines))
    inside = {
        line
        for node in ast.walk(several)
        if isinstance(node, ast.Constant) and node.end_lineno != node.lineno
        for line in range(node.lineno, node.end_lineno or 0)
    }
    dressed = []
    for number, line in enumerate(lines, 1):
        dressed.append(line)
        if number not in inside and choose.random() < 0.3:
            dressed.append(choose.choice(["", "# why", "\t# and what", "   "]))
    assert key_with(path, "\n".join(dressed)) == KEY
