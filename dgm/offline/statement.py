"""The parsed problem statement: words, names of code, and the example that shows the problem."""

import re
from dataclasses import dataclass
from functools import lru_cache

_LIMIT = 20_000
_WORD = re.compile(r"[A-Za-z][a-z]{2,30}|[A-Z]{2,12}(?![a-z])")
_NAME = re.compile(
    r"`([A-Za-z_][\w.]{0,80})(?:\([^`]{0,120}\))?`|\b([A-Za-z_]\w{1,60})\(|\b([a-z]+_\w{1,60})\b"
)
_CAMEL = re.compile(r"\b([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Z]\w+Error)\b")
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
_EXPECTED = re.compile(r"^Expected:\s*`(.{1,2000}?)`\s*$", re.M)
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(|\.([A-Za-z_]\w*)\b")
_STOP = frozenset(  # a text reads better than some two hundred quoted words
    (  # noqa: SIM905
        "the and for that this with from not are was has have had but all any its into out one two "
        "should must when what which while than then them they there their can does did will would could "
        "also only even who how why our you your his her she him been being were over under very more "
        "most some such each other another own same just like expected example import python work "
        "repository done comes gets give given gives get got make made instead right wrong fine nothing "
        "something everything always never although though because after before between about without "
        "whether still yet may might see say says said use used uses using want way well where here now "
        "try assert true false none self return def class test tests"
    ).split()
)
_SPECIAL = (
    (r"\bstr\(|\bprint\(|f\"", "__str__"), (r"\brepr\(", "__repr__"), (r"\blen\(", "__len__"),
    (r"(?<!for )\b\w+ (?:not )?in\b", "__contains__"),
    (r"\blist\(|\bsorted\(|\bfor\b", "__iter__"), (r" == ", "__eq__"),
    (r" & ", "__and__"), (r" \| ", "__or__"), (r" - ", "__sub__"), (r" \+ ", "__add__"), (r" \* ", "__mul__"),
    (r" < |\bsorted\(|\bmax\(|\bmin\(", "__lt__"), (r"\w\[", "__getitem__"), (r"\]\s*= ", "__setitem__"),
    (r" / ", "__truediv__"), (r" \^ ", "__xor__"), (r"\bdel\b", "__delitem__"), (r"\bhash\(|\{", "__hash__"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Example:
    """Lines to run, the last of them an expression, and the expected result: a literal or an exception's name."""

    lines: tuple[str, ...]
    expected: str

    @property
    def raises(self) -> bool:
        """Whether an exception is expected."""
        return bool(re.fullmatch(r"(?:\w+\.)*[A-Z]\w*", self.expected)) and self.expected not in _CONSTANTS


_CONSTANTS = ("None", "True", "False", "Ellipsis")


@dataclass(frozen=True, slots=True)
class Statement:
    """A problem, parsed.

    Attributes:
        text: the problem without listed paths and the place of the repository.
        words: content words, lower case and without a plural's ending.
        names: names of code, most telling first.
        called: names that the example calls.
        example: the lines to run, if the problem has an example.
    """

    text: str
    words: frozenset[str]
    names: tuple[str, ...]
    called: frozenset[str]
    example: Example | None


@lru_cache(maxsize=64)
def parse_statement(problem: str) -> Statement:
    """Parse a problem; leave out any listing of files in it."""
    kept = [row for row in problem[:_LIMIT].split("\n") if not _is_path(row)]
    text = "\n".join(row for row in kept if not re.match(r"The repository is (?:in|at) ", row))
    prose = _FENCE.sub(" ", text)
    example = _example(text)
    code = "\n".join(example.lines) if example else "\n".join(_FENCE.findall(text))
    called = names_called(code)
    found = [next(group for group in match.groups() if group) for match in _NAME.finditer(prose)]
    found += [match[1] for match in _CAMEL.finditer(prose)]
    names = dict.fromkeys(part for name in found for part in name.split(".") if len(part) > 1)
    return Statement(
        text=text,
        words=frozenset(stem(word) for word in words(prose)) - _STOP,
        names=tuple(dict.fromkeys([*names, *sorted(called)])),
        called=frozenset(called),
        example=example,
    )


def words(text: str) -> list[str]:
    """Return the content words of prose or code in lower case, identifiers split at capitals and underscores."""
    return [word.lower() for word in _WORD.findall(text.replace("_", " ")) if word.lower() not in _STOP]


def stem(word: str) -> str:
    """Remove the commonest endings of a word, so that "shares" matches "share"."""
    for ending in ("ings", "ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def names_called(code: str, *, special: bool = True) -> frozenset[str]:
    """Return the names that a piece of code calls or accesses as attributes.

    Args:
        code: the source text.
        special: whether to add the methods behind operators and built-ins.
    """
    found = {first or second for first, second in _CALLED.findall(code[:_LIMIT])}
    if special:
        found |= {name for pattern, name in _SPECIAL if re.search(pattern, code[:_LIMIT])}
    if any(name[:1].isupper() for name in found):
        found.add("__init__")
    return frozenset(found - {"self", "assertEqual", "assertTrue", "assertRaises", "import", "from"})


def _is_path(row: str) -> bool:
    return bool(re.fullmatch(r"\s*(?:[-*] )?(?:\./)?[\w./-]+\.\w{1,5}\s*", row))


def _example(text: str) -> Example | None:
    expected = _EXPECTED.search(text)
    if expected is None:
        return None
    rows: list[str] = []
    for block in _FENCE.findall(text):
        for row in block.split("\n"):
            if row.startswith(">>> "):
                rows.append(row[4:])
            elif row.startswith("... ") and rows:
                rows[-1] += "\n" + row[4:]
            elif row.rstrip() == "..." and rows:
                rows[-1] += "\n"
    if not rows or len(rows) > 60:
        return None
    return Example(tuple(rows), expected[1])
