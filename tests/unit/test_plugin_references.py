"""References to objects of a program: objects with different values have different ones, and values are not guessed."""

import dataclasses
import enum
import logging
from dataclasses import dataclass

import pytest

from dgm import plugins
from dgm.errors import UserError


class Paced:
    """An object with a number, as in a study of that number."""

    def __init__(self, number=1, **more):
        self.number = number
        self.__dict__.update(more)


@dataclass(frozen=True, slots=True)
class Frozen:
    """An object whose attributes are slots."""

    number: int = 1
    words: list[str] = dataclasses.field(default_factory=list)


class Proxy:
    """An object that seems to have any method."""

    number = 1

    def __getattr__(self, name):
        return print


class Mode(enum.StrEnum):
    """A value that JSON would take for a text."""

    FAST = "fast"


@pytest.fixture(autouse=True)
def _nothing_lent(monkeypatch):
    monkeypatch.setattr(plugins, "_lent", {})


def elsewhere(group, reference):
    """What another process makes of the reference."""
    plugins._lent.clear()
    return plugins.find_object(group, reference)


@pytest.mark.parametrize("kind", [Paced, Frozen])
def test_objects_with_different_values_are_lent_side_by_side(kind):
    one, four = (plugins.lend_object("policies", kind(number)) for number in (1, 4))
    assert [plugins.find_object("policies", each).number for each in (one, four)] == [1, 4]
    assert plugins.lend_object("policies", kind(4)) == four
    assert elsewhere("policies", four).number == 4
    assert elsewhere("policies", one).number == 1


def test_values_are_those_of_the_moment_in_which_the_object_was_passed():
    given = Frozen(2, ["a+b", ("1e+5", b"+", None, {1: -2.5})])
    reference = plugins.lend_object("operators", given)
    given.words.append("later")
    assert plugins.find_object("operators", reference).words == given.words[:2]
    assert "+" not in reference
    assert elsewhere("operators", reference) == Frozen(2, ["a+b", ("1e+5", b"+", None, {1: -2.5})])


@pytest.mark.parametrize(
    "value",
    [Mode.FAST, {"a": {3}}, float("nan"), 1e30, Frozen(), object(), "x" * 3_000],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_not_recorded_are_never_replaced_by_others(value, caplog):
    with caplog.at_level(logging.WARNING):
        one, other = (plugins.lend_object("operators", Paced(value, more=more)) for more in (1, 2))
    assert "only a program that passes it can go on with its run" in caplog.text
    assert [plugins.find_object("operators", each).more for each in (one, other)] == [1, 2]
    with pytest.raises(UserError, match="resume the run from Python, and pass the object again"):
        elsewhere("operators", one)


def test_an_object_that_is_passed_again_is_the_one_of_the_record_if_its_values_are():
    recorded = plugins.lend_object("policies", Paced(Mode.FAST))
    plugins._lent.clear()
    assert plugins.lend_object("policies", Paced(Mode.FAST, more=1)) != recorded
    assert plugins.lend_object("policies", Paced(Mode.FAST)) == recorded
    assert plugins.lend_object("policies", Paced(Mode.FAST)) == recorded


def test_functions_and_classes_of_one_name_are_told_apart():
    def make(number):
        class Local:
            pass

        def factory():
            return number

        return factory, Local

    (first, one), (second, other) = make(1), make(4)
    names = [plugins.lend_object("policies", each) for each in (first, second, one, other)]
    assert len(set(names)) == 4
    assert [plugins.find_object("policies", name) for name in names] == [first, second, one, other]
    assert plugins.lend_object("policies", first) == names[0]
    for name in names:
        with pytest.raises(UserError):
            elsewhere("policies", name)


def test_a_benchmark_with_other_values_is_made_anew_and_left_to_its_version():
    one, other = Paced(object()), Paced(object())
    names = [plugins.lend_object("benchmarks", each) for each in (one, other)]
    assert [plugins.find_object("benchmarks", name) for name in names] == [one, other]
    assert [elsewhere("benchmarks", name) for name in names] == [Paced, Paced]


@pytest.mark.parametrize(
    "reference",
    [
        f"{__name__}:Proxy{{'number': 4}}",
        "fractions:Fraction{'number': 4}",
        "collections:OrderedDict{'number': 4}",
        "os:sep{'number': 4}",
        f"{__name__}:Frozen{{'number': 4, 'other': 5}}",
        f"{__name__}:Paced{{'number':}}",
        f"{__name__}:Paced{{'number': print()}}",
        f"{__name__}:Paced{{{'[' * 900}{']' * 900}}}",
    ],
)
def test_a_stranger_gives_values_to_ordinary_objects_only(reference):
    with pytest.raises(UserError, match="cannot be made with these values"):
        plugins.find_object("policies", reference)


def test_no_value_of_a_stranger_reaches_a_method_that_python_calls_by_itself(tmp_path):
    (tmp_path / "kept").touch()
    values = {"file": "x", "name": str(tmp_path / "kept"), "delete": True}
    with pytest.raises(UserError, match="cannot be made with these values"):
        plugins.find_object("policies", f"tempfile:_TemporaryFileCloser{values}")
    assert (tmp_path / "kept").exists()
