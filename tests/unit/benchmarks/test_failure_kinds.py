"""Which names of exceptions agents may learn."""

import pytest

from dgm.benchmarks.logs import OWN_KIND, known_kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("AssertionError: 1 != 2", "AssertionError"),
        ("E   ValueError: secret", "ValueError"),
        ("builtins.KeyError", "KeyError"),
        ("selfassertEqualgrams2Error: x", OWN_KIND),
        ("scale.StolenError: x", OWN_KIND),
        ("E   assert 1 == 2", ""),
        ("open", ""),
        ("", ""),
    ],
)
def test_only_kinds_of_python_are_told(line, kind):
    assert known_kind(line) == kind
