"""One rule gives every factory its context record, or the fields that it names."""

import functools
from dataclasses import dataclass, field

import pytest

from dgm.plugins import UnknownField, call_factory
from dgm.protocols import Operator


@dataclass(frozen=True)
class Context:
    image: str = "python"
    time_limit_s: float = 60.0
    _own: dict[str, int] = field(default_factory=dict)


CONTEXT = Context()
FIELDS = {"image": "python", "time_limit_s": 60.0}


def takes(*names):
    """A class whose constructor has these arguments, and keeps what it got."""
    words = ", ".join(("self", *names))
    made: dict[str, type] = {}
    exec(f"class Made:\n    def __init__({words}):\n        del self; self_got.update(locals())", made)
    return made["Made"], made.setdefault("self_got", {})


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        (("making",), {"making": CONTEXT}),
        (("making", "/"), {"making": CONTEXT}),
        (("making", "image='own'"), {"making": CONTEXT, "image": "own"}),
        (("image", "time_limit_s"), FIELDS),
        (("time_limit_s", "image"), FIELDS),
        (("*", "image"), {"image": "python"}),
        (("image='own'",), {"image": "python"}),
        (("image", "more=3"), {"image": "python", "more": 3}),
        (("image", "**rest"), {"image": "python", "rest": {"time_limit_s": 60.0}}),
        (("**rest",), {"rest": FIELDS}),
        (("more=3",), {"more": 3}),
        (("*", "more=None"), {"more": None}),
        ((), {}),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, tuple) else "",
)
def test_a_factory_gets_the_record_or_the_fields_that_it_names(arguments, got):
    factory, kept = takes(*arguments)
    call_factory(factory, CONTEXT)
    assert kept == got


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("imge", "time_limit_s"),
            "argument 'imge' is no field of Context (did you mean 'image'? there are: image, time_limit_s)",
        ),
        (
            ("making", "more"),
            "arguments 'making', 'more' are no fields of Context (there are: image, time_limit_s)",
        ),
        (("making", "*", "more"), "arguments 'making', 'more' are no fields"),
        (("*", "more"), "argument 'more' is no field"),
        (("image", "_own"), "argument '_own' is no field"),
    ],
)
def test_a_factory_that_asks_for_more_hears_of_the_fields(arguments, said):
    with pytest.raises(UnknownField) as raised:
        call_factory(takes(*arguments)[0], CONTEXT)
    assert str(raised.value).startswith(said)


class Inherits(Operator):
    """Its own signature says nothing before the first object is made."""

    name = "inherits"

    async def make(self, brief, bench):
        raise NotImplementedError


class Kept:
    def __init__(self, image):
        self.image = image


class InheritsBoth(Operator, Kept):
    name = "both"
    make = Inherits.make


def test_a_class_that_inherits_from_its_protocol_takes_what_its_constructor_takes():
    assert call_factory(Inherits, CONTEXT).name == "inherits"
    assert call_factory(InheritsBoth, CONTEXT).image == "python"


def test_other_callables_follow_the_rule():
    assert call_factory(functools.partial(Kept, "own"), CONTEXT).image == "own"
    assert call_factory(lambda making: making, CONTEXT) is CONTEXT
    assert call_factory(repr, CONTEXT) == repr(CONTEXT)
    with pytest.raises(TypeError, match="not a callable"):
        call_factory(3, CONTEXT)  # type: ignore[arg-type]
