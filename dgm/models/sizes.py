"""Sizes in a refusal: the model's context, its largest output, the prompt's length, and the limit that fits now."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dgm.messages import JsonObject
from dgm.models.refusals import ProviderRefusal

SMALLEST_ROOM = 16
"""Minimum useful output tokens; with less, the prompt alone is too long."""
OUTPUT_NAMES = ("max_completion_tokens", "max_output_tokens", "max_tokens")
_N = r"(\d[\d,_]*)"
_NAMED = r"[`'\"]?(?:max[ _]?(?:new|completion|output|gen\w*)?[ _]?(?:tokens?|len(?:gth)?)|n(?:um)?_predict)[`'\"]?"
"""Names of the output limit, as vendors write them: ``max_tokens``, ``maxOutputTokens``, ``max_gen_len`` …"""
_CONTEXT = (
    rf"maximum context length (?:is|of|was|:)?\s*:?\s*{_N}",
    rf"\d[\d,]*\s*\+\s*\d[\d,]*\s*>\s*{_N}",
    rf"(?:context|model token) (?:length|window|limit|size)s?(?: of| is|:)?(?: only)?\s*\(?{_N}",
    rf"token limit:?\s*{_N}",
    rf"inputs?[`'\"]? tokens \+ {_NAMED} must be (?:<=?|less than(?: or equal to)?|at most)\s*{_N}",
    rf"exceeds? (?:the )?(?:available )?context size \({_N}",
    rf"n_ctx[\"']?\s*:?\s*{_N}",
    rf"limit is {_N}",
    rf"too large for model with {_N}",
    rf"maximum (?:prompt|model|sequence) length (?:is|of) {_N}",
    rf"\(TPM\): Limit {_N}",
)  # fmt: skip
_PROMPT = (
    rf"{_N}\s*\+\s*\d[\d,]*\s*>\s*\d",
    rf"(?:has|contains|resulted in)(?: at least)? {_N} (?:input |prompt )?tokens",
    rf"{_N} tokens? from the input",
    rf"given:\s*{_N} [`'\"]?inputs?",
    rf"n_prompt_tokens[\"']?\s*:\s*{_N}",
    rf"request \({_N} tokens\)",
    rf"the request contains {_N} tokens",
    rf"prompt \(?{_N}(?: tokens)?\)?\s*\+",
    rf"n_keep:\s*{_N}",
)  # fmt: skip
_TOTAL = (
    rf"requested(?: about| a total of|:| up to)? {_N} tokens",
    rf"\(requested:?\s*{_N}",
    rf"\bRequested:? {_N}",
    rf"current length is {_N}",
)
_OUTPUT = (
    rf"{_N} (?:tokens? )?(?:in|for|of) (?:the )?(?:completion|output)",
    rf"requested {_N} output tokens",
    rf"\d[\d,]*\s*\+\s*{_N}\s*>\s*\d",
    rf"and {_N} {_NAMED}",
)
_AT_MOST = (
    r"(?:(?:expected a value|must be|should be|must have|has to be|is not) (?:less than(?: or equal to)?|smaller than"
    r"|lower than|below|<=?|at most|no more than)|between \d+ and|range (?:is |of )?(?:from )?\d+(?: \(inclusive\))? to"
    r"|limited to|limit (?:of|is)|maximum(?: allowed| value)?(?: is| of|:)?|cannot exceed|must not exceed"
    r"|exceeds? (?:the )?(?:maximum|limit) (?:of|is)?)"
)
_MOST_OUTPUT = (
    rf"supports? at most {_N} (?:completion|output)",
    rf"{_NAMED}:?\s*\d[\d,]*\s*>\s*{_N}",
    rf"{_NAMED}\s*>\s*{_N} must",
    rf"range (?:of|for) {_NAMED}(?: should be| is| must be)?:?\s*[\[(]\s*\d+\s*,\s*{_N}",
    rf"{_NAMED}.{{0,90}}?{_AT_MOST}\s*[`'\"(]?{_N}",
    rf"max(?:imum)? output(?: tokens| length| limit)?[^.\d]{{0,30}}{_N}",
    rf"maximum tokens you requested exceeds the model limit of {_N}",
    rf"{_NAMED}.{{0,60}}?[\[(]\s*[01]\s*,\s*{_N}\s*[\])]",
)  # fmt: skip
_BELOW = re.compile(r"(?:(?:less|smaller|lower) than|below|(?<![<=])<)\s*[`'\"(]?$", re.IGNORECASE)
"""Pattern of the words before a bound that is not reached itself."""
_OPEN_END = re.compile(r"\s*\(?exclusive|\s*\)", re.IGNORECASE)
"""Pattern of what follows the open end of a range: ``[1, 8193)`` or ``8193 (exclusive)``."""
_TOGETHER = re.compile(r"inputs?[`'\"]? tokens \+", re.IGNORECASE)
"""Pattern of a joint bound on prompt and output."""
_DEEPEST = 4
_FIELDS = (
    ("n_prompt_tokens", r"^(n_|num_)?(prompt|input)_?(tokens?|length)(_count)?$"),
    (
        "n_ctx",
        r"^n_ctx$|context_?(length|window|size|limit)|max_?model_?len|max_?(total|seq\w*)_?(tokens|len\w*)",
    ),
    (
        "max output limit",
        r"max_?(output|completion|new|gen\w*)_?(tokens?|len\w*)|(output|completion)_?tokens?_?limit",
    ),
)
"""Words of the patterns, and the names of fields that they stand for."""
_RATE = re.compile(r"request too large", re.IGNORECASE)


_TOO_MUCH = re.compile(
    rf"{_NAMED}[^.]{{0,40}}(?:too (?:large|high|big)|exceed|above (?:the )?max)", re.IGNORECASE
)
"""Pattern of an output limit that is too large by an unknown amount: half of it is tried."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes in a refusal, in tokens; None if it does not give them."""

    context: int | None = None
    max_output: int | None = None
    fits: int | None = None
    """The output limit that would be accepted now."""


