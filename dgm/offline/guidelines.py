"""Ideas that the model recognises in the system text and obeys.

Only the scaffold's system text counts: tool output never sets a guideline. A sentence is matched against short
patterns (a verb near an object), and a negation before the match turns it off.
"""

import re
from collections.abc import Mapping
from enum import StrEnum


class Concept(StrEnum):
    """One idea a prompt can convey; the value names it in tests and reports."""

    SEVERAL_CALLS = "several calls"
    TESTS_FIRST = "tests first"
    REPRODUCE = "reproduce"
    PLAN_FIRST = "plan first"
    NO_TESTS = "no tests"
    FINISH_EARLY = "finish early"
    SMALLEST = "smallest change"
    REVIEW = "review the diff"
    MORE_FIXES = "more than one fix"
    RELATED = "related code"
    READ_TESTS = "read the tests"
    TARGETED = "targeted tests"
    WHOLE_FILE = "whole file"
    UNTIL_DONE = "until done"
    TRACE = "trace"


CONCEPTS: Mapping[Concept, str] = {
    Concept.SEVERAL_CALLS: "You may call several tools in one reply.",
    Concept.TESTS_FIRST: "Run the tests before you change anything.",
    Concept.REPRODUCE: "Reproduce the problem with a small script before you fix it, and run it again afterwards.",
    Concept.PLAN_FIRST: "First write down a short plan.",
    Concept.NO_TESTS: "Do not run the tests.",
    Concept.FINISH_EARLY: "Stop after your first edit.",
    Concept.SMALLEST: "Make the smallest change that works.",
    Concept.REVIEW: "Review the diff before you finish.",
    Concept.MORE_FIXES: "Look for more than one possible fix.",
    Concept.RELATED: "Read the related code before you edit: callers and imported modules.",
    Concept.READ_TESTS: "Read the tests of the code that you change.",
    Concept.TARGETED: "Run only the test modules that matter, not the whole suite.",
    Concept.WHOLE_FILE: "Read the whole file before you edit it.",
    Concept.UNTIL_DONE: "Go on until you have said DONE.",
    Concept.TRACE: "Trace which lines the failing test or example runs, and suspect those first.",
}
"""A canonical sentence for each concept, for authors of prompts."""

