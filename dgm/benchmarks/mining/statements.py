"""The statement of a mined task: by a model, or the failing tests themselves; never from the change of the code.

What a model writes is checked by ``leaks``, and by a second question: does every graded assertion follow from it? It is
asked once more with what was wrong; a statement that fails again is dropped. Prompts are files.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from dgm.benchmarks.languages import Language, language_of
from dgm.benchmarks.logs import cut_middle
from dgm.benchmarks.mining.changes import Change
from dgm.benchmarks.mining.evidence import end_of_output, find_code
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.leaks import Evidence, find_leaks, name_parts, untold_names
from dgm.benchmarks.mining.paths import is_code_file, is_test_file
from dgm.domain import Snapshot
from dgm.errors import AgentFault, UserError
from dgm.messages import AnswerForm, Message, Request, Role

PROMPTS = Path(__file__).with_name("prompts")
MESSAGE_CHARS, TESTS_CHARS, OUTPUT_CHARS = 6_000, 24_000, 8_000
"""Maximum characters of each part of a question; of a longer one the middle is left out."""
LEAST_WORDS, MOST_WORDS, MOST_SHOWN_WORDS = 8, 600, 3_000
"""Bounds of a statement; of one that shows the tests, the last."""
OTHER_RESULT = "another result than expected"
ISSUE = {"title": "text", "statement": "text", "solvable": "boolean", "why": "text"}
CHECK = {"follows": "boolean", "missing": "text"}
"""Fields of the model's answers."""
Ask = Callable[[Request, Sequence[str], str], Awaitable[Mapping[str, object]]]
"""Asks a model: takes the request, the keys of the wanted object and its form in words; returns the object.

Raises ``AgentFault`` if no answer was usable, ``Infrastructure`` if the model failed."""
_TRAILER = re.compile(r"^[A-Z][\w-]+-[Bb]y: .*\n?|^\(?cherry picked from .*\n?", re.M)
_COMPILER = re.compile(
    r"^undefined: |^\S+ undefined \(type |^unknown field \S+ in struct literal|^error(?:\[E\d+\])?: "
    "|cannot find symbol",
    re.M,
)
_MISSING = re.compile(
    r"undefined: (\w+)|\.(\w+) undefined \(type|has no attribute '(\w+)'|(\w+) is not a (?:function|constructor)"
    r"|cannot import name '(\w+)'"
)
"""The name that is not there, in errors of Go, Python and JavaScript."""
_CONTROL = re.compile(r"^[+ \t]*(?:\}\s*)?(?:if|else|for|while|switch|return|case|catch|throw)\b.*$", re.M)
_CALLED = re.compile(r"([A-Za-z_][\w.]*)(?=\()")
_NAMED = re.compile(r"[A-Za-z_][\w.]*")
_IMPORT_ROW = re.compile(r"^\s*(?:import|from|use|\w* ?\"[\w./-]+\"$|(?:const|var|let) .*require).*$", re.M)
_DEFINED = re.compile(
    r"\b(?:def|class|function\*?|func|fn|fun|struct|interface|trait|enum|type|object)\s+(?:\([^)\n]*\)\s*)?([A-Za-z_]\w+)"
    r"|\b(?:const|let|var|val)\s+([A-Za-z_]\w+)\s*="
    r"|^\+?([A-Z][A-Z0-9_]{2,})\s*(?::[^=\n]*)?="
    r"|^[+ \t]+(?:[\w<>\[\],.&*:]+[ \t]+){0,6}([A-Za-z_]\w+)\([^;\n]*\)[^;\n]*\{[ \t]*$",
    re.M,
)
"""Definitions of functions, methods and types in programs."""
_WORD = re.compile(r"[A-Za-z_]\w+")
_CLOSES = re.compile(r"(?:#|\bgh-|/(?:issues|pull)/)(\d{1,7})\b", re.I)
ISSUE_CHARS = 6_000
SHOWN_FAILURES = 3
_NOT_RAISED = re.compile(
    r"DID NOT RAISE|to be thrown|did not panic|Missing expected (?:exception|rejection)|did not throw"
)
_PANIC = re.compile(r"^panic: |^thread '.*' panicked", re.M)


class StatementRefused(ValueError):
    """No usable statement can be had for a task; the message is one line."""


def _form(name: str, fields: Mapping[str, str]) -> AnswerForm:
    types = {key: {"type": kind.replace("text", "string")} for key, kind in fields.items()}
    return AnswerForm(
        name,
        {"type": "object", "properties": types, "required": list(fields), "additionalProperties": False},
    )


