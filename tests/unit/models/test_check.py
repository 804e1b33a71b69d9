"""The check of a model: one small real call that tells what a person should know before money flows."""

import asyncio

import httpx2
import pytest

from dgm.errors import ProviderRefuses
from dgm.models.abilities import Abilities
from dgm.models.check import NO_TOOL_CALL, read_listed_sizes
from tests.support.models.connecting import KEY, clear_environment, connect
from tests.support.models.connection_script import Bench, answer, completion, well
from tests.support.models.recording_server import recording, said

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


# Sizes in the lists of models that servers give


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    clear_environment(monkeypatch)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def sizes(connection):
    async def asking():
        try:
            return await read_listed_sizes(connection, "m")
        finally:
            await connection.close()

    return asyncio.run(asking())


@pytest.mark.parametrize(
    ("entry", "context", "output"),
    [
        ({"object": "model"}, None, None),
        ({"max_model_len": 40960}, 40960, None),
        ({"context_length": 200000, "top_provider": {"max_completion_tokens": 64000}}, 200000, 64000),
        ({"context_length": 8, "top_provider": None}, 8, None),
        ({"meta": {"n_ctx_train": 131072}}, 131072, None),
        ({"meta": {"n_ctx": 4096, "n_ctx_train": 131072}}, 4096, None),
        ({"max_input_tokens": 1000000, "max_tokens": 128000}, 1000000, 128000),
        ({"max_context_length": 32768, "loaded_context_length": 4096}, 4096, None),
        ({"context_window": 131072, "max_completion_tokens": 32768}, 131072, 32768),
        ({"max_model_len": "many", "context_length": True, "meta": [], "top_provider": 3}, None, None),
        ({"context_length": 0, "max_tokens": -1}, None, None),
    ],
)
def test_sizes_are_read_where_a_server_says_them(entry, context, output):
    with recording(lambda _: said({"data": [{"id": "other", "max_model_len": 1}, {"id": "m", **entry}]})) as (
        url,
        _,
    ):
        connection = connect("openai-compatible/m", compatible={"base_url": url})
        assert sizes(connection) == Abilities(context=context, max_output=output)
