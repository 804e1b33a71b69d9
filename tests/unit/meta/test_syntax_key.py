"""What counts in a source's syntax key and what does not, and what hostile files do to it."""

import ast
import re
import threading

import pytest

from dgm.archive.snapshots import LINK, PROGRAM
from dgm.domain import Entry, Snapshot
from dgm.meta.seeds import read_seed
from dgm.meta.syntax_key import MAX_BYTES, MAX_DEPTH, digest, parse_source, syntax_key

SEED = read_seed()


def key(text: str | bytes, path: str = "a.py") -> str:
    return syntax_key({path: Entry(text.encode() if isinstance(text, str) else text)})


def test_a_key_names_its_version_and_depends_on_nothing_but_the_source():
    assert re.fullmatch(r"1:[0-9a-f]{64}", syntax_key(SEED))
    assert syntax_key(dict(reversed(SEED.items()))) == syntax_key(SEED)


def test_the_normal_form_is_kept_between_versions():
    """A key is durable: whoever changes the normal form on purpose gives it another version."""
    text = (
        "def f(a: int, *b, c=1, **d) -> int:\n  'doc'\n  x: int = -1.5j\n"
        "  return f'{a!r:>{c}}' if b'' else (..., None, True)\n"
    )
    assert key(text) == "1:7c956e7840cf6338ed4f22d64f07fe03ff436d74d38ca47b9b926ce38f2babf3"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "# why\nx  =  (1)  # what\n\n"),
        ("x = 'a'", 'x = "a"'),
        ("x = u'ab'", "x = ('a'\n  'b')"),
        ("x = 255", "x = 0xff"),
        ("x = 1_000", "x = 1000"),
        ("if a: b()", "if a:\n\tb()"),
        ("a(); b()", "a()\nb()\n"),
        ("def f(): pass", 'def f():\n    """Doc."""'),
        ("def f(): return 1", 'def f():\n    "doc"\n    pass\n    "more"\n    return 1'),
        ("class A: pass", 'class A:\n    "doc"'),
        ("async def f(): pass", "async def f(): ..."),
        ("x = 1", '"""Module."""\nx = 1'),
        ("def f(a, *b, c=1): return a", "def f(a: int, *b: str, c: 'x' = 1) -> int: return a"),
        ("x = 1", "x: int = 1"),
        ("self.x = 1", "self.x: list[int] = 1"),
        ("for a in b: c()", "for a in b: c()\nelse: pass"),
        ("x = {1: 2, **a}", "x = { 1 : 2 , ** a , }"),
        ("x = 1", "x = 1\r\n"),
        (b"x = '\xc3\xa9'", b"# coding: latin-1\nx = '\xe9'"),
        ("\ufeffx = 1", "x = 1"),
    ],
)
def test_what_only_looks_different_has_one_key(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 1", "x = '1'"),
        ("x = 'a'", "x = b'a'"),
        ("x = None", "x = 'None'"),
        ("x = ...", "x = 'Ellipsis'"),
        ("x = 0.0", "x = -0.0"),
        ("x = 'a'", "x = 'a '"),
        ("x = '\\ud83d'", "x = '?'"),
        ("x = '\\ud83d'", "x = '\\\\ud83d'"),
        ("x = 1", "y = 1"),
        ("x = 1", "x: int"),
        ("a(b)", "a(b, c)"),
        ("a(b=c)", "a(**b)"),
        ("a(*b)", "a(b)"),
        ("f(a)(b)", "f(a, b)"),
        ("a + b - c", "a + (b - c)"),
        ("x = [a, [b]]", "x = [[a], b]"),
        ("x = [a, b]", "x = (a, b)"),
        ("if a: b()\nc()", "if a:\n    b()\n    c()"),
        ("if a: b()\nelse: c()", "if a: c()\nelse: b()"),
        ("def f(a, /, b): pass", "def f(a, b): pass"),
        ("def f(a, *, b): pass", "def f(a, b): pass"),
        ("def f(*, a=None, b): pass", "def f(*, a, b=None): pass"),
        ("def f(): return", "def f(): return 0"),
        ("def f(): pass", "async def f(): pass"),
        ("@a\ndef f(): pass", "def f(): pass"),
        ("class A(B): pass", "class A: pass"),
        ("class A:\n  x: int = 1", "class A:\n  x = 1"),
        ("class A:\n  x: int", "class A:\n  x: str"),
        ("class A:\n  if B:\n    x: int", "class A:\n  if B:\n    x: str"),
        ("import a", "import b"),
        ("from . import a", "from .. import a"),
        ("from a import b", "from a import b as c"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("x = f'{a}'", "x = '{a}'"),
        ("x = {**a, 1: 2}", "x = {1: 2, **a}"),
        ("try: a()\nexcept B: pass", "try: a()\nexcept C: pass"),
        ("try: a()\nexcept B: pass", "try: a()\nfinally: b()"),
        ("a()\nb()", "b()\na()"),
        ("del a", "del b"),
        ("x = a[1:2]", "x = a[1:2:3]"),
        ("x = 'doc'", "'doc'"),
        ("match a:\n  case None: b()", "match a:\n  case True: b()"),
        ("lambda a: b", "lambda b: b"),
        ("global a", "nonlocal_a"),
    ],
)
def test_what_does_something_else_has_another_key(one, other):
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "reader",
    [
        "print(f.__doc__)",
        "import inspect",
        "from inspect import getdoc as g",
        "import typing\ntyping.get_type_hints(f)",
        "getattr(f, '__doc__')",
        "from functools import singledispatch",
        "import openai",
        "from openai.types import chat",
    ],
)
def test_docstrings_and_annotations_count_where_the_agent_may_read_them(reader):
    def with_reader(text: str) -> str:
        return syntax_key({"agent/a.py": Entry(text.encode()), "agent/b.py": Entry(reader.encode())})

    assert with_reader("def f(): 'one'") != with_reader("def f(): 'two'")
    assert with_reader("def f(a: int): pass") != with_reader("def f(a: str): pass")
    assert with_reader("def f(): 'one'") == with_reader("# x\ndef f():\n\n    'one'\n    pass")
    assert key("def f(): 'one'") == key("def f(): 'two'")


