"""The words by which a proposal shows that it is about particular tasks: their ids, files and literals.

A proposal that holds one of them is not general, whatever it says of itself. Ordinary words of English and of Python
are none, nor is anything that stands in the agents' own source.
"""

import builtins
import keyword
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dgm.domain import TaskId
from dgm.meta.answer_objects import MalformedAnswer
from dgm.protocols import Brief, Case, Member

LEAST_LITERAL = 8
"""Minimum characters of a literal that tells a task from others."""
_FEW = 0.34
"""Maximum share of several tasks that have a file or literal by which one of them is told."""
_ID = re.compile(r"(?=.*[^a-zA-Z]).{4,}")
"""Pattern of task ids that are distinguishable from an ordinary word."""
_SEPARATOR = re.compile(r"[-_ ]+")
_FILE = re.compile(r"(?<![\w./-])((?:[\w.+-]+/)*[\w+-][\w.+-]*\.[A-Za-z]{1,5})(?![\w/])")
_PATCHED = re.compile(r"^(?:\+\+\+ b|--- a)/(\S+)", re.M)
_QUOTED = re.compile(r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|(?<!\w)'([^'\n]{1,200})'(?!\w)")
_SUFFIXES = """
py pyi js ts jsx tsx c h cc cpp hpp rs go java rb php sh pl md rst txt toml json yaml yml cfg ini csv tsv xml html
css sql lock po in
"""
_USUAL_FILES = """
__init__.py __main__.py setup.py setup.cfg pyproject.toml conftest.py requirements.txt readme.md readme.rst tox.ini
main.py utils.py util.py helpers.py common.py core.py base.py models.py errors.py exceptions.py types.py test.py
tests.py config.py settings.py cli.py app.py index.js package.json changelog.md license.txt agent.toml job.json
problem.md patch.diff example.py script.py file.py module.py solution.py reproduce.py repro.py
"""
_USUAL_PARTS = """
a about add after again agent all allowed already an and another any api are arg args argument arguments as ask
async at attempt be because been before better bug but by cache call can cannot change char chars check class code
codes command commands common config content context copy could count cut data date default define delete depth did
diff dir directory division do doc docs does done dry each edit empty end entry env error errors event every exact
exception exist exists exit expected fail failed false few file files final find first fix flag folder for format
found from full func function get git given got had has have head hello help how id if import in index info init
input int into invalid is it item items its job json key keys kind last least len length less level like limit line
lines list literal load local log long loop main make many map matching max may message messages method min missing
mode model module more most msg must name named names new next no not nothing null number numbers object of off old
on once one only open operation option options or other out output over own parse part path paths pattern pass
passed permission pip please print problem prompt pytest python raise range raw read reason remove repeat replace
reply report request required result results retries retry return returned returns root run runs same save script
search second seconds see self set shell should show size skip so solve some source start state status step steps
stop str string submit such sub sum supported system tail task test tested tests text than that the their them then
there these they this time timeout times to tool tools total trace traceback true truncate try two type under undo
unexpected unit unittest unknown up update use used user using usage utf utils valid value values version view was
were what when where which while who will with without word words work works world would write written wrong yes you
your zero
"""
_SUFFIX_SET, _USUAL_FILE_SET = frozenset(_SUFFIXES.split()), frozenset(_USUAL_FILES.split())
_USUAL_PART_SET = frozenset(_USUAL_PARTS.split())
"""Words that are usual in talk about programs."""
_PYTHON = frozenset({*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *sys.stdlib_module_names})
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")


