"""Every operator that is built in can be opened, alone and with all others."""

from inspect import iscoroutinefunction

import pytest

from dgm.config import Settings
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.registry import BUILTIN, needs_of, open_operators


@pytest.mark.parametrize("name", BUILTIN)
def test_an_operator_opens(name):
    opened = open_operators(Settings(operator=name), "python", Prompts(load_shipped()))
    assert list(opened) == [name]
    assert iscoroutinefunction(opened[name].make)
    assert opened[name].name == name


def test_all_open_together_and_say_what_they_need():
    opened = open_operators(Settings(operator="+".join(BUILTIN)), "python", Prompts(load_shipped()))
    assert list(opened) == list(BUILTIN)
    assert needs_of(opened).keys() == BUILTIN.keys()
