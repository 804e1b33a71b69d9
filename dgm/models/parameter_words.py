"""Words by which providers name parameters of a request, and by which they refuse them."""

import re
from collections.abc import Mapping


def _compile_any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


STRUCTURE = frozenset(
    ("model", "messages", "input", "system", "instructions", "tools", "functions", "function_call", "prompt",
     "previous_response_id", "conversation")
)  # fmt: skip
"""Keys of a body that are never left out."""
ANSWER = frozenset(
    ("response_format", "text.format", "output_config.format", "output_format", "n", "modalities", "audio")
)  # fmt: skip
"""Parameters whose omission would change the answer."""
PARTS_OF_TURNS = frozenset(
    ("role", "content", "type", "tool_call_id", "call_id", "tool_calls", "output", "arguments", "text", "id", "input",
     "tool_use_id", "source", "image_url", "encrypted_content", "signature", "thinking", "data", "summary")
)  # fmt: skip
PARTS_OF_TOOLS = frozenset(
    ("name", "description", "parameters", "input_schema", "type", "function", "format")
)
SCHEMA_NOTES = frozenset(
    ("$schema", "additionalProperties", "title", "default", "examples", "$id", "$comment", "propertyNames", "format",
     "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "strict", "deprecated", "readOnly",
     "minItems", "maxItems", "uniqueItems", "multipleOf")
)  # fmt: skip
"""Keywords of a schema that a model does not need to write its answer."""
INNER = frozenset(
    ("effort", "verbosity", "budget_tokens", "include_usage", "include_obfuscation", "summary", "format",
     "disable_parallel_tool_use", "generate_summary", "display")
)  # fmt: skip
"""Keys within objects of the body that are blamed separately from the object."""
COMMON_WORDS = frozenset(
    ("n", "user", "stop", "store", "include", "text", "reasoning", "thinking", "metadata", "name", "status", "refusal",
     "strict", "seed", "audio", "truncation", "think", "format", "summary", "effort", "models", "plugins", "provider")
)  # fmt: skip
"""Names that are also ordinary words: they count only in quotes, or beside a word such as parameter."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
KNOWN_VALUES: Mapping[str, tuple[str, ...]] = {
    "reasoning_effort": EFFORTS,
    "reasoning.effort": EFFORTS,
    "output_config.effort": EFFORTS,
    "verbosity": EFFORTS,
    "text.verbosity": EFFORTS,
}
"""Values that some model accepts; a refusal of any other is the agent's own fault."""
PHRASES: Mapping[str, str] = {
    "thinking": r"(?:support|extended|adaptive) thinking|thinking\.(?:type|adaptive|enabled|budget_tokens)",
    "think": r"support thinking",
    "reasoning_effort": r"support (?:thinking|reasoning)|reasoning[ .]effort|thinking level|^reasoning (?:is|mode)",
    "reasoning": r"support (?:thinking|reasoning)|reasoning[ _]effort|^reasoning (?:is|mode|cannot)",
    "reasoning.effort": r"reasoning[ _]effort|support thinking|thinking level",
    "enable_thinking": r"support thinking|enable.thinking",
    "stream": r"(?:support|support for|allow) stream(?:ing|ed)?\b(?! options)|streaming\b",
    "include": r"encrypted content",
    "response_format": r"structured outputs?|json[ _](?:schema|mode|object)|guided decoding",
    "text.format": r"structured outputs?|json[ _](?:schema|mode|object)|text\.format|response_format",
    "output_config.format": r"structured outputs?|json[ _]schema|output_format",
    "logprobs": r"log ?prob(?:abilitie)?s",
    "stop": r"stop (?:sequences?|words?)",
    "tool_choice": r"tool.?choice|forced? tool use|forced function calling",
    "n": r"multiple (?:choices|completions)|\bn ?[>=]+ ?\d|more than (?:one|1) (?:choice|completion)",
    "stream_options": r"stream options|include_usage",
    "prediction": r"predicted outputs?",
}
"""Other expressions by which sentences name a parameter."""