@dataclass(frozen=True, slots=True)
class TaskWords:
    """The words of the tasks that an operator was shown."""

    ids: Collection[TaskId]
    files: Collection[str]
    """Paths and names of files that few of the tasks have."""
    literals: Collection[str]
    """Quoted texts of few of the problems, at least ``LEAST_LITERAL`` characters each."""

    @classmethod
    def of(cls, brief: Brief) -> "TaskWords":
        """Return the words of all tasks in a brief."""
        return cls.gather(brief.cases, (*brief.parents, *brief.members))

    @classmethod
    def gather(cls, cases: Sequence[Case], agents: Sequence[Member]) -> "TaskWords":
        """Return the words of the cases' tasks, and the ids of all tasks that the agents tried."""
        ids = {case.evaluation.task for case in cases}.union(*(agent.verdicts for agent in agents))
        source = "\n".join(_read_source(agent) for agent in agents)
        shown: dict[TaskId, str] = {}
        patched: dict[TaskId, str] = {}
        for case in cases:
            task = case.evaluation.task
            shown[task] = case.problem
            patched[task] = patched.get(task, "") + case.traces.get("patch", b"").decode("utf-8", "replace")
        return cls(
            frozenset(ids),
            _select({task: _list_files(text, patched[task]) for task, text in shown.items()}, source),
            _select({task: set(_list_literals(text)) for task, text in shown.items()}, source),
        )

    def find_mention(self, text: str) -> str:
        """Return a word of the tasks that a text holds; empty if there is none."""
        for task in sorted(self.ids):
            if any(_holds(text, name) for name in _list_names(task)):
                return task
        for word in sorted((*self.files, *self.literals), key=lambda word: (-len(word), word)):
            if _holds(text, re.escape(word)):
                return word
        return ""

    def check_general(self, text: str, what: str) -> None:
        """Check that a text is about no particular task.

        Raises:
            MalformedAnswer: it holds a word of one.
        """
        named = self.find_mention(text)
        if named:
            raise MalformedAnswer(
                f"{what} names {named[:100]!r}, which belongs to one of the tasks: it is not general. It must be about"
                " the agent alone"
            )


def _list_names(task: TaskId) -> Iterator[str]:
    """Yield patterns of the forms in which a task is named."""
    for name in dict.fromkeys((task, task.rpartition("__")[2], task.rpartition("/")[2])):
        if _ID.fullmatch(name):
            yield re.escape(name)
            if _find_rare_parts(name):
                yield r"[-_]".join(map(re.escape, _SEPARATOR.split(name)))


def _holds(text: str, pattern: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){pattern}(?![\w-])", text, re.I))


def _read_source(agent: Member) -> str:
    return "\n".join(
        f"{path}\n{entry.data.decode('utf-8', 'replace')}" for path, entry in sorted(agent.source.items())
    )


def _select(words: Mapping[TaskId, Collection[str]], source: str) -> frozenset[str]:
    """Return the words that few of the tasks have and no agent's source."""
    having = Counter(word for found in words.values() for word in found)
    most = max(1, int(len(words) * _FEW))
    return frozenset(word for word, tasks in having.items() if tasks <= most and word not in source)


def _list_files(problem: str, patch: str) -> set[str]:
    paths = {*_PATCHED.findall(patch), *(found[1] for found in _FILE.finditer(problem))}
    return {
        name
        for path in paths
        if path.rpartition(".")[2].lower() in _SUFFIX_SET
        for name in (path, path.rpartition("/")[2])
        if name.lower() not in _USUAL_FILE_SET
    }


def _list_literals(problem: str) -> Iterator[str]:
    for found in _QUOTED.finditer(problem):
        # Short ones are matched, too: else the text between two of them would count as quoted.
        text = next(filter(None, found.groups())).strip()
        if len(text) >= LEAST_LITERAL and not _is_common(text):
            yield text


def _is_common(text: str) -> bool:
    """Return whether a text may stand in any proposal: one word, a name of Python, or words that are usual."""
    if re.fullmatch(r"[A-Z]?[a-z]+|__\w+__", text) or _FILE.fullmatch(text):
        # Files are told by their names alone.
        return True
    if _NAME.fullmatch(text) and text.partition(".")[0].removesuffix("()") in _PYTHON:
        return True
    if re.fullmatch(r"[\W\d_]+", text):
        return len(set(text)) < LEAST_LITERAL // 2
    return not _find_rare_parts(text)


def _find_rare_parts(text: str) -> list[str]:
    """Return the words and numbers in a text that are not usual in talk about programs."""
    parts = [part.lower() for part in _PART.findall(text)]
    return [part for part in parts if len(part) > 1 and part not in _USUAL_PART_SET and part not in _PYTHON]
