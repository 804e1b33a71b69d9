"""Events about models as older logs hold them: what they leave out is nothing."""

import json

from dgm.archive.codec import decode
from dgm.archive.events import CallBooked, ModelCalled, ModelLearned, ModelNoted
from dgm.domain import Usage

CALL = {"number": 1, "model": "m", "role": "solve"}


def read(kind, /, **body):
    return decode(kind, 3, json.dumps(body))


def test_a_call_without_usage_and_duration_took_nothing():
    called = read("model_called", **CALL, request="a" * 64, reply="b" * 64)
    assert isinstance(called, ModelCalled)
    assert (called.usage, called.seconds) == (Usage(), 0.0)


def test_a_booked_call_is_over_where_it_is_not_said_to_be_open():
    booked = read("call_booked", **CALL, usage=[1, 2, 3, 0.5])
    assert isinstance(booked, CallBooked)
    assert (booked.usage, booked.open, booked.request) == (Usage(1, 2, 3, 0.5), False, "")


def test_what_was_learned_of_a_model_cost_nothing_and_a_note_ends_at_no_time():
    learned = read("model_learned", model="m", abilities={}, words="")
    noted = read("model_noted", model="m", kind="waits", words="")
    assert isinstance(learned, ModelLearned)
    assert isinstance(noted, ModelNoted)
    assert (learned.usage, noted.until) == (Usage(), 0.0)
