"""What counts in a source's syntax key and what does not, and what hostile files do to it."""

import re
import threading

import pytest

from dgm.archive.snapshots import LINK, PROGRAM
from dgm.domain import Entry
from dgm.meta.similarity import syntax_key
from tests.unit.meta.making import MORE_STEPS, SEED, changed


def key(text, path="a.py"):
    return syntax_key({path: Entry(text.encode() if isinstance(text, str) else text)})


def test_a_key_names_its_version_and_depends_on_nothing_but_the_source():
    assert re.fullmatch(r"2:[0-9a-f]{64}", syntax_key(SEED))
    assert syntax_key(dict(reversed(SEED.items()))) == syntax_key(SEED)
    assert syntax_key(changed("agent/loop.py", "The control loop", "A loop")) == syntax_key(SEED)
    assert syntax_key(MORE_STEPS) != syntax_key(SEED)
    ignored_by_git = {".git/hooks/x.py": Entry(b"x"), "a/.GIT/y": Entry(b"y")}
    assert syntax_key({**SEED, **ignored_by_git}) == syntax_key(SEED)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "# why\nx  =  (1)  # what\n\n"),
        ("x = 'ab'", "x = ('a'\n  \"b\")"),
        ("x = 255", "x = 0xff"),
        ("a(); b()", "a()\nb()\n"),
        ("def f(): pass", 'def f():\n    """Doc."""'),
        ("def f(): return 1", 'def f():\n    "doc"\n    pass\n    "more"\n    return 1'),
        ("class A: pass", 'class A:\n    "doc"'),
        ("async def f(): pass", "async def f(): ..."),
        ("x = 1", '"""Module."""\nx = 1\r\n'),
        ("x = {1: 2, **a}", "x = { 1 : 2 , ** a , }"),
        (b"x = '\xc3\xa9'", b"# coding: latin-1\nx = '\xe9'"),
        ("\ufeffx = 1", "x = 1"),
        ("if a: b()\n" + "elif a: b()\n" * 60, "if a: b() # x\n" + "elif a: b()\n" * 60),
    ],
)
def test_what_only_looks_different_has_one_key(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = 1", "x = True"),
        ("x = 1", "x = '1'"),
        ("x = None", "x = 'None'"),
        ("x = 0.0", "x = -0.0"),
        ("x = '\\ud83d'", "x = '?'"),
        ("x = 1", "x: int"),
        ("a(b=c)", "a(**b)"),
        ("a + b - c", "a + (b - c)"),
        ("if a: b()\nc()", "if a:\n    b()\n    c()"),
        ("def f(a, *, b): pass", "def f(a, b): pass"),
        ("def f(): return", "def f(): return 0"),
        ("def f(): pass", "async def f(): pass"),
        ("class A:\n  x: int", "class A:\n  x: str"),
        ("from . import a", "from .. import a"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("x = 'doc'", "'doc'"),
        ("match a:\n  case None: b()", "match a:\n  case True: b()"),
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
        "getattr(f, '__doc__')",
        "import openai",
        "from openai.types import chat",
        "",
        "import json, os.path, agent.a\nfrom . import a\nfrom agent.a import f",
    ],
)
def test_docstrings_count_where_the_agent_may_read_them(reader):
    def with_reader(text):
        return syntax_key({"agent/a.py": Entry(text.encode()), "agent/b.py": Entry(reader.encode())})

    is_read = reader and not reader.startswith("import json")
    assert (with_reader("def f(): 'one'") != with_reader("def f(): 'two'")) == bool(is_read)
    assert with_reader("def f(): 'one'") == with_reader("# x\ndef f():\n\n    'one'")


def test_paths_modes_and_other_files_count():
    sources = (
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
    assert len({syntax_key(source) for source in sources}) == len(sources)


UNREADABLE = [
    b"def f(:\n",
    b"x = 1\0",
    b"\xff\xfe",
    b"# coding: nonsense\nx",
    b"(" * 5000,
    b"-" * 50_000 + b"1",
    b"x" + b".a" * 50_000,
    b"x = 1" + b" + 1" * 200,
    b"if a: b()\n" + b"elif a: b()\n" * 200,
    b"x = " + b"9" * 5000,
    b"x = 1\n" * 70_000,
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_as_python_counts_by_its_content(text):
    assert key(text) == key(text)
    assert key(text) != key(text + b" # more")


@pytest.mark.slow
def test_the_key_does_not_depend_on_how_deep_the_caller_stands():
    texts = [b"x = 1" + b" + 1" * n + b"# x" for n in range(85, 105)]
    keys = [key(text) for text in texts]
    plain = [key(text.replace(b"# x", b"")) for text in texts]
    assert {one == other for one, other in zip(keys, plain, strict=True)} == {True, False}

    def go_deeper(levels):
        return go_deeper(levels - 1) if levels else [key(text) for text in texts]

    results = []
    thread = threading.Thread(target=lambda: results.append(go_deeper(400)))
    thread.start()
    thread.join()
    assert results == [keys]


def test_of_the_file_of_lessons_the_lessons_count_and_not_their_evidence():
    one, other = "- x\n<!-- evidence: [1] -->\n", "- x\n<!-- evidence: [2] -->\n"
    assert (
        key(one, "memory/lessons.md") == key(other, "memory/lessons.md") != key("- y\n", "memory/lessons.md")
    )
    assert key(one, "lessons.md") != key(other, "lessons.md")
