"""The check of a model: one small real call that tells what a person should know before money flows."""

import httpx2
import pytest

from dgm.errors import ProviderRefuses
from dgm.models.check import NO_TOOL_CALL
from tests.support.models.connection_script import Bench, answer, completion, well

CALL = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "true"}'}}


def called():
    """An answer that calls the tool."""
    whole = completion(None, "tool_calls")
    whole["choices"][0]["message"]["tool_calls"] = [CALL]
    return httpx2.Response(200, json=whole)


def test_model_that_calls_the_tool_needs_no_words():
    bench = Bench(called())
    checked = bench.check()
    assert (checked.words, checked.abilities, checked.usage.calls) == ((), {}, 1)
    (body,) = bench.script.bodies
    assert (body["temperature"], body["max_tokens"], body["tools"][0]["function"]["name"]) == (
        0,
        16_000,
        "bash",
    )


def test_model_that_answers_in_text_is_told():
    checked = Bench(well()).check()
    assert (checked.words, checked.abilities) == ((NO_TOOL_CALL,), {"tools": False})


def test_what_the_check_teaches_is_returned():
    refusal = answer(400, "Unsupported parameter: 'temperature' is not supported.", param="temperature")
    checked = Bench(refusal, called()).check()
    assert checked.abilities == {"dropped": ["temperature"]}
    assert checked.words == ("leaves out temperature",)


def test_sizes_come_from_the_list_of_models():
    listed = {"data": [{"id": "other", "max_model_len": 1}, {"id": "m-1", "max_model_len": 8_192}]}
    bench = Bench(called(), pages={"/models": listed})
    checked = bench.check()
    assert checked.abilities == {"context": 8_192}
    assert bench.script.bodies[0]["max_tokens"] < 8_192


def test_server_that_gave_more_than_was_asked_is_told():
    usage = {"prompt_tokens": 3, "completion_tokens": 17_000, "total_tokens": 17_003}
    words = Bench(well(usage=usage)).check().words
    assert "17,000 output tokens where at most 16,000" in words[0]


def test_refused_check_is_for_a_person_to_mend():
    with pytest.raises(ProviderRefuses, match="filtered"):
        Bench(answer(400, "filtered", code="content_filter")).check()


def test_a_proxy_that_is_away_is_named_and_left_to_the_user():
    bench = Bench(*(ConnectionRefusedError("refused") for _ in range(9)))
    bench.script.proxy = "HTTPS_PROXY"
    with pytest.raises(
        ProviderRefuses, match=r"connection refused error: refused \(by the proxy that HTTPS_PROXY names\)"
    ):
        bench.check()


def test_refused_tools_end_the_check_with_the_servers_words_and_advice():
    bench = Bench(answer(400, '"auto" tool choice requires --enable-auto-tool-choice to be set'))
    with pytest.raises(ProviderRefuses, match=r"takes no tools: .*--enable-auto-tool-choice.* tools = false"):
        bench.check()
