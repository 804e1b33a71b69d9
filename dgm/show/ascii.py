"""Characters that a terminal may not have, written with those that every terminal has.

Lists replace each mark by one character, so that columns stay where they are. Other text may grow: ``…`` becomes
``...``. Characters with no twin become escapes, so that nothing is lost and nothing fails.
"""

import codecs
from collections.abc import Mapping

_FROM = "★◆●✎⏸†✓✗·█░…–│├└─→▸⠤‹»—−×÷‘’“”•▲▼◂▾▴↑↓←"
_TO = "*+oew!vx.#.~-||`->>-<>--x/''\"\"*^v<v^^v<"
MARKS: Mapping[int, str] = {ord(mark): twin for mark, twin in zip(_FROM, _TO, strict=True)}
"""Marks and their ASCII twins, one character for one."""
LONGER: Mapping[str, str] = {
    "…": "...",
    "→": "->",
    "←": "<-",
    "—": "--",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "±": "+-",
    "“": '"',
    "”": '"',
    "„": '"',
}
"""ASCII twins for texts that may grow."""
INSTEAD = "dgm.ascii"
"""Name of the error handler that writes characters which an encoding lacks."""
_BOXES = range(0x2500, 0x2580)
_BLOCKS = range(0x2580, 0x25A0)
_LEVEL = "─━┄┅┈┉╌╍═╴╶╸╺╼╾"
_UPRIGHT = "│┃┆┇┊┋╎╏║╵╷╹╻╽╿"


def marks_to_ascii(text: str) -> str:
    """Return a line of a list with its marks as ASCII, as many characters as before."""
    return text.translate(_ONE_FOR_ONE)


def text_to_ascii(text: str) -> str:
    """Return a text whose marks are ASCII; it may be longer than before."""
    return "".join(character if character.isascii() else _ascii_twin(character) for character in text)


def _ascii_twin(character: str) -> str:
    twin = LONGER.get(character) or _ONE_FOR_ONE.get(ord(character))
    return twin or character


def _box_table() -> dict[int, str]:
    drawn = dict.fromkeys(_BOXES, "+")
    drawn |= {ord(character): "-" for character in _LEVEL} | {ord(character): "|" for character in _UPRIGHT}
    return drawn | dict.fromkeys(_BLOCKS, "#")


_ONE_FOR_ONE: Mapping[int, str] = {**_box_table(), **MARKS}


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_escape_character, error.object[error.start : error.end])), error.end


def _escape_character(character: str) -> str:
    known = _ascii_twin(character)
    if known != character:
        return known
    # A byte of a name that is no text stands as a lone surrogate.
    code = ord(character) - 0xDC00 if "\udc80" <= character <= "\udcff" else ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


codecs.register_error(INSTEAD, _replace_unencodable)
