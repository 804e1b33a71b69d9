"""The statement of a mined task: by a model, or the failing tests themselves; never from the change of the code.

What a model writes is checked by ``leaks``. It is asked once more with what was found; a statement that fails again is
dropped. Prompts are files.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from dgm.benchmarks.mining.evidence import end_of_output, find_code
from dgm.benchmarks.mining.leaks import Evidence, find_leaks, name_parts, untold_names
from dgm.benchmarks.storable_text import cut_middle
from dgm.errors import AgentFault
from dgm.messages import AnswerForm, Message, Request, Role

PROMPTS = Path(__file__).with_name("prompts")
MESSAGE_CHARS, TESTS_CHARS, OUTPUT_CHARS = 6_000, 24_000, 8_000
"""Maximum characters of each part of a question; of a longer one the middle is left out."""
LEAST_WORDS, MOST_WORDS, MOST_SHOWN_WORDS = 8, 600, 1_500
"""Bounds of a statement; of one that shows the tests, the last."""
OTHER_RESULT = "another result than expected"
KEYS = ("title", "statement", "solvable", "why")
SKELETON = '{"title": "...", "statement": "...", "solvable": true or false, "why": "..."}'
FORM = AnswerForm(
    "issue",
    {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "statement": {"type": "string"},
            "solvable": {"type": "boolean"},
            "why": {"type": "string"},
        },
        "required": list(KEYS),
        "additionalProperties": False,
    },
)
Ask = Callable[[Request, Sequence[str], str], Awaitable[Mapping[str, object]]]
"""Asks a model: takes the request, the keys of the wanted object and its form in words; returns the object.

Raises ``AgentFault`` if no answer was usable, ``Infrastructure`` if the model failed."""
_TRAILER = re.compile(r"^[A-Z][\w-]+-[Bb]y: .*\n?|^\(?cherry picked from .*\n?", re.M)
_COMPILER = re.compile(
    r"^undefined: |^\S+ undefined \(type |^unknown field \S+ in struct literal|^error(?:\[E\d+\])?: "
    "|cannot find symbol",
    re.M,
)
_CALLED = re.compile(r"\b([A-Za-z_][\w.]*)\(")
_ORDINARY = re.compile(
    r"assert\w*|raises|expect|isinstance|len|list|dict|set|str|repr|sorted|range|subTest|print"
    r"|Errorf?|Fatalf?|Logf?|Run|Helper|Parallel|Cleanup|Setenv|Name|append|make|func|DeepEqual|Sprintf|string|panic"
    r"|NoError|EqualError|if|for|switch|byte|rune|u?int\d*|float\d*|String|Is|As|New|recover"
    r"|(?:is|has|does|contains)(?:Not)?(?:EqualTo\w*|Exactly\w*|True|False|Null|Same\w*|SameAs|InstanceOf|Size|Message\w*|Zero)"
    r"|thenReturn|shouldThrow|valueOf|toString|toArray|length|getBytes|println|forEach|catch|try|while"
    r"|String(?:Builder|Reader|Writer)|(?:Array|Linked)List|(?:Linked|Tree)?Hash(?:Map|Set)|ByteArray\w+Stream"
    r"|done|equal|ok|plan|throws|rejects|fail|match|require|function|beforeEach|(?:not)?[sS]trictEqual|\w*[dD]eep\w*Equal|to[A-Z]\w*"
)
_OF_LIBRARY = re.compile(
    r"(?:List|Set|Map|Arrays|Collections|Objects|Optional|Stream|Integer|Long|Boolean|Character|Files|Paths|IOUtils|Mockito)\.\w+"
)
"""Calls of libraries in Java that make values for a test."""
_NOT_RAISED = re.compile(
    r"DID NOT RAISE|to be thrown|did not panic|Missing expected (?:exception|rejection)|did not throw"
)
_PANIC = re.compile(r"^panic: |^thread '.*' panicked", re.M)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that passed the checks."""

    text: str
    """Markdown: a title line, then sentences."""
    tries: int
    """Answers of the model that it took."""