def test_the_agents_own_modules_and_pythons_are_no_such_readers():
    def with_doc(doc: str) -> str:
        text = f"'''{doc}'''\nimport json, os.path, agent.b, mine\nfrom . import x\n"
        return syntax_key({"agent/a.py": Entry(text.encode()), "lib/mine.py": Entry(b"")})

    assert with_doc("one") == with_doc("two")


def test_paths_modes_and_other_files_count():
    keys = [
        syntax_key(source)
        for source in (
            {"a.py": Entry(b"x")},
            {"b.py": Entry(b"x")},
            {"a.py": Entry(b"x", PROGRAM)},
            {"a.py": Entry(b"x", LINK)},
            {"a.py": Entry(b"x # why", LINK)},
            {"a.md": Entry(b"x")},
            {"a.md": Entry(b"x # why")},
            {"not utf-8 \udcff": Entry(b"x")},
            {"a.py": Entry(b"x"), "b.py": Entry(b"x")},
            {},
        )
    ]
    assert len(set(keys)) == len(keys)


def test_what_git_cannot_hold_does_not_count():
    assert syntax_key({**SEED, ".git/hooks/x.py": Entry(b"x"), "a/.GIT/y": Entry(b"y")}) == syntax_key(SEED)


@pytest.mark.parametrize(
    "text",
    [
        b"def f(:\n",
        b"x = 1\0",
        b"\xff\xfe",
        b"# coding: rot13\nx",
        b"# coding: nonsense\nx",
        b"(" * 5000,
        b"-" * 50_000 + b"1",
        b"x" + b".a" * 50_000,
        b"x = 1" + b" + 1" * 50_000,
        b"x = 1" + b" + 1" * (MAX_DEPTH + 10),
        b"if a: b()\n" + b"elif a: b()\n" * (MAX_DEPTH + 10),
        b"x = " + b"9" * 5000,
        b"x = 1\n" * (MAX_BYTES // 6 + 1),
    ],
)
def test_what_cannot_be_read_as_python_counts_by_its_content(text):
    assert parse_source("a.py", Entry(text)) is None
    assert key(text) == key(text)
    assert key(text) != key(text + b" # more")


def test_deep_but_ordinary_syntax_and_long_numbers_are_read():
    chain = "if a: b()\n" + "elif a: b()\n" * 300
    assert key(chain) == key(chain.replace("b()", "b() # x"))
    assert key("x = 0x" + "f" * 10_000) == key("x = 0x" + "F" * 10_000)


@pytest.mark.slow
def test_the_key_does_not_depend_on_how_deep_the_caller_stands():
    texts = [b"x = 1" + b" + 1" * n for n in range(MAX_DEPTH - 12, MAX_DEPTH + 3)]
    plain = [key(text) for text in texts]
    assert {parse_source("a.py", Entry(text)) is None for text in texts} == {True, False}

    def deeper(levels: int) -> list[str]:
        return deeper(levels - 1) if levels else [key(text) for text in texts]

    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(deeper(400)))
    thread.start()
    thread.join()
    assert found == [plain]


def test_a_digest_of_one_definition_keeps_or_drops_its_words():
    one, other = (
        ast.parse(f"def f(a: {a}):\n    '{doc}'\n").body[0] for a, doc in (("int", "x"), ("str", "y"))
    )
    assert digest(one, words=False) == digest(other, words=False)
    assert digest(one, words=True) != digest(other, words=True)


def test_a_docstring_of_the_seed_does_not_count_and_a_step_more_does():
    def seed_with(old: bytes, new: bytes) -> Snapshot:
        assert SEED["agent/loop.py"].data.count(old) == 1
        return {**SEED, "agent/loop.py": Entry(SEED["agent/loop.py"].data.replace(old, new))}

    assert syntax_key(seed_with(b"The control loop", b"A loop")) == syntax_key(SEED)
    assert syntax_key(seed_with(b"MAX_STEPS = 10", b"MAX_STEPS = 11")) != syntax_key(SEED)
