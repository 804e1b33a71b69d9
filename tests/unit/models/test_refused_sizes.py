"""Sizes in refusals, under the names and with the bounds of many vendors."""

import pytest

from dgm.models.refusals import read_refusal
from dgm.models.sizes import Sizes, read_sizes

ASKED = {"max_tokens": 16_000}
RANGE = "it has a maxOutputTokens value of 16000 but the supported range is from 1 (inclusive) to 8193 (exclusive)."


@pytest.mark.parametrize(
    ("text", "largest"),
    [
        (f"Unable to submit request because {RANGE} Update the value and try again.", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("the valid range of max_tokens is [1, 8193)", 8192),
        ("max_tokens (current value: 16000) must be between 0 and 4000", 4000),
        ("max_tokens must be less than 4097", 4096),
        ("max_tokens should be < 4097", 4096),
        ("max_tokens must be less than or equal to 4096", 4096),
        ("maxTokens must be lower than 4097", 4096),
        ("max_gen_len: expected a value <= 8192, got 16000", 8192),
        ("num_predict must be at most 4096", 4096),
        (
            "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model",
            4096,
        ),
        ("The value 16000 of max_length exceeds the maximum of 4,096", 4096),
        ({"error": {"message": "too much output was asked for", "max_output_tokens": 4096}}, 4096),
        ({"error": {"message": "too much", "details": [{"maxCompletionTokens": 4096}]}}, 4096),
    ],
)
def test_the_largest_output_is_read(text, largest):
    assert _sizes(text) == Sizes(max_output=largest, fits=largest)


@pytest.mark.parametrize(
    "text",
    [
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 96 `inputs` tokens and 16000 `max_new_tokens`",
        "`inputs` tokens + `max_new_tokens` must be < 4097. Given: 96 `inputs` tokens and 16000 `max_new_tokens`",
        {"error": {"message": "the request does not fit", "max_model_len": 4096, "input_tokens": 96}},
        {"error": {"message": "the request does not fit", "contextLength": 4096, "promptTokens": 96}},
    ],
)
def test_the_context_is_read(text):
    assert _sizes(text) == Sizes(context=4096, fits=4000)


@pytest.mark.parametrize(
    "text", ["max_tokens must be less than max_model_len", "temperature must be less than 2"]
)
def test_other_bounds_are_no_sizes(text):
    assert _sizes(text) is None


def _sizes(said):
    body = said if isinstance(said, dict) else {"error": {"message": said}}
    return read_sizes(read_refusal(400, body), ASKED, 400)
