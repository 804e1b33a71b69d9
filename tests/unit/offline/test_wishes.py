"""What the offline editor takes from the words of an ``improve`` job."""

import pytest

from dgm.offline import wishes
from dgm.offline.catalogue import CATALOGUE
from dgm.offline.editor import rank_kinds
from dgm.offline.wishes import EditRequest, changed_definitions, fit, parse_edit_request, select_kinds
from tests.unit.offline.test_editor import PROBLEM, seed

PYTHON = {path: text for path, text in seed().items() if path.endswith(".py")}
PLAIN = PROBLEM.format(number=1)


def test_an_ordinary_problem_wishes_nothing():
    assert parse_edit_request(PLAIN) == EditRequest()


def test_each_wish_is_found_where_it_stands():
    problem = f"""{PLAIN}
Proposal: Show more
of a long output.

Change only the part `tools`.

May change:
- `agent/tools.py::truncate`
- `agent/notes.md`

These places are open:
- `agent/loop.py`: both changed the same lines, in 2 places between lines `<<<<<<< first parent` and `>`; none
- `agent/x.bin`: both changed it and it is no text; the first one's stands
"""
    assert parse_edit_request(problem) == EditRequest(
        proposed="Show more of a long output.",
        allowed=frozenset({"agent/tools.py::truncate", "agent/notes.md"}),
        open=("agent/loop.py",),
    )
    assert parse_edit_request("No lines are in conflict, but the merged agent's check exits 1").broken


@pytest.mark.parametrize(
    "name", ["head-and-tail", "more-steps", "reproduce", "several-calls", "retry-with-reset"]
)
def test_what_was_proposed_comes_first(name):
    kind = next(kind for kind in CATALOGUE if kind.name == name)
    applicable = [kind for kind in CATALOGUE if kind.transform(PYTHON)]
    first = rank_kinds(f"{PLAIN}\nProposal: {kind.rationale} It helps on all problems.\n", PYTHON)[0]
    assert first.rationale == kind.rationale if kind in applicable else first in applicable


def test_a_proposal_that_nobody_knows_leaves_the_order():
    assert rank_kinds(f"{PLAIN}\nProposal: Zebras.\n", PYTHON) != []
    kinds = [kind for kind in CATALOGUE if kind.transform(PYTHON)]
    assert select_kinds(kinds, EditRequest(proposed="Zebras graze quietly."), PYTHON) == kinds
    assert fit("Show more of a long output.", "Zebras graze quietly.") == 0.0
    assert fit("the and", "the and") == 0.0


def test_only_what_may_be_changed_is_changed():
    kinds = select_kinds(
        list(CATALOGUE), EditRequest(allowed=frozenset({"agent/loop.py::MAX_STEPS"})), PYTHON
    )
    assert [kind.name for kind in kinds if kind.transform(PYTHON)] == ["more-steps", "fewer-steps"]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("N = 1\n", "N = 2\n", {"a.py::N"}),
        ("N = 1\n", "# said\nN = 1\n", set()),
        ("N = 1\n", "import os\nN = 1\n\ndef f():\n    pass\n", set()),
        ("N = 1\n", "N = 1\nprint(N)\n", {"a.py::(statements)"}),
        ("def f():\n    pass\n", "def f(a):\n    pass\n", {"a.py::f"}),
        ("class A:\n  x = 1\n  def f(s):\n    pass\n", "class A:\n  x = 1\n  def f(s):\n    return\n", {"a.py::A.f"}),
        ("class A:\n    x = 1\n", "class A:\n    x = 2\n", {"a.py::A"}),
        ("def f():\n    pass\n", "def f(:\n", {"a.py::f"}),
        ("def f(:\n", "def f():\n    pass\n", {"a.py"}),
        ("a, b = 1, 2\n", "a, b = 1, 3\n", {"a.py::(statements)"}),
        ("N: int = 1\n", "N: int = 2\n", {"a.py::N"}),
    ],
)  # fmt: skip
def test_definitions_that_were_changed_are_named(old, new, found):
    assert changed_definitions({"a.py": old}, {"a.py": new}) == found
    assert changed_definitions({"a.py": old}, {"b.py": new}) == set()


def test_statements_at_the_top_are_called_as_the_host_calls_them():
    from dgm.meta.parts import TOP

    assert wishes.TOP == TOP
