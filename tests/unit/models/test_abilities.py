"""What a model takes of a request: bodies as they are sent, what is learned, told and recorded."""

import copy
import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgm.models.abilities import Abilities

SCHEMA = {"type": "object", "properties": {}}
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


def applied(body=None, **known):
    body = BODY if body is None else body
    before = copy.deepcopy(body)
    after = Abilities(**known).apply(body)
    assert body == before, "the body is not changed"
    return after


def test_parts_of_turns_and_tools_are_left_out():
    sent = applied(
        dropped=frozenset(("messages[].reasoning_content", "messages[].name", "tools[].function.strict"))
    )
    assert [sorted(turn) for turn in sent["messages"]] == [["content", "role"]] * 3
    assert sorted(sent["tools"][0]["function"]) == ["name", "parameters"]


def test_keys_are_renamed():
    sent = applied(renamed={"max_tokens": "max_completion_tokens"})
    assert "max_tokens" not in sent and sent["max_completion_tokens"] == 100
    assert applied({"a": 1, "b": 2}, renamed={"a": "b"}) == {"b": 2}, "what is there already stays"


def test_the_settings_that_say_the_same():
    known = Abilities(
        frozenset(("temperature", "messages[].name")),
        {"max_tokens": "max_completion_tokens"},
        {"thinking": {"type": "disabled"}},
        context=4096,
    )
    section = tomllib.loads(known.as_settings("openai/m"))["models"]["requests"]["openai/m"]
    assert section == {
        "drop": ["messages[].name", "temperature"],
        "rename": {"max_tokens": "max_completion_tokens"},
        "set": {"thinking": {"type": "disabled"}},
    }
    assert Abilities(context=4096, tools=False).as_settings("openai/m") == ""


def test_a_name_that_is_refused_both_ways_is_left_out():
    known = Abilities().learn(Abilities(renamed={"max_tokens": "max_completion_tokens"}))
    known = known.learn(Abilities(renamed={"max_completion_tokens": "max_tokens"}))
    assert known == Abilities(dropped=frozenset(("max_tokens", "max_completion_tokens")))


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


NAMES = st.text("abc_.[]*", max_size=8)
KNOWN = st.builds(
    Abilities,
    dropped=st.frozensets(NAMES),
    renamed=st.dictionaries(NAMES, NAMES),
    settings=st.dictionaries(NAMES, st.booleans() | NAMES),
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