class StatementRefused(ValueError):
    """No usable statement can be had for a task; the message is one line.

    Attributes:
        problems: what is wrong with the last one, a line each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class ShownTest:
    """The code of failing tests, its result, and which tests these are."""

    code: str
    error: str
    tests: tuple[str, ...]


def check_statement(text: str, evidence: Evidence, most_words: int = MOST_WORDS) -> tuple[str, ...]:
    """Return what is wrong with a statement, a line each; empty if it may be used."""
    words = len(text.split())
    length: tuple[str, ...] = ()
    if not LEAST_WORDS <= words <= most_words:
        length = (f"has {words} words; {LEAST_WORDS} to {most_words} are wanted",)
    untold = (
        f"does not tell {name}, which the tests need and nobody could know"
        for name in untold_names(text, evidence)
    )
    return (*length, *find_leaks(text, evidence), *untold)


def template_statement(evidence: Evidence) -> tuple[str, tuple[str, ...]]:
    """Return a statement made of the failing tests themselves, and the tests that it tells.

    It is to be checked as any other (``check_statement``, with ``MOST_SHOWN_WORDS``).

    Raises:
        StatementRefused: no failing test can be shown.
    """
    shown = _show_tests(evidence)
    text = _write_tests(shown, evidence)
    while len(shown) > 1 and len(text.split()) > MOST_SHOWN_WORDS:
        shown = shown[:-1]
        text = _write_tests(shown, evidence)
    return text, tuple(test for each in shown for test in each.tests)


def _show_tests(evidence: Evidence) -> list[ShownTest]:
    """Return the failing tests by their code, in their order.

    Raises:
        StatementRefused: none can be shown.
    """
    outputs = dict(evidence.failures)
    tests: dict[str, list[str]] = {}
    reason = "the output of the tests holds no error that could be told"
    for test in evidence.fail_to_pass:
        try:
            tests.setdefault(find_code(test, evidence.test_files), []).append(test)
        except ValueError as error:
            reason = str(error)
    shown = []
    for code, names in tests.items():
        if ends := [end for name in names if (end := end_of_output(outputs.get(name, "")))]:
            shown.append(ShownTest(code, ends[0], tuple(names)))
    if not shown:
        raise StatementRefused([reason])
    return shown


def _write_tests(shown: Sequence[ShownTest], evidence: Evidence) -> str:
    parts: list[str] = []
    for each in shown:
        part = {
            "introduction": "Nor does this:" if parts else "This does not work as it should:",
            "code": each.code,
            "error": each.error,
            "wanted": _wanted(each.error),
        }
        parts.append(_fill("statement-symptom", part))
    text = _fill("statement-template", {"title": _title(shown[0]), "symptoms": "\n\n".join(parts)})
    text = _neutralise(text, evidence)
    untold = untold_names(text, evidence)
    named = f"\n\nNew names and texts in it: {', '.join(f'`{name}`' for name in untold)}." if untold else ""
    return f"{text}{named}\n"


def _wanted(error: str) -> str:
    """Return a sentence that says what should happen instead."""
    if "did not panic" in error:
        return "It should panic."
    if _NOT_RAISED.search(error):
        return "That error should be raised."
    if _outcome(error) == OTHER_RESULT:
        return "The assertion should hold."
    return "It should run to its end without an error."


async def model_statement(evidence: Evidence, ask: Ask) -> Statement:
    """Return a statement by a model, which never sees the change of the code.

    Args:
        evidence: message, tests and their output go to the model; of the change only names that tests need, too.
        ask: asks the model.

    Raises:
        StatementRefused: the model says that nobody could solve the task, or its second answer fails the checks, too.
        Infrastructure: the model failed.
    """
    request = statement_request(evidence)
    problems: Sequence[str] = ()
    for tries in (1, 2):
        try:
            answer = await ask(request, KEYS, SKELETON)
        except AgentFault as error:
            raise StatementRefused([f"the model gave no usable answer: {error}"]) from error
        if _is_no(answer["solvable"]):
            raise StatementRefused([f"the model says that it cannot be solved: {_line(answer['why'])}"])
        title, told = _line(answer["title"]).lstrip("# "), str(answer["statement"]).strip()
        text = f"# {title}\n\n{told}\n"
        problems = check_statement(text, evidence)
        if not problems:
            return Statement(text, tries)
        listed = "\n".join(f"- It {problem}." for problem in problems)
        said = Message(Role.ASSISTANT, text)
        again = Message(Role.USER, _fill("statement-again", {"problems": listed}))
        request = Request((*request.messages, said, again), form=FORM)
    raise StatementRefused(problems)


def statement_request(evidence: Evidence) -> Request:
    """Return the question for a statement; it depends on the evidence alone."""
    untold = ", ".join(untold_names("", evidence))
    values = {
        "message": cut_middle(_TRAILER.sub("", evidence.message).strip(), MESSAGE_CHARS),
        "tests": cut_middle(evidence.test_diff.strip(), TESTS_CHARS),
        "output": cut_middle(evidence.failure.strip(), OUTPUT_CHARS),
        "untold": untold or "none",
        "skeleton": SKELETON,
    }
    question = _fill("statement-question", values)
    return Request((Message(Role.SYSTEM, _fill("statement", {})), Message(Role.USER, question)), form=FORM)


def _title(shown: ShownTest) -> str:
    """Return a title: what is called, and how it ends."""
    called = [name for row in reversed(shown.code.split("\n")) for name in _CALLED.findall(row)]
    about = next(
        (
            name
            for name in called
            if not _ORDINARY.fullmatch(name.rpartition(".")[2]) and not _OF_LIBRARY.fullmatch(name)
        ),
        "",
    )
    return f"`{about}`: {_outcome(shown.error)}" if about else _outcome(shown.error).capitalize()


def _outcome(error: str) -> str:
    if _NOT_RAISED.search(error):
        return "no error where one is expected"
    kind = re.search(r"^(?:[\w.$]+[.$])?(\w+(?:Error|Exception|Warning|Failure))\b", error.lstrip(), re.M)
    if "assert" in error.lower() or (kind and "Comparison" in kind[1]):
        return OTHER_RESULT
    if _PANIC.search(error):
        return "ends in a panic"
    if _COMPILER.search(error):
        return "does not compile"
    return f"ends in {kind[1]}" if kind else OTHER_RESULT


def _neutralise(text: str, evidence: Evidence) -> str:
    """Return the text with a neutral word for each name of a test in it."""
    parts = {part for test in evidence.fail_to_pass for part in name_parts(test)} - evidence.old_names
    for part in sorted(parts, key=lambda each: (-len(each), each)):
        text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", "example", text)
    return text


def _is_no(value: object) -> bool:
    return value is False or str(value).strip().lower() in ("false", "no")


def _line(value: object) -> str:
    return " ".join(str(value).split())


def _fill(name: str, values: Mapping[str, str]) -> str:
    """Return a prompt with its values; its first line, a comment on its source, is left out."""
    text = (PROMPTS / f"{name}.md").read_text(encoding="utf-8").partition("\n")[2]
    return Template(text).substitute(values).strip()
