"""What a hosted model learns from refusals, and which of them its agent hears."""

import asyncio

import httpx2
import pytest

from dgm.errors import ProviderRefuses
from dgm.messages import NO_TOOLS, RequestRefused
from dgm.models.abilities import Abilities
from tests.support import virtual_time
from tests.support.models.connection_script import (
    KEY,
    NAME,
    Bench,
    answer,
    text_of,
    well,
)

# What the model cannot do


def test_refused_temperature_is_left_out_from_then_on_and_told_once():
    refusal = answer(
        400,
        "Unsupported value: 'temperature' does not support 0 with this model.",
        code="unsupported_value",
        param="temperature",
        type="invalid_request_error",
    )
    bench = Bench(refusal)

    async def scenario():
        for _ in range(3):
            assert text_of(await bench.send(temperature=0, top_p=0.5)) == "Here."

    virtual_time.run(scenario())
    assert ["temperature" in body for body in bench.script.bodies] == [True, False, False, False]
    assert all(body["top_p"] == 0.5 for body in bench.script.bodies)
    ((model, abilities, words),) = bench.heard.lessons
    assert (model, abilities, words) == (NAME, {"dropped": ["temperature"]}, "leaves out temperature")
    assert bench.script.gaps == [0, 0, 0]


def test_two_calls_that_are_refused_the_same_at_once_are_both_asked_again():
    async def refusing(_body):
        # Both are on their way before either is refused.
        await asyncio.sleep(1)
        said = "Unsupported value: 'temperature' does not support 0 with this model."
        return answer(400, said, code="unsupported_value", param="temperature")

    bench = Bench(refusing, refusing)

    async def scenario():
        both = [bench.send(temperature=0) for _ in range(2)]
        assert [text_of(reply) for reply in await asyncio.gather(*both)] == ["Here.", "Here."]

    virtual_time.run(scenario())
    assert ["temperature" in body for body in bench.script.bodies] == [True, True, False, False]
    assert len(bench.heard.lessons) == 1


def test_limit_of_output_goes_under_the_name_that_the_model_takes():
    refusal = answer(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        code="unsupported_parameter",
        param="max_tokens",
    )
    bench = Bench(refusal)
    bench.ask()
    sent = bench.script.bodies[1]
    assert (sent["max_completion_tokens"], "max_tokens" in sent) == (64, False)


def test_request_that_is_too_long_for_its_output_is_asked_again_for_what_fits():
    said = (
        "This model's maximum context length is 1000 tokens. However, you requested 1300 tokens "
        "(300 in the messages, 1000 in the completion). Please reduce the length of the messages or completion."
    )
    bench = Bench(answer(400, said, code="context_length_exceeded"))
    assert text_of(bench.ask(max_tokens=1000)) == "Here."
    assert bench.script.bodies[0]["max_tokens"] == 1000
    assert 1 <= bench.script.bodies[1]["max_tokens"] <= 700
    assert bench.heard.lessons[0][1]["context"] == 1000


def test_a_request_for_which_nothing_fits_is_told_to_be_too_long():
    said = "This model's maximum context length is 1000 tokens. However, you requested 300 input tokens."
    bench = Bench(*(answer(400, said) for _ in range(30)))
    with pytest.raises(RequestRefused) as caught:
        bench.ask(max_tokens=500)
    assert (caught.value.code, caught.value.kept) == ("context_length_exceeded", True)
    limits = [body["max_tokens"] for body in bench.script.bodies]
    assert limits[:3] == [500, 250, 125] and limits == sorted(limits, reverse=True)


def test_refusal_that_names_what_was_never_sent_ends():
    bench = Bench(
        *(answer(400, "Unsupported parameter: 'temperature'", param="temperature") for _ in range(99))
    )
    with pytest.raises((RequestRefused, ProviderRefuses)):
        bench.ask(temperature=0)
    assert len(bench.script.at) <= 3


# Refusals that the agent hears


def test_models_own_malformed_call_is_asked_for_again_and_then_told():
    bench = Bench(
        *(answer(400, "Failed to call a function", code="tool_use_failed") for _ in range(9)), tries=8
    )
    with pytest.raises(RequestRefused, match="Failed to call") as caught:
        bench.ask()
    assert (caught.value.own, caught.value.status) == (True, 400)
    assert len(bench.script.at) == 3


def test_content_filter_is_handed_on_as_the_provider_gave_it():
    refusal = answer(400, "The prompt was filtered", code="content_filter", innererror={"a": [1]})
    body = refusal.content
    bench = Bench(refusal)
    with pytest.raises(RequestRefused) as caught:
        bench.ask()
    refused = caught.value
    assert (refused.own, refused.kept, refused.status, refused.content) == (False, True, 400, body)
    assert len(bench.script.at) == 1


def test_changes_of_the_settings_are_made_before_anything_is_refused():
    changes = Abilities(frozenset(("seed",)), {"max_tokens": "max_new_tokens"}, {"enable_thinking": False})
    bench = Bench(access={"changes": changes})
    bench.ask(seed=1, top_p=0.5)
    (body,) = bench.script.bodies
    assert (body["max_new_tokens"], body["enable_thinking"], body["top_p"]) == (64, False, 0.5)
    assert not {"seed", "max_tokens"} & body.keys()


def test_no_answer_and_no_refusal_holds_the_key():
    bench = Bench(well(f"It is {KEY}."), answer(400, f"filtered: {KEY}", code="content_filter"))
    assert text_of(bench.ask()) == "It is ***."
    with pytest.raises(RequestRefused) as caught:
        bench.ask()
    assert KEY not in str(caught.value)
    assert KEY.encode() not in caught.value.content and b"***" in caught.value.content


def test_no_error_within_an_answer_holds_the_key():
    error = {"message": f"filtered: {KEY}", "code": "content_filter"}
    with pytest.raises(RequestRefused) as caught:
        Bench(httpx2.Response(200, json={"error": error})).ask()
    assert KEY not in str(caught.value)
    assert KEY.encode() not in caught.value.content and b"***" in caught.value.content


def test_answer_that_cannot_be_whole_is_asked_for_again_once_and_then_meant():
    def promising():
        return well("Let me look.", finish="tool_calls")

    bench = Bench(promising())
    assert text_of(bench.ask()) == "Here."
    assert [(one.calls, one.input_tokens) for one in bench.log.wasted] == [(0, 30)]
    bench = Bench(*(promising() for _ in range(9)))
    assert text_of(bench.ask()) == "Let me look."
    assert len(bench.script.at) == 2


def test_refused_tools_are_told_once_to_the_agent_in_plain_words_and_remembered():
    bench = Bench(*[answer(400, "registry.ollama.ai/library/gemma:7b does not support tools")] * 2)
    for _ in range(2):
        with pytest.raises(
            RequestRefused, match=r"this model takes no tools: .* does not support tools"
        ) as told:
            bench.ask(tools=[{"type": "function", "function": {"name": "bash"}}])
    assert (told.value.code, told.value.own, told.value.kept, told.value.status) == (
        NO_TOOLS,
        True,
        True,
        400,
    )
    assert bench.heard.lessons == [(NAME, {"tools": False}, "takes no tools")]
    assert not bench.model.takes_tools
    assert text_of(bench.ask()) == "Here."


def test_an_agents_own_words_teach_nothing_about_tools():
    words = "the model does not support tools"
    bench = Bench(answer(400, f"invalid value: '{words}'"))
    with pytest.raises((RequestRefused, ProviderRefuses)):
        bench.ask(messages=[{"role": "user", "content": words}])
    assert bench.model.takes_tools