REFUSED = _compile_any(
    r"unsupported",
    r"(?:not|n[o'’]t|cannot be|never) (?:\w+ )?(?:be )?(?:support|permit|allow|accept|recogni[sz]|available|enabled)",
    r"(?:not|n[o'’]t|cannot be|never) (?:\w+ )?(?:be )?(?:implement|compatible|used|use\b|set\b)",
    r"(?:not|n[o'’]t|cannot be|never) (?:\w+ )?(?:be )?(?:specif|combin|yet|exist)",
    r"not (?:a )?valid (?:param|arg)|isn[’']t support|do(?:es)? not work",
    r"unknown|unrecogni[sz]ed|unexpected|incompatible|removed|disabled|reject|deprecated|no longer",
    r"extra (?:input|field)|extraneous|extra_forbidden|additional propert|cannot find field|no endpoints found",
    r"only (?:the )?(?:default|one|supports?|\S+ (?:is|are) (?:allowed|supported))|cannot both|can'?t|or unset",
    r"must be (?:null|unset|omitted|removed|set to)|may only be|is fixed|can only be",
    r"不支持|不允许|未知|无效|参数错误|非法|不可用|不被支持",
)
"""Pattern of a text that refuses something."""
WRONG = _compile_any(r"invalid|must|should|expected|only|wrong|incorrect|out of range|error|必须|范围|应")
"""Pattern of a text that calls something wrong, possibly its value."""
SURE_WORDS = _compile_any(
    r"unknown_(?:parameter|field|argument)", r"unrecognized_\w+", r"extra_forbidden", r"UnsupportedParamsError",
    r"wrong_api_format", r"unsupported_\w+",
)  # fmt: skip
"""Codes that refuse the named parameter."""
BOUNDS = _compile_any(
    r"between\s+\S+\s+and|range|(?:less|greater|smaller|larger|lower|higher|bigger) than|at (?:least|most)",
    r"(?:above|below) (?:the )?m|[<>]=?\s*-?\d|≤|≥|m(?:ax|in)imum|non-?negative|positive",
    r"[\[(]\s*-?\d[\d.]*\s*,|too (?:large|small|high|low)|exceeds",
)
ONE_VALUE = _compile_any(
    r"only (?:the )?default|only \S+ (?:is|are) (?:allowed|supported)|only supports? (?:the default|\d|temperature ?=)",
    r"may only be|or unset|omit|is fixed|deprecated|unsupported (?:parameter|value)",
    r"must be (?:exactly )?(?:set to |equal to )?1(?:\.0)?\b(?! and)",
)
"""Pattern of a text that restricts a parameter to one value, or to none."""
WRONG_TYPE = _compile_any(
    r"invalid type|should be a valid|not of type",
    r"must be (?:an? )?(?:number|string|integer|bool\w*|object|array|list)",
    r"expected (?:an? )?(?:number|string|integer|bool\w*|object|array|decimal|float)",
)
TOO_LONG = _compile_any(r"(?:array|string|list|value) (?:is )?too long|maximum length|too many \w+")
OWN_SCHEMA = _compile_any(
    r"invalid schema|schema.{0,60}(?:must|required to be|missing)|must contain the word"
)
TOGETHER = _compile_any(r"\bboth\b|together|same time|mutually|use only one|conflict|either|simultaneous")
MANY = _compile_any(r"(?:parameters|params|arguments|fields|properties|inputs|keys)\b.*,")
ADVICE = _compile_any(
    r"expected (?:one of|only)|did you mean|\bunless\b|\binstead\b|, (?:please )?use |to use ",
    r"(?<!un)(?:supported|allowed|permitted|available) (?:param|arg|field|propert|value|key|option)",
    r"(?<!in)valid (?:param|arg|field|propert|value|key|option)",
)
"""Pattern after which a sentence says what would be accepted."""
KINDS = _compile_any(
    r"str|int|float|bool|list|dict|string|number|integer|boolean|array|object|none|enum|literal|.*\W.*"
)
"""Words by which validators end a place: the kind that they tried."""
ADAPTIVE = _compile_any(r"use.{0,9}thinking\.type\.adaptive")
LISTED_VALUES = _compile_any(
    r"supported values are|expected one of|must be one of|should be|one of:?|supported:|valid values"
)
SENTENCES = re.compile(r"(?<=[.;!?])\s+|(?<=[。；！])|\n|,?\s*(?=#[/:])|(?<=permitted): ")
BEGUN_BY_PLACE = re.compile(r"(?:^|[;\n] ?)([a-z]\w*(?:\.[\w$]+|\[\d+\])+): ")
"""A validator's sentence that begins with the place: ``tools.0.custom.strict: Extra inputs …``."""
