"""Colours of source code, a line at a time: each line is read by itself, without the lines above it."""

from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from dgm.show.safe import neutralise
from dgm.show.spans import Line, Span, Tone, merge_spans

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_LEXERS = {
    ".py": "python",
    ".pyi": "python",
    ".toml": "toml",
    ".md": "markdown",
    ".sh": "bash",
    ".bash": "bash",
    ".json": "json",
    ".jsonl": "json",
}
TAB = 4
"""Cells between tab stops."""
LONGEST = 2_000
"""Maximum characters of a coloured line; a longer line is plain."""
KEPT = 4_096
"""Number of lines whose colours are remembered."""


def colour_code_line(path: str, text: str) -> Line:
    """Return a line of a file in the colours of its language.

    Python, TOML, Markdown, shell and JSON have colours, by the end of the name; other files are plain. A string or
    comment over several lines is recognised on its first line only.

    Args:
        path: the file's name.
        text: the line, without its end; neutralised here, tabs become blanks.
    """
    language = _LEXERS.get(PurePosixPath(path).suffix, "")
    return _colour_code(language, neutralise(text.replace("\n", " ")).expandtabs(TAB))


@lru_cache(KEPT)
def _colour_code(language: str, text: str) -> Line:
    if not text:
        return ()
    if not language or len(text) > LONGEST:
        return (Span(text),)
    tokens = _find_lexer(language).get_tokens(text)
    return merge_spans(Span(piece.replace("\n", ""), _tone_of(str(kind))) for kind, piece in tokens)


@lru_cache
def _find_lexer(language: str) -> "Lexer":
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


# Names of token kinds as Pygments gives them. A longer name stands before a shorter one that it contains.
_TONES = (
    ("Token.Comment", Tone.CODE_COMMENT),
    ("Token.Keyword.Constant", Tone.CODE_BUILTIN),
    ("Token.Keyword", Tone.CODE_KEYWORD),
    ("Token.Operator.Word", Tone.CODE_KEYWORD),
    ("Token.Operator", Tone.CODE_OPERATOR),
    ("Token.Literal.String", Tone.CODE_STRING),
    ("Token.Literal.Number", Tone.CODE_NUMBER),
    ("Token.Name.Decorator", Tone.CODE_DECORATOR),
    ("Token.Name.Builtin", Tone.CODE_BUILTIN),
    ("Token.Name.Function", Tone.CODE_NAME),
    ("Token.Name.Class", Tone.CODE_NAME),
    ("Token.Name.Tag", Tone.CODE_NAME),
    ("Token.Generic.Heading", Tone.CODE_NAME),
    ("Token.Generic.Subheading", Tone.CODE_NAME),
)


def _tone_of(kind: str) -> Tone:
    return next((tone for begin, tone in _TONES if kind.startswith(begin)), Tone.PLAIN)
