"""What a model takes of a request: bodies as they are sent, what is learned, told and recorded."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgm.messages import WireProtocol
from dgm.models.abilities import Abilities

CHAT, RESPONSES, MESSAGES = WireProtocol
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"cache_control": {"type": "string"}, "strict": {"additionalProperties": True}},
}
BODY = {
    "model": "m",
    "messages": [
        {
            "role": "developer",
            "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
        },
        {"role": "user", "content": "b", "name": "me"},
        {"role": "assistant", "content": "c", "reasoning_content": "d"},
    ],
    "tools": [{"type": "function", "function": {"name": "bash", "strict": True, "parameters": SCHEMA}}],
    "tool_choice": "required",
    "temperature": 0.0,
    "max_tokens": 100,
    "stream": True,
    "stream_options": {"include_usage": True},
    "reasoning": {"effort": "minimal", "summary": "auto"},
    "text": {"verbosity": "low"},
}


def applied(body=None, protocol=CHAT, **known):
    body = BODY if body is None else body
    before = copy.deepcopy(body)
    after = Abilities(**known).apply(body, protocol)
    assert body == before, "the body is not changed"
    return after


def test_a_model_that_takes_everything_gets_the_very_body():
    assert Abilities().apply(BODY, CHAT) is BODY
    assert Abilities().describe() == ""
    assert Abilities().as_record() == {}


def test_keys_are_left_out():
    sent = applied(dropped=frozenset(("temperature", "reasoning.summary", "text.verbosity", "nothing.here")))
    assert "temperature" not in sent
    assert sent["reasoning"] == {"effort": "minimal"}
    assert "text" not in sent, "an empty object goes too"


def test_parts_of_turns_and_tools_are_left_out():
    sent = applied(
        dropped=frozenset(("messages[].reasoning_content", "messages[].name", "tools[].function.strict"))
    )
    assert [sorted(turn) for turn in sent["messages"]] == [["content", "role"]] * 3
    assert sorted(sent["tools"][0]["function"]) == ["name", "parameters"]


def test_names_that_an_agent_chose_stay():
    sent = applied(dropped=frozenset(("**.cache_control", "tools**.additionalProperties")))
    assert "cache_control" not in sent["messages"][0]["content"][0]
    kept = sent["tools"][0]["function"]["parameters"]
    assert "additionalProperties" not in kept
    assert kept["properties"] == {"cache_control": {"type": "string"}, "strict": {}}


def test_the_input_of_a_call_stays():
    call = {"type": "tool_use", "id": "1", "name": "x", "input": {"cache_control": 1}, "cache_control": {}}
    body = {"model": "m", "messages": [{"role": "assistant", "content": [call]}]}
    sent = applied(body, MESSAGES, dropped=frozenset(("**.cache_control",)))
    assert sent["messages"][0]["content"] == [
        {"type": "tool_use", "id": "1", "name": "x", "input": {"cache_control": 1}}
    ]


def test_keys_are_renamed():
    sent = applied(renamed={"max_tokens": "max_completion_tokens"})
    assert "max_tokens" not in sent and sent["max_completion_tokens"] == 100


@pytest.mark.parametrize(
    ("choice", "protocol", "auto", "sent"),
    [
        ("required", CHAT, "auto", "auto"),
        ({"type": "function", "function": {"name": "x"}}, CHAT, "auto", "auto"),
        ("none", CHAT, "auto", "none"),
        ("auto", CHAT, "auto", "auto"),
        ({"type": "any"}, MESSAGES, {"type": "auto"}, {"type": "auto"}),
        (
            {"type": "tool", "name": "x", "disable_parallel_tool_use": True},
            MESSAGES,
            {"type": "auto"},
            {"type": "auto", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_only_a_forced_call_is_replaced(choice, protocol, auto, sent):
    body = {**BODY, "tool_choice": choice}
    assert applied(body, protocol, replaced={"tool_choice": auto})["tool_choice"] == sent


def test_single_values_are_replaced():
    known = {"reasoning.effort=minimal": "low", "service_tier=flex": "auto"}
    assert applied(replaced=known)["reasoning"] == {"effort": "low", "summary": "auto"}
    assert applied({"reasoning": {"effort": "high"}}, replaced=known) == {"reasoning": {"effort": "high"}}


def test_settings_are_always_sent():
    assert applied({"model": "m"}, settings={"reasoning_effort": "none"})["reasoning_effort"] == "none"


def test_streams():
    sent = applied(no_stream=True)
    assert "stream" not in sent and "stream_options" not in sent
    assert applied({"model": "m"}, only_stream=True)["stream"] is True


def test_roles_are_replaced_and_neighbours_of_one_role_joined():
    assert applied(roles={"developer": "system"})["messages"][0]["role"] == "system"
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
    sent = applied({"messages": turns}, roles={"system": "user"})
    assert sent["messages"] == [{"role": "user", "content": "Be brief.\n\nHello."}]
    sent = applied({"input": turns}, RESPONSES, roles={"system": "developer"})
    assert [turn["role"] for turn in sent["input"]] == ["developer", "user"]
    assert applied({"input": "text"}, RESPONSES, roles={"system": "developer"}) == {"input": "text"}


def test_texts_are_sent_as_strings():
    turns = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert applied({"messages": turns}, flat_content=True)["messages"] == [
        {"role": "user", "content": "a\nb"}
    ]
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]
    assert applied({"messages": image}, flat_content=True) == {"messages": image}


def test_headers_are_left_out():
    known = Abilities(dropped_headers=frozenset(("anthropic-beta",)))
    assert known.apply_headers({"Anthropic-Beta": "x", "a": "b"}) == {"a": "b"}


def test_what_is_learned_adds_up():
    known = Abilities(dropped=frozenset("a"), max_output=100)
    known = known.learn(Abilities(dropped=frozenset("b"), max_output=200, context=10, no_stream=True))
    assert known == Abilities(dropped=frozenset("ab"), max_output=100, context=10, no_stream=True)
    assert known.learn(Abilities()) == known


def test_a_name_that_is_refused_both_ways_is_left_out():
    known = Abilities().learn(Abilities(renamed={"max_tokens": "max_completion_tokens"}))
    known = known.learn(Abilities(renamed={"max_completion_tokens": "max_tokens"}))
    assert known == Abilities(dropped=frozenset(("max_tokens", "max_completion_tokens")))


def test_a_role_that_stands_in_may_be_refused_too():
    known = Abilities(roles={"developer": "system"}).learn(Abilities(roles={"system": "user"}))
    assert known.roles == {"developer": "user", "system": "user"}


@pytest.mark.parametrize(
    ("known", "prompt", "room"),
    [
        (Abilities(), 100, None),
        (Abilities(max_output=50), 100, 50),
        (Abilities(context=400), 100, 300),
        (Abilities(context=400, max_output=50), 100, 50),
        (Abilities(context=400, max_output=50), 380, 20),
        (Abilities(context=400), 500, 1),
    ],
)
def test_the_room_for_an_answer(known, prompt, room):
    assert known.room(prompt) == room


def test_abilities_are_described():
    known = Abilities(
        dropped=frozenset(("temperature", "**.cache_control")),
        renamed={"max_tokens": "max_completion_tokens"},
        replaced={"tool_choice": "auto", "reasoning_effort=minimal": "low"},
        settings={"enable_thinking": False},
        roles={"developer": "system"},
        no_stream=True,
        context=4096,
        max_output=1024,
    )
    assert known.describe() == (
        "leaves out cache_control, temperature; sends max_completion_tokens in place of max_tokens;"
        " sends reasoning_effort low in place of minimal; sends tool_choice auto in place of a forced call;"
        " sends enable_thinking false; sends role system in place of developer; does not stream;"
        " context 4,096 tokens; output 1,024 tokens"
    )


NAMES = st.text("abc_.[]*", max_size=8)
KNOWN = st.builds(
    Abilities,
    dropped=st.frozensets(NAMES),
    renamed=st.dictionaries(NAMES, NAMES),
    replaced=st.dictionaries(NAMES, NAMES),
    settings=st.dictionaries(NAMES, st.booleans() | NAMES),
    roles=st.sampled_from([{}, {"developer": "system"}, {"system": "user", "developer": "user"}]),
    dropped_headers=st.frozensets(NAMES),
    flat_content=st.booleans(),
    no_stream=st.booleans(),
    context=st.none() | st.integers(1),
    tools=st.booleans(),
)


@pytest.mark.slow
@given(KNOWN)
def test_abilities_survive_their_record(known):
    assert Abilities.from_record(json.loads(json.dumps(known.as_record()))) == known
    assert Abilities.from_record({**known.as_record(), "of_a_later_version": 1}) == known


@pytest.mark.slow
@given(KNOWN, KNOWN)
def test_learning_the_same_twice_teaches_nothing(known, change):
    once = known.learn(change)
    if not change.renamed:
        assert once.learn(change) == once