_TEST = r"\b(?:tests?|test suite|unit tests?|checks)\b"
_RUN = r"\b(?:run|running|execute|executing|start|launch|invoke)\b"
_PATTERNS: tuple[tuple[Concept, str], ...] = (
    (
        Concept.SEVERAL_CALLS,
        (
            r"\b(?:several|multiple|many|more than one|parallel|two or more|a few|batch(?:es)?(?: of)?"
            r"|all independent)\b"
            r".{0,30}\b(?:tools?|calls?|commands?|actions?)\b|\b(?:tool calls|calls|tools)\b.{0,25}"
            r"\b(?:in parallel|at once|together|in one (?:reply|turn|message|step|response))\b"
        ),
    ),
    (
        Concept.TESTS_FIRST,
        (
            rf"{_RUN}.{{0,40}}{_TEST}.{{0,30}}\b(?:before|first|at the start|to begin|initially)\b"
            rf"|\b(?:first|before|begin|start by|initially)\b.{{0,50}}{_RUN}.{{0,30}}{_TEST}"
            rf"|\b(?:start|begin) (?:by|with) (?:running |executing )?.{{0,20}}{_TEST}|{_TEST} first\b"
        ),
    ),
    (
        Concept.REPRODUCE,
        (
            r"\breproduc(?:e|es|ing|tion)\b|\brepro\b|\b(?:write|make|build|create)\b.{0,25}\bscript\b.{0,60}"
            r"\b(?:shows?|demonstrat\w+|trigger\w*|exhibit\w*|confirm\w*)\b"
        ),
    ),
    (
        Concept.PLAN_FIRST,
        (
            r"\b(?:write|make|state|draft|outline|give|sketch|form|present|lay out|set out|prepare|think)\b.{0,30}"
            r"\bplan\b|\bplan\b.{0,25}\b(?:first|before)\b|\b(?:first|before)\b.{0,40}\bplan\b"
        ),
    ),
    (Concept.NO_TESTS, rf"{_RUN}.{{0,25}}{_TEST}|\b(?:waste|spend)\b.{{0,25}}{_TEST}"),
    (
        Concept.FINISH_EARLY,
        (
            r"\b(?:stop|finish|done|end|quit|conclude)\b.{0,30}\b(?:after|once|as soon as|when)\b.{0,25}"
            r"\b(?:first|one|single|an)\b.{0,12}\b(?:edit|change|fix|modification)\b"
            r"|\b(?:after|once|as soon as)\b.{0,20}\b(?:first|one|single)\b.{0,12}\b(?:edit|change|fix|modification)\b"
            r".{0,30}\b(?:stop|finish|done|end|quit|conclude)\b"
        ),
    ),
    (
        Concept.SMALLEST,
        (
            r"\b(?:smallest|minimal|tiniest|least)\b.{0,25}\b(?:change|edit|fix|diff|patch)\b"
            r"|\b(?:changes?|edits?|fix|diff|patch)\b.{0,20}\b(?:small|minimal|as little)\b|\bas little as\b"
        ),
    ),
    (
        Concept.REVIEW,
        (
            r"\b(?:review|check|inspect|look (?:at|over)|re-?read|examine|show|read)\b.{0,30}"
            r"\b(?:diff|your (?:own )?(?:changes?|edits?|patch)|what you (?:have )?changed)\b"
        ),
    ),
    (
        Concept.MORE_FIXES,
        (
            r"\b(?:more than one|several|multiple|alternative|different|other|further|second|two)\b.{0,20}"
            r"\b(?:fix(?:es)?|repairs?|solutions?|causes?|hypothes[ei]s|explanations?)\b"
        ),
    ),
    (
        Concept.RELATED,
        (
            r"\b(?:related|neighbou?ring|surrounding|connected|dependent|adjacent)\b.{0,20}"
            r"\b(?:code|files?|modules?|functions?)\b"
            r"|\b(?:read|look at|inspect|study|check|open|follow)\b.{0,40}\b(?:callers?|imports?|imported"
            r"|callees?|depends)\b"
        ),
    ),
    (
        Concept.READ_TESTS,
        rf"\b(?:read|look at|inspect|study|open|view|examine|understand)\b.{{0,20}}{_TEST}",
    ),
    (
        Concept.TARGETED,
        (
            rf"{_RUN}.{{0,12}}\b(?:only|just|single|individual|specific|relevant|targeted)\b.{{0,25}}{_TEST}"
            rf"|\b(?:only|just)\b.{{0,12}}{_RUN}.{{0,25}}{_TEST}|\btargeted {_TEST}"
            rf"|\bone test (?:file|module|class) at a time\b"
        ),
    ),
    (
        Concept.WHOLE_FILE,
        (
            r"\b(?:read|view|see|look at|open|show)\b.{0,20}\b(?:whole|entire|complete|all of the|full|every line of)\b"
            r".{0,12}\b(?:files?|modules?)\b|\b(?:files?|modules?)\b.{0,12}\b(?:in full|completely|entirely"
            r"|to the end)\b"
        ),
    ),
    (
        Concept.UNTIL_DONE,
        (
            r"\b(?:go on|continue|carry on|keep (?:going|working|calling|trying)|work on|proceed|do not stop|don't stop"
            r"|never stop)\b.{0,60}\b(?:until|till|unless|before)\b.{0,40}\bdone\b"
        ),
    ),
    (
        Concept.TRACE,
        (
            r"\b(?:trace|tracing|record|measure|find out|determine|collect)\b.{0,30}\b(?:lines|coverage|code paths?)\b"
            r"|\b(?:lines|coverage)\b.{0,30}\b(?:traced?|recorded?|measured?|covered|executed)\b"
            r"|\btrac(?:e|ing)\b.{0,25}\b(?:tests?|examples?|failures?|execution)\b"
        ),
    ),
)
_COMPILED = tuple((concept, re.compile(pattern, re.I)) for concept, pattern in _PATTERNS)
_SENTENCE = re.compile(
    r"(?<=[.;!?:])\s+|\n\s*\n|\n\s*[-*]\s*|\s+but\s+|,\s*(?=(?:do not|don't|never|avoid)\b)", re.I
)
_NOT = re.compile(
    r"\b(?:not|never|avoid|without|no need|skip|refrain|rather than|instead of|no longer|unnecessary|forbidden"
    r"|cannot|can't|don't|dont|doesn't|needn't|mustn't|shouldn't|won't)\b|n't\b",
    re.I,
)
_ONLY_ONE = re.compile(
    r"\b(?:only|exactly|just|at most) (?:one|a single)\b|\bone (?:tool |call )?at a time\b", re.I
)
_LIMIT = 40_000


def recognise_concepts(system: str) -> frozenset[Concept]:
    """Return the concepts that a system text asks for."""
    found: set[Concept] = set()
    for raw in _SENTENCE.split(system[:_LIMIT]):
        sentence = " ".join(raw.split())[:400]
        for concept, pattern in _COMPILED:
            if _asks(concept, pattern, sentence):
                found.add(concept)
    return frozenset(found)


def _asks(concept: Concept, pattern: re.Pattern[str], sentence: str) -> bool:
    match = pattern.search(sentence)
    if match is None:
        return False
    negated = _is_negated(sentence, match)
    if concept is Concept.NO_TESTS:
        timed = re.search(
            r"\b(?:before|first|until|only|whole|all|entire|without|again|through)\b", sentence, re.I
        )
        return negated and not timed
    if concept is Concept.UNTIL_DONE:
        return True
    if concept is Concept.SEVERAL_CALLS and _ONLY_ONE.search(sentence):
        return False
    return not negated


def _is_negated(sentence: str, match: re.Match[str]) -> bool:
    """Return whether a negation stands shortly before the match or inside it."""
    before = sentence[max(0, match.start() - 45) : match.start()]
    return bool(_NOT.search(before) or _NOT.search(match[0]))
