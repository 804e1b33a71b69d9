"""Edits that make faults: of small sources one by one, of the standard library by law."""

import ast
import heapq
import shlex
import textwrap
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.benchmarks.mining.mutations import Site, SiteKind, apply_sites, find_sites

CASES = [
    (SiteKind.COMPARISON, "return a < b", ["return a <= b"]),
    (SiteKind.COMPARISON, "return a is  not\\\n  b", ["return a is\\\n  b"]),
    (SiteKind.COMPARISON, "return (a) not in (b)", ["return (a) in (b)"]),
    (SiteKind.COMPARISON, "return 0 <= a == b", ["return 0 < a == b", "return 0 <= a != b"]),
    (SiteKind.NEGATION, "return not(a)", ["return (a)"]),
    (SiteKind.NEGATION, "if a.b:  # why\n    c()", ["if not a.b:  # why\n    c()"]),
    (SiteKind.NEGATION, "return a if b else c", ["return a if not b else c"]),
    (SiteKind.CONNECTIVE, "return a and(b) and c", ["return a or(b) and c", "return a and(b) or c"]),
    (SiteKind.CONDITION_DROPPED, "return a or b", ["return b", "return a"]),
    (SiteKind.CONDITION_DROPPED, "return (a) or b", []),
    (SiteKind.FLAG, "return True", ["return False"]),
    (SiteKind.FLAG, "f(a, b=False)", ["f(a, b=True)"]),
    (
        SiteKind.SIBLING_CALL,
        "return max(a, b.find(c))",
        ["return min(a, b.find(c))", "return max(a, b.rfind(c))"],
    ),
    (SiteKind.KEYWORD_DROPPED, "f(a, b=(c), **d)", ["f(a, **d)"]),
    (SiteKind.KEYWORD_DROPPED, "f(a,  # why\n  b=c)", []),
    (SiteKind.SWAPPED_ARGUMENTS, "f(a,  b, c)", ["f(b,  a, c)"]),
    (SiteKind.SWAPPED_ARGUMENTS, "f(a, a); isinstance(a, b); f(*a, b)", []),
    (SiteKind.ARITHMETIC, "a += 2", ["a -= 2"]),
    (SiteKind.ARITHMETIC, "return a - b", ["return a + b"]),
    (SiteKind.ARITHMETIC, 'return a + "x" + b', []),
    (SiteKind.OFF_BY_ONE, "return a[1:][0]", ["return a[2:][0]", "return a[1:][1]"]),
    (SiteKind.OFF_BY_ONE, "return len(a) - 1", ["return len(a)"]),
    (SiteKind.OFF_BY_ONE, "return a > 0x10", []),
    (SiteKind.GUARD_REMOVED, "if a:\n    b()\nreturn c", ["return c"]),
    (SiteKind.GUARD_REMOVED, "if a:\n    b()\nelif c:\n    d()\nreturn e", ["if a:\n    b()\nreturn e"]),
    (SiteKind.GUARD_REMOVED, "if a:\n    b()\nelse:\n    c()\nreturn e", []),
    (SiteKind.GUARD_REMOVED, "# Empty is fine.\nif a:\n    b()\nreturn c", []),
    (SiteKind.STATEMENT_REMOVED, "a.b = 1  # why\nc = 2", ["c = 2"]),
    (SiteKind.STATEMENT_REMOVED, "a(); b()", []),
    (
        SiteKind.STATEMENT_REMOVED,
        "while a:\n    b += 1\n    if c:\n        d = 1\n        break\n    e = 2",
        [],
    ),
]
NONE = '''
import a
if a and not a.b: c(1, 2)
@d(1, 2)
def f(g: "h[0]" = max(1, 2), *, i=True) -> j[1]:
    """Not a < b."""
    assert a < b, c(1, 2)
    k: l[0]
    raise E(f"{a < b}", 1, 2)
class M:
    n = not o
'''


def changed(kind, body):
    """The bodies of a function that the sites of a kind make of it."""
    source = "def f():\n" + textwrap.indent(body, "    ") + "\n"
    sites = [site for site in find_sites("m.py", source) if site.kind is kind]
    return [textwrap.dedent(apply_sites(source, [site]).removeprefix("def f():\n"))[:-1] for site in sites]


@pytest.mark.parametrize(("kind", "body", "expected"), CASES)
def test_a_kind_makes_its_fault(kind, body, expected):
    assert changed(kind, body) == expected


def test_every_kind_has_a_case():
    assert {kind for kind, _, expected in CASES if expected} == set(SiteKind)


def test_only_code_that_functions_run_has_sites():
    assert find_sites("m.py", NONE) == ()


def test_offsets_count_characters_and_line_ends_as_they_are():
    source = '\ufeffx = "ä"\r\ndef f(ö):\r\n    é = "ü" < ö; return not é\r\n'
    sites = {site.kind: site for site in find_sites("m.py", source)}
    assert apply_sites(source, [sites[SiteKind.COMPARISON]]) == source.replace("<", "<=")
    assert apply_sites(source, list(sites.values())) == source.replace("<", "<=").replace("not ", "")


def test_a_site_names_its_function_and_line():
    source = "class A:\n    def b(self):\n        def c():\n            return 1 < 2\n        return c\n"
    assert {(site.scope, site.line) for site in find_sites("m.py", source)} == {("A.b.c", 4), ("A.b", 5)}


@pytest.mark.parametrize("source", ["def f(:\n", "def f():\n  return '\0'\n", "x = '\ud800'\n"])
def test_what_is_no_python_is_refused_with_its_file(source):
    with pytest.raises(ValueError, match=r"^m\.py: no Python source: "):
        find_sites("m.py", source)


def test_edits_that_overlap_or_break_the_source_are_refused():
    wide = Site("m.py", SiteKind.FLAG, 1, 0, 5, "a", "")
    narrow = Site("m.py", SiteKind.FLAG, 1, 4, 6, "(", "")
    with pytest.raises(ValueError, match="overlaps another edit"):
        apply_sites("x = 1234", [narrow, wide])
    with pytest.raises(ValueError, match="outside of the text"):
        apply_sites("x", [wide])
    with pytest.raises(ValueError, match=r"m\.py:1: the result is no Python"):
        apply_sites("x = 12", [narrow])


@cache
def library(module):
    source = Path(module.__file__).read_text(encoding="utf-8")
    return source, find_sites(module.__name__, source), ast.dump(ast.parse(source))


@settings(max_examples=25, deadline=None)
@given(data=st.data(), module=st.sampled_from([heapq, shlex, textwrap]))
def test_one_edit_of_the_standard_library_parses_differs_and_leaves_the_rest(data, module):
    source, sites, tree = library(module)
    site = data.draw(st.sampled_from(sites))
    mutant = apply_sites(source, [site])
    assert ast.dump(ast.parse(mutant)) != tree
    assert mutant == source[: site.start] + site.replacement + source[site.end :]
    assert source[: site.start].count("\n") + 1 >= site.line


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_edits_of_different_functions_are_independent(data):
    source, sites, _ = library(shlex)
    one = data.draw(st.sampled_from(sites))
    two = data.draw(st.sampled_from([site for site in sites if site.scope != one.scope]))
    assert apply_sites(source, [one, two]) == apply_sites(source, [two, one])