def _skeleton(fields: Mapping[str, str]) -> str:
    values = {"text": '"..."', "boolean": "true or false"}
    return "{" + ", ".join(f'"{key}": {values[kind]}' for key, kind in fields.items()) + "}"


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
        raise StatementRefused(reason)
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
    text = _fill("statement-template", {"title": _title(shown[0], evidence), "symptoms": "\n\n".join(parts)})
    text = _neutralise(text, evidence)
    if evidence.issue:
        title, _, body = clean_issue(evidence.issue).partition("\n")
        text = f"# {title}\n\n{body.strip()}\n\n## Expected\n\n{text.partition(chr(10))[2].strip()}"
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


async def model_statement(evidence: Evidence, ask: Ask) -> str:
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
    for _ in range(2):
        try:
            answer = await ask(request, tuple(ISSUE), _skeleton(ISSUE))
        except AgentFault as error:
            raise StatementRefused(f"the model gave no usable answer: {error}") from error
        if _is_no(answer["solvable"]):
            raise StatementRefused(f"the model says that it cannot be solved: {_line(answer['why'])}")
        title, told = _line(answer["title"]).lstrip("# "), str(answer["statement"]).strip()
        text = f"# {title}\n\n{told}\n"
        problems = check_statement(text, evidence) or await _check_graded(text, evidence, ask)
        if not problems:
            return text
        listed = "\n".join(f"- It {problem}." for problem in problems)
        said = Message(Role.ASSISTANT, text)
        again = Message(Role.USER, _fill("statement-again", {"problems": listed}))
        request = Request((*request.messages, said, again), form=_form("issue", ISSUE))
    raise StatementRefused("; ".join(problems))


async def _check_graded(text: str, evidence: Evidence, ask: Ask) -> Sequence[str]:
    """Ask whether every graded assertion follows from a statement; return what does not."""
    values = {
        "statement": text,
        "tests": cut_middle(evidence.test_diff.strip(), TESTS_CHARS),
        "names": ", ".join(evidence.fail_to_pass),
        "skeleton": _skeleton(CHECK),
    }
    question = Message(Role.USER, _fill("statement-check", values))
    try:
        answer = await ask(Request((question,), form=_form("check", CHECK)), tuple(CHECK), _skeleton(CHECK))
    except AgentFault as error:
        raise StatementRefused(f"the model gave no usable answer on the statement: {error}") from error
    if not _is_no(answer["follows"]):
        return ()
    return (f"leaves open what a test checks: {_line(answer['missing'])}",)


def statement_request(evidence: Evidence) -> Request:
    """Return the question for a statement; it depends on the evidence alone."""
    untold = ", ".join(untold_names("", evidence))
    values = {
        "message": cut_middle(
            _TRAILER.sub("", f"{evidence.issue}\n\n{evidence.message}").strip(), MESSAGE_CHARS
        ),
        "tests": cut_middle(evidence.test_diff.strip(), TESTS_CHARS),
        "output": cut_middle(evidence.failure.strip(), OUTPUT_CHARS),
        "untold": untold or "none",
        "skeleton": _skeleton(ISSUE),
    }
    question = _fill("statement-question", values)
    messages = (Message(Role.SYSTEM, _fill("statement", {})), Message(Role.USER, question))
    return Request(messages, form=_form("issue", ISSUE))


def _title(shown: ShownTest, evidence: Evidence) -> str:
    """Return a title: the project's function that is called, and how it ends."""
    missing = next((name for match in _MISSING.finditer(shown.error) for name in match.groups() if name), "")
    is_tested = missing in _WORD.findall(shown.code)
    subject = missing if is_tested else find_subject(shown.code, evidence)
    outcome = _outcome(shown.error)
    return f"`{subject}`: {outcome}" if subject else outcome[:1].upper() + outcome[1:]


def find_subject(code: str, evidence: Evidence) -> str:
    """Return what a test calls: what the changed files define, else what the project does; empty if it is nothing."""
    rows = code.split("\n")[::-1]
    own = defined_names(code)
    called, named = (
        [name for row in rows for name in names.findall(row) if name.rpartition(".")[2] not in own]
        for names in (_CALLED, _NAMED)
    )
    for used in (called, named):
        for names in evidence.subjects:
            if subject := next((name for name in used if name.rpartition(".")[2] in names), ""):
                imports = "\n".join(
                    row for text in evidence.test_files.values() for row in _IMPORT_ROW.findall(text)
                )
                is_imported = subject.partition(".")[0] in _WORD.findall(imports)
                return subject if is_imported else subject.rpartition(".")[2]
    return ""


def defined_names(text: str) -> frozenset[str]:
    """Return the names of functions, methods and types that programs define."""
    definitions = _DEFINED.findall(_CONTROL.sub("", text))
    names = {name for groups in definitions for name in groups if name}
    return frozenset(names - {"if", "for", "while", "switch", "catch", "return", "constructor", "main"})


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


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement, or why there is none."""

    text: str = ""
    reason: str = ""
    told: tuple[str, ...] = ()
    """Tests that it shows; empty if it is a model's."""

    def choose(self, tests: Sequence[str]) -> tuple[str, ...]:
        """Return those of the tests that a fix must pass: a task is not graded by what its statement does not tell."""
        return tuple(test for test in tests if not self.told or test in self.told)


