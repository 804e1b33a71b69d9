"""Each kind of change proposes the repair that it is there for."""

import pytest

from dgm.offline.mutate import candidates, find_units
from dgm.offline.talk import FileView


def view(text):
    found = FileView("a.py")
    lines = text.rstrip("\n").split("\n")
    found.see(dict(enumerate(lines, 1)), len(lines))
    return found


def repaired(text):
    """Kind and text of all repairs of the last unit."""
    seen = view(text)
    units = find_units(seen)
    found = {}
    for one in candidates(units[-1], units):
        if one.change:
            rows = [*seen.base.values()]
            at = one.change.first - 1
            rows[at : at + len(one.change.old)] = one.change.new
            found.setdefault("\n".join(rows), one.kind)
    return found


@pytest.mark.parametrize(
    ("kind", "broken", "right"),
    [
        ("relation", "if a <= b:\n        return 1", "if a < b:\n        return 1"),
        ("connective", "return a and b", "return a or b"),
        ("truth to None", "return a or 5", "return (a if a is not None else 5)"),
        ("truth to None", "if not a:\n        return b", "if a is None:\n        return b"),
        ("negate", "if not a:\n        return b", "if a:\n        return b"),
        ("flag", "return sorted(a, reverse=True)", "return sorted(a, reverse=False)"),
        ("off by one", "return a[1:]", "return a[2:]"),
        ("off by one", "return range(a)", "return range(a + 1)"),
        ("off by one", "return a[0]", "return a[-1]"),
        ("arithmetic", "return a - b", "return a + b"),
        ("drop operand", "return a + 1", "return a"),
        ("sibling call", "return max(a, b)", "return min(a, b)"),
        ("missing list", "return a", "return list(a)"),
        ("missing strip", "c = a", "c = a.strip()"),
        ("other name", "c = a + 1\n    return a", "c = a + 1\n    return c"),
        ("exception KeyError", "raise ValueError(a)", "raise KeyError(a)"),
        (
            "exception TypeError",
            "try:\n        a()\n    except KeyError:\n        pass",
            "try:\n        a()\n    except (KeyError, TypeError):\n        pass",
        ),
        ("accumulate", "c = 0\n    c = a * 2", "c = 0\n    c += a * 2"),
        (
            "move",
            "for c in a:\n        b(c)\n        return c",
            "for c in a:\n        b(c)\n    return c",
        ),
        ("move", "for c in a:\n        b(c)\n    b(a)", "for c in a:\n        b(c)\n        b(a)"),
        ("delete", "b(a)\n    return a", "return a"),
    ],
)
def test_the_repair_is_among_the_candidates(kind, broken, right):
    found = repaired(f"def f(a, b):\n    {broken}\n")
    assert found.get(f"def f(a, b):\n    {right}") == kind


def test_a_change_keeps_all_other_text_and_counts_characters():
    found = repaired(
        "class C:\n    def f(self, a):\n        'd\u00e9j\u00e0'; return {'\u00fc': a} , a <= 1  # note\n"
    )
    assert (
        "class C:\n    def f(self, a):\n        'd\u00e9j\u00e0'; return {'\u00fc': a} , a < 1  # note"
        in found
    )


def test_a_half_seen_function_and_a_docstring_are_left_alone():
    seen = FileView("a.py")
    seen.see({1: "def f(a):", 2: "    return a", 3: "LIMIT = 4", 4: "def g(a):", 5: '    """1 <= a."""'}, 9)
    assert [(unit.name, unit.first, unit.last) for unit in find_units(seen)] == [("f", 1, 2), ("LIMIT", 3, 3)]
    assert not any(
        "0 <=" in text or "1 <" in text.replace("1 <=", "")
        for text in repaired('def g(a):\n    """1 <= a."""\n    return a\n')
    )


def test_the_likeliest_come_first_and_no_line_has_more_than_forty():
    units = find_units(
        view("def f(a, b, c, d, e):\n    return [a.x, b.y, c.z, d(a, b, c), e] < [a, b, c, d, e]\n")
    )
    found = candidates(units[-1], units)
    assert len(found) == 40
    assert [one.prior for one in found] == sorted((one.prior for one in found), reverse=True)
