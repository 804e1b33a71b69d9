"""An operator whose model's answers run away up to their limit."""

from itertools import pairwise

import pytest

from dgm.messages import Stop
from tests.model.record import Record
from tests.model.test_search import STARTER

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]
CUT = "cut off at the limit of its length"


def test_an_answer_that_was_cut_off_makes_no_child(dgm, server):
    words = ["--set", "operator=diagnose", "--max-evaluations", "2", "--set", "budget.expansion_cost=1"]
    words += [
        "--set",
        "evidence.prompt_chars=1000",
        "--set",
        "limits.calls=4",
        "--set",
        "limits.output_tokens=24",
    ]
    dgm("run", "--name", "runaway", *STARTER, *words, "--set", "limits.time_factor=20", *server.options)
    found = Record.read(dgm.archive / "runaway")
    asked = [call for call in found.calls if call.role == "diagnose"]
    assert Stop.LENGTH in {call.reply.stop for call in asked}
    for earlier, later in pairwise(asked):
        if earlier.reply.stop is Stop.LENGTH:
            assert CUT in later.messages[-1]["content"]
    assert [event.outcome.stage for event in found.stillborn] == ["answer"]
