"""The records of benchmark formats."""

import pytest

from dgm.benchmarks.formats import FORMATS, all_formats, format_of
from dgm.config import BenchmarksSettings
from dgm.config.settings import PolyglotSettings


def test_a_format_is_registered_under_its_own_name():
    assert [each.name for each in all_formats()] == list(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_begins_with_the_name_of_its_format(name):
    found = format_of(name)
    assert all(form.startswith(f"{name}:") for form, _ in found.forms)
    assert found.example.startswith(f"{name}:")


def test_a_format_says_how_often_an_agent_tries_a_task():
    twice = BenchmarksSettings(polyglot=PolyglotSettings(attempts=2))
    assert [format_of(name).tries(twice) for name in ("swebench", "polyglot")] == [1, 2]