def requested_output(asked: JsonObject) -> int | None:
    """Return the output limit that a request asks for, over all its names."""
    for name in OUTPUT_NAMES:
        value = asked.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def read_sizes(refusal: ProviderRefusal, asked: JsonObject, status: int) -> Sizes | None:
    """Return the lesson of the refusal, if a smaller output limit would help; else None.

    A prompt that is too long alone, or sizes that the request respects already, give no useful lesson.
    """
    wished = requested_output(asked)
    text = f"{refusal.message} {_read_size_fields(refusal.body)}"
    if wished is None or (status == 429 and not _RATE.search(text)):
        return None
    most = None if _TOGETHER.search(text) else _first_match(_MOST_OUTPUT, text)
    if most is not None and SMALLEST_ROOM <= most < wished:
        return Sizes(max_output=most, fits=most)
    context = _first_match(_CONTEXT, text)
    if context is None:
        return (
            Sizes(max_output=wished // 2, fits=wished // 2)
            if _TOO_MUCH.search(text) and wished > 64
            else None
        )
    output = _first_match(_OUTPUT, text)
    prompt = _first_match(_PROMPT, text)
    total = _first_match(_TOTAL, text)
    if total is not None and total != output:
        counted = total - (output if output is not None else wished)
        prompt = counted if prompt is None or counted > 0 else prompt
    if prompt is None or prompt < 0:
        return None
    fits = context - prompt
    if re.search(r"at least", text, re.IGNORECASE):
        fits = _estimate_limit(context, prompt, wished, asked)
    elif re.search(r"requested about", text, re.IGNORECASE):
        fits -= prompt // 50
    if not SMALLEST_ROOM <= fits < wished:
        return None
    return Sizes(context=context, fits=fits)


def _estimate_limit(context: int, prompt: int, wished: int, asked: JsonObject) -> int:
    """Return an output limit if the prompt's length is only a lower bound, as in newer versions of vLLM."""
    if prompt + wished > context + 1:
        return context - prompt  # A prompt that is cut at the bound would come to one token too many.
    turns = {name: asked.get(name) for name in ("messages", "input", "system", "instructions", "tools")}
    longer = max(prompt, len(json.dumps(turns, default=str)) // 3)
    fits = context - longer
    if SMALLEST_ROOM <= fits < wished - wished // 50:
        return fits
    return min(wished // 2, context - prompt)


def _first_match(patterns: tuple[str, ...], text: str) -> int | None:
    for pattern in patterns:
        if bound := re.search(pattern, text, re.IGNORECASE):
            before, after = text[: bound.start(1)], text[bound.end(1) :]
            range_begins = re.search(r"\[\s*\d+\s*,\s*$|inclusive\) to\s*$", before, re.IGNORECASE)
            exclusive = _BELOW.search(before) or (range_begins and _OPEN_END.match(after))
            return _parse_number(bound[1]) - bool(exclusive)
    return None


def _parse_number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))


def _read_size_fields(body: object, depth: int = 0) -> str:
    """Return sizes in fields of their own, whatever the vendor calls them, in the words of the patterns."""
    if isinstance(body, list):
        return " ".join(_read_size_fields(one, depth + 1) for one in body)
    if not isinstance(body, Mapping) or depth > _DEEPEST:
        return ""
    words = []
    for name, value in body.items():
        if isinstance(value, int) and not isinstance(value, bool):
            words += [
                f"{word}: {value}"
                for word, pattern in _FIELDS
                if re.search(pattern, str(name), re.IGNORECASE)
            ][:1]
        else:
            words.append(_read_size_fields(value, depth + 1))
    return " ".join(filter(None, words))
