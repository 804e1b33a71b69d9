"""The names, literals and lines of code that a diff adds or removes, without comments and documentation.

Read with Pygments, which takes parts of files in many languages. A text over several lines that begins before its hunk
is taken for code, but for comments of Javadoc's form.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dgm.benchmarks.languages import Language, language_of

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_LEXERS = {
    Language.PYTHON: "python",
    Language.JAVASCRIPT: "typescript",
    Language.GO: "go",
    Language.RUST: "rust",
    Language.JVM: "kotlin",
    Language.CPP: "cpp",
}
_JVM_LEXERS = {"java": "java", "kt": "kotlin", "scala": "scala", "groovy": "groovy"}
"""Lexers of the JVM's languages by the ends of files' names."""
_INSIDE_COMMENT = re.compile(r"\s*\*(?!/?\w)|(?:(?!/\*).)*\*/", re.DOTALL)
"""The beginning of a text that begins within a comment."""
_DEFINES = frozenset({
    "def", "class", "as", "for", "let", "const", "var", "func", "fn", "function", "fun", "struct", "type",
    "interface", "enum", "val",
})  # fmt: skip
"""Words before a name that a program makes up itself."""
_IMPORTS = re.compile(
    r"\s*(?:from|import|use|export|#include)\b|.*\brequire\s*\(|\s*\w+(?:\s+as\s+\w+)?,?\s*$"
)
"""An import, or a name alone, as imports over several lines have them."""
_COMPARES = frozenset({"is", "==", "!=", "===", "!==", "not", "in"})
_QUOTED = re.compile(r"""(["'`]{3}|["'`])(.*)\1""")
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Word:
    """A name in the code of a line."""

    text: str
    line: int
    """The number of the line in its hunk's side, from 0."""
    before: str
    """The token before it, without blanks; empty at the beginning of a line."""
    after: str
    """The token after it; empty at the end of a line."""
    root: str
    """The first name of a dotted chain, as ``os`` of ``os.path.join``; the name itself without one."""
    imported: bool
    """True if its line imports something."""
    is_key: bool = False
    """True for a key in braces, as ``{ name: value }`` has it."""


@dataclass(frozen=True, slots=True)
class Side:
    """Words that one side of a diff has and the other has not."""

    words: tuple[Word, ...]
    literals: frozenset[str]
    """Contents of its texts that stand on one line."""
    lines: tuple[str, ...]
    """Lines of code without comments, stripped; empty ones are left out."""

    @property
    def names(self) -> frozenset[str]:
        """All names in its code."""
        return frozenset(word.text for word in self.words)

    @property
    def used(self) -> frozenset[str]:
        """Names that it takes from elsewhere: attributes, calls, imports, keyword arguments; not its own variables."""
        own = {word.text for word in self.words if _is_own(word)}
        return frozenset(
            word.text
            for word in self.words
            if _is_used(word) and (word.text not in own or word.before == ".")
        )


@lru_cache(16)
def read_side(diff: str, mark: str) -> Side:
    """Return the code of the lines of a git diff that have this mark.

    Args:
        diff: a unified diff; files that are no programs are left out.
        mark: ``+`` or ``-``; or a blank, for the lines that both sides have.
    """
    words: list[Word] = []
    literals: set[str] = set()
    lines: list[str] = []
    for path, hunk in _read_hunks(diff):
        language = language_of(path)
        if language is None:
            continue
        kept = [row for row in hunk if row[0] in (mark, " ")]
        wanted = {number for number, row in enumerate(kept) if row[0] == mark}
        lexer = _JVM_LEXERS.get(path.rpartition(".")[2], _LEXERS[language])
        rows = _split_rows(lexer, "\n".join(text for _, text in kept))
        for number, tokens in enumerate(rows):
            if number in wanted:
                words += _words(tokens, number)
                literals.update(_literals(tokens))
                lines.append("".join(text for kind, text in tokens if kind != "comment").strip())
    return Side(tuple(words), frozenset(literals), tuple(line for line in lines if line))


def _read_hunks(diff: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield path, and mark and text of each row, of the hunks of a diff; a removed file has the path that it had."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        patches = PatchSet(diff)
    except UnidiffParseError as error:
        raise ValueError(f"a diff cannot be read: {error}") from error
    for file in patches:
        for hunk in file:
            yield (
                file.path,
                [
                    (row.line_type, row.value.rstrip("\r\n"))
                    for row in hunk
                    if row.line_type in (" ", "+", "-")
                ],
            )


def _split_rows(lexer: str, text: str) -> list[list[tuple[str, str]]]:
    """Return the tokens of each line: their kind (``name``, ``string``, ``comment`` or ``other``) and text."""
    rows: list[list[tuple[str, str]]] = [[]]
    of_jvm = lexer in _JVM_LEXERS.values()
    if of_jvm and _INSIDE_COMMENT.match(text):
        text = f"/*{text}"
    for kind, value in _find_lexer(lexer).get_tokens(text):
        name = str(kind)
        if of_jvm and "Namespace" in name and "." in value:
            pieces = re.split(r"(\.)", value.strip(";"))
            rows[-1] += [("name" if _NAME.fullmatch(piece) else "other", piece) for piece in pieces]
            continue
        if "Comment" in name or "String.Doc" in name:
            sort = "comment"
        elif "String" in name and "Affix" not in name and value not in ("{", "}", "${"):
            sort = "string"
        else:
            is_word = "Keyword" in name or "Operator" in name or "Literal" in name
            sort = "name" if _NAME.fullmatch(value) and not is_word else "other"
        first, *rest = value.split("\n")
        rows[-1].append((sort, first))
        rows += ([(sort, part)] for part in rest)
    return rows


def split_tokens(language: Language, text: str) -> Iterator[tuple[str, str]]:
    """Yield the tokens of a program that are no blanks: their kind, as ``comment``, and their text."""
    for row in _split_rows(_LEXERS[language], text):
        yield from ((kind, piece.strip()) for kind, piece in row if piece.strip())


@lru_cache
def _find_lexer(name: str) -> "Lexer":
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


def _words(tokens: Sequence[tuple[str, str]], line: int) -> Iterator[Word]:
    code = [(kind, text) for kind, text in tokens if kind != "comment" and text.strip()]
    imported = bool(_IMPORTS.match("".join(text for _, text in tokens)))
    roots: list[str] = []
    braces = 0
    for number, (kind, text) in enumerate(code):
        before = code[number - 1][1].strip() if number else ""
        after = code[number + 1][1].strip() if number + 1 < len(code) else ""
        chained = before in (".", "?.", "::") and number > 1 and code[number - 2][0] == "name"
        roots.append(roots[number - 2] if chained else text)
        braces += (text == "{") - (text == "}")
        if kind == "name":
            is_key = braces > 0 and after == ":" and before in ("{", ",")
            yield Word(text, line, before, after, roots[number], imported, is_key)


def _literals(tokens: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the contents of the texts that begin and end on one line; a text with values in it is none."""
    text = ""
    for kind, piece in (*tokens, ("other", "")):
        if kind == "string":
            text += piece
        else:
            if (whole := _QUOTED.fullmatch(text)) and whole[2].strip():
                yield whole[2]
            text = ""


def _is_own(word: Word) -> bool:
    return word.before in _DEFINES or (word.after in ("=", ":=") and word.before not in ("(", ",", "."))


def _is_used(word: Word) -> bool:
    if word.before in _DEFINES and not word.imported:
        return False
    keyword = word.after == "=" and word.before in ("(", ",")
    if len(word.text) < 3:
        # A variable, unless the form says otherwise.
        return word.imported or word.is_key or word.before == "." or keyword
    return (
        word.imported
        or word.is_key
        or word.before in (".", "?.", "::", "->", *_COMPARES)
        or word.after in ("(", "{")
        or keyword
    )
