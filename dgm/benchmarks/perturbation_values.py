"""Other values for literals of a test file: same type, similar size and shape, written in the same style.

A changed test must not be recognisable by its values, so each word keeps its length and each number its digits.
"""

import random
import re
from collections.abc import Collection

from dgm.syntax import literal

TRIES = 200
FAR = 100
"""A changed number differs by more than this many tolerances of its assertion."""
_VOWELS, _CONSONANTS = "aeiou", "bcdfghklmnprstvw"
_ESCAPE = re.compile(r"\\(?:N\{[^}]*\}|x..|u.{4}|U.{8}|[0-7]{1,3}|.)", re.DOTALL)
_RUN = re.compile(r"[A-Za-z]+|[0-9]+")
_PREFIX = re.compile(r"[rbuRBU]{1,2}(?=['\"])")
_EMPTY = re.compile(r"[rbuRBU]{0,2}(''|\"\")")


def other_value(text: str, rng: random.Random, taken: Collection[str], tolerance: float = 0.0) -> str | None:
    """Return the source text of another value than the literal's, or None if there is none.

    Args:
        text: source text of a number, string, bytes, ``True``, ``False``, ``None``, or a list, tuple or dict without
            elements.
        rng: source of the choice.
        taken: values that must not come up, as ``repr`` writes them.
        tolerance: maximum difference at which the assertion takes two numbers as equal.
    """
    try:
        old = literal(text)
    except (ValueError, SyntaxError):
        return None
    match old:
        case bool():
            return repr(not old)
        case None:
            return rng.choice(["True", "False"])
        case int() | float():
            return _other_number(text, old, rng, taken, tolerance)
        case str() | bytes():
            return _other_text(text, old, rng, taken)
        case [] | ():
            new = repr(make_word(rng, 5))
            return f"[{new}]" if isinstance(old, list) else f"({new},)"
        case {}:
            return f"{{{make_word(rng, 4)!r}: {rng.randrange(1, 9)}}}"
        case _:
            return None


def make_word(rng: random.Random, length: int) -> str:
    """Return a pronounceable word of lower-case letters."""
    first = rng.randrange(2)
    return "".join(rng.choice((_CONSONANTS, _VOWELS)[(first + n) % 2]) for n in range(length))


def _other_number(
    text: str, old: float, rng: random.Random, taken: Collection[str], tolerance: float
) -> str | None:
    far = max(FAR * tolerance, 0.1 * abs(old) if isinstance(old, float) else 0.0)
    for number in range(TRIES):
        # Short numbers may all be in use; then a digit is added.
        digits = _other_digits(text, rng, number // (TRIES // 4))
        try:
            new = literal(digits)
        except (ValueError, SyntaxError):
            continue
        if type(new) is type(old) and abs(new - old) > far and repr(new) not in taken:
            return digits
    new = old + 3 * far + 1
    return repr(type(old)(new)) if abs(new) < 1e15 else None


def _other_digits(text: str, rng: random.Random, more: int) -> str:
    prefix = text[:2].lower() if text[:2].lower() in ("0x", "0o", "0b") else ""
    if prefix:
        alphabet = {"0x": "0123456789abcdef", "0o": "01234567", "0b": "01"}[prefix]
        body = "".join(each if each == "_" else rng.choice(alphabet) for each in text[2:])
        return text[:2] + body + "".join(rng.choice(alphabet) for _ in range(more))
    mantissa, mark, exponent = re.fullmatch(r"([^eEjJ]*)([eEjJ]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    whole, dot, rest = mantissa.partition(".")
    new = "".join(rng.choice("0123456789") if each.isdigit() else each for each in whole)
    if new and (len(new) > 1 or not dot) and not (new == "0" and dot):
        new = rng.choice("123456789") + new[1:]
    new += "".join(rng.choice("0123456789") for _ in range(more))
    rest = "".join(rng.choice("123456789") if each.isdigit() else each for each in rest)
    return new + dot + rest + mark + exponent


def _other_text(text: str, old: str | bytes, rng: random.Random, taken: Collection[str]) -> str | None:
    if not old:
        found = _EMPTY.search(text)
        return text[: found.start(1) + 1] + make_word(rng, 5) + text[found.end(1) - 1 :] if found else None
    blocked = [found.span() for pattern in (_ESCAPE, _PREFIX) for found in pattern.finditer(text)]
    runs = [
        run for run in _RUN.finditer(text) if not any(a < run.end() and run.start() < b for a, b in blocked)
    ]
    for _ in range(TRIES if runs else 0):
        run = rng.choice(runs)
        new = (
            text[: run.start()] + "".join(_other_character(each, rng) for each in run[0]) + text[run.end() :]
        )
        if _is_other(new, old, taken):
            return new
    return _longer_text(text, old, rng, taken)


def _longer_text(text: str, old: str | bytes, rng: random.Random, taken: Collection[str]) -> str | None:
    """Return the text with a word at its end: it holds no letter and no digit that could be another."""
    end = re.search(r"('''|\"\"\"|'|\")\s*\)*$", text)
    for length in range(2, 8):
        new = text[: end.start()] + make_word(rng, length) + text[end.start() :] if end else text
        if _is_other(new, old, taken):
            return new
    return None


def _is_other(text: str, old: str | bytes, taken: Collection[str]) -> bool:
    try:
        new = literal(text)
    except (ValueError, SyntaxError):
        return False
    return type(new) is type(old) and new != old and repr(new) not in taken


def _other_character(each: str, rng: random.Random) -> str:
    if each.isdigit():
        return rng.choice("123456789")
    new = rng.choice(_VOWELS if each.lower() in _VOWELS else _CONSONANTS)
    return new.upper() if each.isupper() else new
