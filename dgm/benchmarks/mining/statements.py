"""The statement of a mined task: by a model, or out of the failing assertion; never from the change of the code.

What a model writes is checked by ``leaks``. It is asked once more with what was found; a statement that fails again is
dropped. Prompts are files.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from dgm.benchmarks.cpp_controls import BUILDS
from dgm.benchmarks.mining.cpp_symptoms import find_cpp_symptom
from dgm.benchmarks.mining.go_symptoms import find_go_symptom
from dgm.benchmarks.mining.jvm_symptoms import ASSERTIONS, NOT_COMPILED, NOT_THROWN, find_jvm_symptom
from dgm.benchmarks.mining.languages import Language, language_of
from dgm.benchmarks.mining.leaks import Evidence, find_leaks, name_parts, untold_names
from dgm.benchmarks.mining.rust_symptoms import NO_PANIC, PANICKED, find_rust_symptom
from dgm.benchmarks.mining.script_symptoms import find_script_symptom
from dgm.benchmarks.mining.symptoms import Symptom, find_symptom
from dgm.benchmarks.storable_text import cut_middle
from dgm.errors import AgentFault
from dgm.messages import AnswerForm, Message, Request, Role

PROMPTS = Path(__file__).with_name("prompts")
MESSAGE_CHARS, TESTS_CHARS, OUTPUT_CHARS = 6_000, 24_000, 8_000
"""Maximum characters of each part of a question; of a longer one the middle is left out."""
LEAST_WORDS, MOST_WORDS = 8, 600
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
_COMPILER = re.compile(r"^undefined: |^\S+ undefined \(type |^unknown field \S+ in struct literal", re.M)
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
_FINDERS: Mapping[Language | None, Callable[[str, str, Sequence[str]], Symptom]] = {
    Language.JAVASCRIPT: find_script_symptom,
    Language.GO: find_go_symptom,
    Language.RUST: find_rust_symptom,
    Language.CPP: find_cpp_symptom,
    Language.JVM: find_jvm_symptom,
}
"""Find the failing assertion in languages but Python."""


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


def check_statement(text: str, evidence: Evidence) -> tuple[str, ...]:
    """Return what is wrong with a statement, a line each; empty if it may be used."""
    words = len(text.split())
    length: tuple[str, ...] = ()
    if not LEAST_WORDS <= words <= MOST_WORDS:
        length = (f"has {words} words; {LEAST_WORDS} to {MOST_WORDS} are wanted",)
    untold = (
        f"does not tell {name}, which the tests need and nobody could know"
        for name in untold_names(text, evidence)
    )
    return (*length, *find_leaks(text, evidence), *untold)


def template_statement(evidence: Evidence) -> str:
    """Return a statement made of failing assertions: for each test that differs, what is run and how it ends.

    It is to be checked as any other (``check_statement``).

    Raises:
        StatementRefused: the output shows no failing assertion.
    """
    symptoms = _find_symptoms(evidence)
    text = _write_symptoms(symptoms, evidence)
    while len(symptoms) > 1 and len(text.split()) > MOST_WORDS:
        symptoms = symptoms[:-1]
        text = _write_symptoms(symptoms, evidence)
    return text


def _find_symptoms(evidence: Evidence) -> list[Symptom]:
    """Return the symptoms that differ, that of the first test first.

    Raises:
        StatementRefused: the output of the first test shows none.
    """
    first = (next(iter(evidence.fail_to_pass), ""), evidence.failure)
    found: list[Symptom] = []
    for number, (test, output) in enumerate(evidence.failures or (first,)):
        try:
            file = test.partition("::")[0]
            language = Language.CPP if file.endswith(BUILDS) else language_of(file)
            if language in _FINDERS:
                symptom = _FINDERS[language](output, test, evidence.test_files)
            else:
                symptom = find_symptom(output, evidence.test_diff, test, evidence.test_files)
        except ValueError as error:
            if number == 0:
                raise StatementRefused([str(error)]) from error
            continue
        if all(symptom.code != other.code for other in found):
            found.append(symptom)
    return found


def _write_symptoms(symptoms: Sequence[Symptom], evidence: Evidence) -> str:
    parts: list[str] = []
    for symptom in symptoms:
        values = (
            f"\nThe values, when it ends: {', '.join(f'`{value}`' for value in symptom.values)}.\n"
            if symptom.values
            else ""
        )
        part = {
            "introduction": "Nor does this:" if parts else "This does not work as it should:",
            "code": symptom.code,
            "values": values,
            "error": symptom.error,
            "wanted": _wanted(symptom.error),
        }
        parts.append(_fill("statement-symptom", part))
    text = _fill("statement-template", {"title": _title(symptoms[0]), "symptoms": "\n\n".join(parts)})
    text = _neutralise(text, evidence)
    untold = untold_names(text, evidence)
    named = f"\n\nNew names and texts in it: {', '.join(f'`{name}`' for name in untold)}." if untold else ""
    return f"{text}{named}\n"


def _wanted(error: str) -> str:
    """Return a sentence that says what should happen instead."""
    if "DID NOT RAISE" in error or NOT_THROWN.search(error):
        return "That error should be raised."
    if NO_PANIC in error:
        return "It should panic."
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


def _title(symptom: Symptom) -> str:
    """Return a title: what is called, and how it ends."""
    called = [name for row in reversed(symptom.code.split("\n")) for name in _CALLED.findall(row)]
    about = next(
        (
            name
            for name in called
            if not _ORDINARY.fullmatch(name.rpartition(".")[2]) and not _OF_LIBRARY.fullmatch(name)
        ),
        "",
    )
    return f"`{about}`: {_outcome(symptom.error)}" if about else _outcome(symptom.error).capitalize()


def _outcome(error: str) -> str:
    if "DID NOT RAISE" in error or NOT_THROWN.search(error):
        return "no error where one is expected"
    if error.startswith(("panic: ", PANICKED)):
        return "ends in a panic"
    if _COMPILER.search(error) or error.startswith(NOT_COMPILED):
        return "does not compile"
    kind = re.match(r"(?:[\w.$]+[.$])?(\w+(?:Error|Exception|Warning))\b", error.lstrip())
    if kind and kind[1] not in ASSERTIONS:
        return f"ends in {kind[1]}"
    return OTHER_RESULT


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
