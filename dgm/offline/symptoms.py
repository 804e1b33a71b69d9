"""The kinds of change that the words of a statement or a message make more likely."""

import re
from functools import lru_cache

_SYMPTOMS: tuple[tuple[str, str, float], ...] = (
    (r"white ?space|blanks?\b|spaces?\b|trailing|padding|indent", r"strip|missing strip|slice", 2.5),
    (
        r"upper|lower|capital|\bcase\b|letters",
        r"missing lower|missing casefold|missing upper|more arguments",
        2.5,
    ),
    (
        (
            r"shared?\b|alias|leak|should only look|original|in place|modif|also change|changes? (?:the|my|too)"
            r"|independent|\bcop(?:y|ies)\b|someone else|\bmix|alike|each other"
        ),
        r"missing (?:copy|list|dict|set|sorted|tuple)|mutable default",
        2.2,
    ),
    (r"negative|absolute|\bsign\b|below zero|minus|opposite|direction", r"missing abs|clamp|arithmetic", 2.0),
    (
        r"\border|sorted|sequence|alphabet|rank|newest|oldest|highest|latest|earliest|descending|ascending",
        r"missing (?:sorted|reversed|int|list)|drop keyword|more arguments|last for first|relation|flag",
        1.8,
    ),
    (
        (
            r"exact|bound|edge|\blast\b|\bfirst\b|one too|too (?:many|few|long|short|late|early|much)|inclusive|touch"
            r"|beyond|\blimit|at least|at most|equal|same (?:day|moment|size)|end(?:s|ing)?\b|just|until|full"
        ),
        r"relation|off by one|constant by one|drop operand|slice",
        1.6,
    ),
    (
        r"\bzero\b|\b0\b|empty|\bnone\b|missing|absent|without|blank|unset|nothing|fallback|NoneType",
        r"truth to is None|or to is not None|guard|is None to truth|more arguments|connective",
        2.0,
    ),
    (
        r"\b\w+Error\b|refus|reject|raise|exception|crash|traceback|complain|error message",
        r"guard|more arguments|relation",
        1.4,
    ),
    (
        r"instead\b.{0,80}\berror|error\b.{0,80}instead|wrong error|error handling|not an? `?\w+Error|crash|fails with",
        r"exception",
        2.5,
    ),
    (
        r"twice|double|duplicate|repeat|again|counted",
        r"missing set|delete|move|overwrite|accumulate|truth",
        1.5,
    ),
    (
        r"\blost\b|loses?|forg[eo]t|overwr|vanish|gone|disappear|accumul|\badd(?:s|ed)? up|total|sum|remember",
        r"accumulate|keep what|borrowed|missing return|move|swap statements|sibling call",
        1.6,
    ),
    (r"default|by itself|unless told", r"default|truth|or to|constant|mutable", 2.0),
    (
        r"larg|small|long(?:er|est)|short(?:er|est)|maxim|minim|wid(?:er|est)|cheap|most|least|too (?:long|short)",
        r"sibling call|clamp|relation",
        1.5,
    ),
    (r"encod|utf|unicode|accent|umlaut|latin|bytes|non-ascii", r"text|more arguments|sibling", 2.5),
    (
        r"\butc\b|time ?zone|summer|daylight|offset|local time|midnight",
        r"more arguments|sibling|other attr",
        2.0,
    ),
    (
        r"only the (?:first|last)|(?:later|other|further|remaining) ones?|the rest|stops?\b|not count|every one|all of",
        r"move|leave|missing return|delete",
        2.2,
    ),
    (r"NoneType", r"guard|missing return|truth|or to", 2.5),
    (
        r"\bfloat|decimal|round|cents?\b|fraction|integer|exactly half",
        r"arithmetic|missing (?:int|round|str)|sibling",
        1.5,
    ),
    (
        r"swap|revers|other way|backward|mirror|inside out",
        r"swap|relation|missing reversed|flag|arithmetic",
        1.8,
    ),
    (
        r"ignor|no effect|not (?:used|passed|respected)|disregard|as if",
        r"pass a parameter|other variable|other attr",
        2.0,
    ),
    (r"belongs? to|of the (?:other|wrong)|another|instead of|mistaken|confus", r"other |swap arguments", 1.4),
    (
        r"must be str|expected str|unsupported operand|not supported between",
        r"missing (?:str|int|float)",
        2.5,
    ),
)
_COMPILED = tuple((re.compile(p, re.I), re.compile(k), factor) for p, k, factor in _SYMPTOMS)


@lru_cache(maxsize=64)
def _active(text: str) -> tuple[tuple[re.Pattern[str], float], ...]:
    return tuple((kinds, factor) for pattern, kinds, factor in _COMPILED if pattern.search(text[:8000]))


@lru_cache(maxsize=4096)
def factor(text: str, operator: str) -> float:
    """Return how much more likely these words make an operator: 1.0 without a symptom, at most 4.0."""
    product = 1.0
    for kinds, weight in _active(text):
        if kinds.search(operator):
            product *= weight
    return min(product, 4.0)
