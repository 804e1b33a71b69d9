"""Which differences between two requests a replay tells."""

import pytest

from dgm.gateway.masking import first_difference, mask_volatile
from dgm.messages import Message, Request, Role, Tool, ToolCall, WireProtocol, WireRequest


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


@pytest.mark.parametrize(
    ("one", "other"), [("Ran 5 tests", "Ran 6 tests"), ("balance 10.50", "balance 10.51"), ("a", "a b")]
)
def test_other_text_is_a_difference(one, other):
    assert first_difference(request(one), request(other)).startswith("messages[1].text: ")


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


def test_plain_numbers_are_not_masked():
    assert mask_volatile("total 12 of 30, 100 items") == "total 12 of 30, 100 items"


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