def make_evidence(message: str, change: Change, failures: Mapping[str, str], issue: str = "") -> Evidence:
    """Return what is known of a task.

    Args:
        message: of the commits.
        change: the change.
        failures: test that the fix mends → what it prints without it.
        issue: text of the issue that the change closes; its first line is the title.
    """
    shown = _choose_failures(failures)
    fix = change.fix.decode("utf-8", "replace")
    code = {
        name: entry.data.decode("utf-8", "replace")
        for name, entry in change.workspace.items()
        if is_code_file(name)
    }
    changed = re.findall(r"^\+\+\+ b/(.*?)\t?$", fix, re.M)
    touched = [code.get(name, "") for name in changed]
    added = [row for row in fix.split("\n") if row.startswith("+")]
    # In Rust a hidden file of the code holds its modules of tests alone.
    return Evidence(
        message=message,
        test_diff=change.test_patch.decode("utf-8", "replace"),
        fix_diff=fix,
        failure="\n\n".join(text for _, text in shown),
        fail_to_pass=tuple(failures),
        old_names=old_names(change.workspace),
        failures=tuple((test, text) for test, text in failures.items() if text),
        test_files={
            name: entry.data.decode("utf-8", "replace")
            for name, entry in sorted(change.hidden.items())
            if is_test_file(name) or language_of(name) is Language.RUST
        },
        issue=issue,
        subjects=(defined_names("\n".join([*touched, *added])), defined_names("\n".join(code.values()))),
    )


def _choose_failures(failures: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return some failing tests with their outputs, one of each function first."""
    printed = [(test, text) for test, text in failures.items() if text]
    functions: dict[str, tuple[str, str]] = {}
    for test, text in printed:
        functions.setdefault(test.partition("[")[0], (test, text))
    first = list(functions.values())
    return tuple([*first, *(each for each in printed if each not in first)][:SHOWN_FAILURES])


def old_names(workspace: Snapshot) -> frozenset[str]:
    """Return all names and words in the programs of a workspace, and in its documents."""
    found: set[str] = set()
    for name, entry in workspace.items():
        if language_of(name) or name.endswith((".pyi", ".md", ".rst", ".txt", ".toml", ".cfg")):
            found.update(_WORD.findall(entry.data.decode("utf-8", "replace")))
    return frozenset(found)


def read_issues(file: Path) -> Mapping[int, str]:
    """Return the texts of issues by their numbers: a title, and the body below it.

    Raises:
        UserError: the file is missing, or not of the form that ``gh issue list --json number,title,body`` writes.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return {int(each["number"]): f"{each['title']}\n\n{each['body'] or ''}" for each in data}
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file}: expected a JSON list of issues with number, title and body, as gh issue list --state all --limit "
            f"9999 --json number,title,body writes it ({error!r:.80})"
        ) from error


def issue_of(message: str, issues: Mapping[int, str]) -> str:
    """Return the text of the first known issue that a message names; empty if it names none."""
    return next((issues[int(number)] for number in _CLOSES.findall(message) if int(number) in issues), "")


def clean_issue(text: str) -> str:
    """Return an issue's text without what leads to its fix, and without what a form added to it."""
    text = re.sub(r"<!--.*?-->|https?://\S+/(?:issues?|pulls?|commits?)/\S+", "", text, flags=re.DOTALL)
    text = re.sub(
        r"\(?\b(?:see|cf\.?|fix(?:es|ed)?|closes?|related to)? *(?<!&)#\d+\b\)?", "", text, flags=re.I
    )
    return cut_middle(re.sub(r"\n{3,}", "\n\n", text).strip(), ISSUE_CHARS)


async def state(key: str, evidence: Evidence, journal: MiningJournal, ask: Ask | None) -> Stated:
    """Return the statement of a task; from the journal if it was made before.

    Raises:
        Infrastructure: the model failed.
    """
    known = journal.get(f"statement {key}")
    if known is None:
        known = await _make(evidence, ask)
        journal.put(f"statement {key}", known)
    return Stated(known["text"], known["reason"], tuple(known.get("told", ())))


async def _make(evidence: Evidence, ask: Ask | None) -> dict[str, Any]:
    try:
        if ask:
            return {"text": await model_statement(evidence, ask), "reason": ""}
        text, told = template_statement(evidence)
        problems = check_statement(text, evidence, MOST_SHOWN_WORDS)
    except ValueError as error:
        return {"text": "", "reason": f"no statement: {error}"}
    if problems:
        return {"text": "", "reason": f"no statement: {problems[0]}"}
    return {"text": text, "reason": "", "told": list(told)}
