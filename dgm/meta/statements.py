"""Read an agent's statement on its finished work in a marked line, such as ``Rationale: …``, in the manners of models.

The mark may be bold, a heading, a key of JSON or in other case, and the text may stand in the next line. Thinking, a
repetition of what was asked for and a placeholder are no statement.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from dgm.messages import Message, Role
from dgm.meta.answer_objects import drop_thinking

_MARKUP = " \t\r*_`\"'>#"
_BEFORE = r"(?:^[ \t>#*_`\"\-]*(?:\d{{1,2}}[.)][ \t*_]*)?(?i:{0})|(?<=[.!?;] )[*_]{{0,2}}{0})"
_LABEL = _BEFORE + r"[*_`\"]{{0,3}}[ \t]*(?:[:\uff1a]|[-\u2013\u2014](?=\s))(.*)$"
_HEADING = r"^[ \t]*(?:#{{1,6}}[ \t]*|\*\*|__)(?i:{0})[ \t*_#]*$()"
_MEMBER = r"\"(?i:{0})\"\s*:\s*(\"(?:[^\"\\]|\\.)*\")()"
_NEAR = 2_000
"""Characters after a mark within which its text begins."""
_PLACEHOLDER = re.compile(r"<[^>]*>|[.\u2026\s]*|\[[^\]]*\]")
_MARKS = ("rationale", "general")
"""Arguments whose name is the mark."""
_HANDS_IN = re.compile(r"(?i)submit|finish|done|complete|final")
"""Names of tools by which an agent hands in its work."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_SAYS_NOTHING = re.compile(r"(?i)\W*(?:done|finished|ok(?:ay)?|rationale\W*(?:<[^>]*>|\[[^\]]*\])?)?\W*")


def find_statement(conversation: Sequence[Message], mark: str) -> str:
    """Return the text after the last mark in the model's own words, in one line; empty if there is none.

    Args:
        conversation: the messages of a job.
        mark: the word before the colon, with a capital.
    """
    found = [text for message in _list_words(conversation) for text in _find_marked(message, mark)]
    return found[-1] if found else ""


def find_last_words(conversation: Sequence[Message]) -> str:
    """Return the first line of the model's last message that says something; empty if there is none."""
    for words in [*_list_words(conversation)][-1:]:
        for line in words.splitlines():
            if not _FENCE.match(line) and not _SAYS_NOTHING.fullmatch(line):
                return " ".join(line.split())
    return ""


def _list_words(conversation: Sequence[Message]) -> Iterator[str]:
    """Yield the texts of the model without thinking, and those with which it hands in its work by a call."""
    for message in conversation:
        if message.role is not Role.ASSISTANT:
            continue
        if message.text.strip():
            yield drop_thinking(message.text.replace("\r\n", "\n"))
        for call in message.calls:
            if _HANDS_IN.search(call.name):
                yield from _list_texts(call.arguments)


def _list_texts(arguments: str) -> Iterator[str]:
    """Yield the texts among a call's arguments."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return
    values = given.items() if isinstance(given, dict) else ()
    for name, value in values:
        if isinstance(value, str) and value.strip():
            yield f"{name.capitalize()}: {value}" if name.lower() in _MARKS else value


def _find_marked(text: str, mark: str) -> Iterator[str]:
    """Yield what stands after each mark of a text, in order."""
    shapes = (shape.format(re.escape(mark)) for shape in (_LABEL, _HEADING, _MEMBER))
    places = sorted((found.end(), found[1]) for shape in shapes for found in re.finditer(shape, text, re.M))
    for end, told in places:
        said = _clean(told)
        if not said:
            said = next((_clean(line) for line in text[end : end + _NEAR].splitlines() if _clean(line)), "")
            said = "" if re.match(r"[A-Z][a-z]+[:\uff1a]", said) else said
        if said and not _PLACEHOLDER.fullmatch(said):
            yield said


def _clean(told: str) -> str:
    """Return a text in one line without marks of layout around it; a fence is none."""
    if _FENCE.match(told):
        return ""
    if told.startswith('"') and told.endswith('"') and len(told) > 1:
        with suppress(ValueError):
            told = str(json.loads(told))
    return " ".join(told.split()).lstrip(_MARKUP).rstrip(_MARKUP.replace(">", ""))
