"""Which requests are the same for a repetition, and which differences a replay tells."""

from datetime import date

import pytest

from dgm.archive.volatile_text import Conditions
from dgm.gateway.memory import NormalForms
from dgm.messages import Message, Request, Role, Tool, ToolCall, WireProtocol, WireRequest

DAYS = Conditions(frozenset((date(2026, 11, 20), date(2026, 11, 21))))
FORMS = NormalForms(DAYS)


def first_difference(one, other):
    return FORMS.first_difference(one, other)


def request(text, **more):
    return Request((Message(Role.SYSTEM, "s"), Message(Role.USER, text)), **more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ran 5 tests in 0.003s", "Ran 5 tests in 0.112s"),
        ("<Thing object at 0x7f3a5b2c1d00>", "<Thing object at 0x7f0000001d00>"),
        ("/tmp/tmpab12cd/x.py: ok", "/tmp/tmpzz99/x.py: ok"),
        ("2026-11-20 10:00:00,123 INFO start", "2026-11-21 11:30:59,001 INFO start"),
        ("[pid 123] killed", "[pid 99881] killed"),
        ("http://127.0.0.1:8377/v1", "http://127.0.0.1:40123/v1"),
    ],
)
def test_what_no_two_runs_share_is_no_difference(one, other):
    assert first_difference(request(one), request(other)) is None
    assert FORMS.are_same(request(one), request(other))


def test_ids_of_the_problem_statement_are_compared():
    one, other = "0198c7d2-0000-7000-8000-00000000000a", "0198c7d2-0000-7000-8000-00000000000b"
    forms = NormalForms(Conditions(DAYS.days, statement=f"Merge {one} and {other}."))
    assert forms.first_difference(request(f"Read {one}"), request(f"Read {other}"))
    assert FORMS.are_same(request(f"Read {one}"), request(f"Read {other}"))
    made_up = [f"Read {one} in session {number}198c7d2-0000-7000-8000-00000000000c" for number in (1, 2)]
    assert forms.are_same(*map(request, made_up))


def test_difference_shows_its_place_and_both_sides():
    text = first_difference(request("x" * 100 + "left"), request("x" * 100 + "right"))
    assert text == "messages[1].text: 'xxxxxxxxxxleft' against 'xxxxxxxxxxright' (character 100)"


def test_calls_tools_settings_and_lengths_are_compared():
    plain = request("a")
    call = Message(Role.ASSISTANT, "", (ToolCall("1", "bash", "{}"),))
    assert first_difference(plain, request("a", temperature=1.0)).startswith("temperature: ")
    assert (
        first_difference(plain, request("a", tools=(Tool("bash", ""),)))
        == "messages[0].role against tool bash"
    )
    longer = Request((*plain.messages, call))
    assert first_difference(plain, longer) == "messages[2].role: only in the second"
    other = Request((*plain.messages, Message(Role.ASSISTANT, "", (ToolCall("1", "edit", "{}"),))))
    assert first_difference(longer, other).startswith("messages[2].calls[0]: 'bash {}'")


def raw(**body):
    return WireRequest(WireProtocol.CHAT, {"messages": [{"role": "user", "content": "a"}], **body})


def test_what_the_gateway_sets_and_null_values_are_no_difference_between_raw_requests():
    ours = raw(model="one", max_tokens=100, seed=1, stop=None)
    theirs = raw(model="other", max_tokens=200, seed=2, logit_bias=None)
    assert first_difference(ours, theirs) is None


def test_a_setting_that_the_agent_chose_is_a_difference_between_raw_requests():
    assert first_difference(raw(top_p=0.5), raw(top_p=1)) == "top_p: '0.5' against '1' (character 0)"
    assert first_difference(raw(), raw(top_p=1)) == "top_p: only in the second"
    ours = WireRequest(WireProtocol.MESSAGES, raw().body)
    assert first_difference(ours, raw()) == "protocol: messages against chat"


SESSION, THREAD = "0198c7d2-0000-7000-8000-00000000000a", "0198c7d2-0000-7000-8000-00000000000b"


def test_equal_ids_stay_equal_and_different_ones_different():
    twice, other = request(f"{SESSION} {SESSION}"), request(f"{THREAD} {THREAD}")
    both = request(f"{SESSION} {THREAD}")
    assert FORMS.are_same(twice, other)
    assert FORMS.are_same(both, request(f"{THREAD} {SESSION}"))
    assert not FORMS.are_same(twice, both)
    assert first_difference(twice, both) == "messages[1].text: ids that are equal in one differ in the other"


def test_patterns_of_an_agent_are_not_compared():
    forms = NormalForms(Conditions(patterns=("nonce=[0-9]+",)))
    assert forms.are_same(raw(system="nonce=1"), raw(system="nonce=22"))
    assert not forms.are_same(raw(system="nonce=1 a"), raw(system="nonce=22 b"))
