"""A run whose every text field holds what is meant to harm whoever looks at it; nothing is performed.

Everything that a stranger's benchmark, model or agent could have written is hostile here: names of the run, of tasks,
models, roles, operators, stages and files, reasons, rationales, aims, refusals, traces and source. What ``dgm`` itself
makes (ids, commits, digests, counts) is sound, so that the run opens, and every reader has to get through all of it.
"""

import json
from pathlib import Path

import pytest

from dgm.archive.events import (
    ActionLost,
    AgentStillborn,
    CallRefused,
    ChildProposed,
    RunPaused,
    RunStopped,
)
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    Action,
    ActionId,
    AgentId,
    Born,
    Budget,
    Cost,
    Digest,
    Entry,
    Evaluate,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.messages import Message, Reply, Request, Role
from tests.support.runs.builder import RunBuilder, create_run, make_config

ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;owned\x07 \x1b[2J\x1b[H \x9b5m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"
MARKUP = "[red]red[/red] [/] [bold [link=file:///etc/passwd]x[/link] {0} %s ${HOME} `id` $(id)"
SCRIPT = "\"><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"><!-- ]]> </style>"
BIDI = "\u202egnp.exe\u202c \u2066x\u2069 \u200fשלום עולם\u200e \u061cمرحبا \u200b\u200d\ufeff\U000e0041"
WIDE = "日本語の変更 한글 ｆｕｌｌ 👩‍👩‍👧‍👦🇩🇪✅"
COMBINING = "Z\u0351\u036b\u0343\u036a\u0302 e\u0301 " + "a" + "\u0300" * 40
BREAKS = "one\r\ntwo\rthree\x0b\x0c\x1c\x85four\u2028five\u2029six\tseven\x7f\x08\x08"
NUL = "before\x00after"
HALF = "half a pair \ud800 and \udcff"
"""What JSON can spell and no file can hold."""
FORMULA = '=HYPERLINK("http://x","y")&cmd|\' /C calc\'!A0'
LONG = "w" * 5_000
KINDS = (ESCAPES, MARKUP, SCRIPT, BIDI, WIDE, COMBINING, BREAKS, NUL, HALF, FORMULA, LONG)
ALL = " ".join((ESCAPES, MARKUP, SCRIPT, BIDI, WIDE, COMBINING, BREAKS))

TASKS = tuple(
    TaskId(text)
    for text in (
        "\"><script>document.title='owned'</script>",
        ESCAPES,
        MARKUP,
        BIDI,
        WIDE,
        f"a,b;'c'\r\n{FORMULA}",
    )
)
RUN_NAME = "[red]\x1b[31m\"><img src=x onerror=document.title='owned'>\u202e日本"
"""A name that a file system takes."""
MODEL = f"openai/{SCRIPT}{ESCAPES}[red]"
OPERATOR = f"op {SCRIPT} {ESCAPES} [red]"
ROLE = f"solve {SCRIPT} {ESCAPES}"

CONTRACT = b'[agent]\ncommand = ["python3", "agent.py"]\ncheck = ["python3", "agent.py", "--check"]\n'
_USAGE = Usage(1, 1000, 100, 0.01, 250, 50, 60)
_RAW = "\n".join(KINDS[:8]).encode() + b"\n\xff\xfe\x00\x1b[31m\n" + b"l" * 3_000 + b"\n"
"""Of the traces: not even UTF-8."""
_REQUEST = Request((Message(Role.USER, ALL),), model=MODEL)
_STAGE = {"stage": ALL, "seconds": 0.5, "result": "failed", "reason": ALL, "note": ALL}
_SOUND = {
    "circumstances": b'{"exit_code": 1}',
    "vetting": json.dumps({"stages": [_STAGE]}).encode(),
    "reading": json.dumps({ALL: [3, 9]}).encode(),
    "evidence": json.dumps({ALL: 1}).encode(),
    "patch": b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,90 +1,90 @@\n a\n" + _RAW,
}
"""Traces that dgm itself reads: hostile texts in the right form."""


def source(number: int) -> dict[str, Entry]:
    """The files of one agent: hostile names, hostile text, binary data, links that lead out."""
    return {
        "agent.toml": Entry(CONTRACT),
        "agent.py": Entry(f"print({number})\n# {SCRIPT}\n# {MARKUP}\n# {BIDI}\n# {WIDE}\n".encode()),
        "\x1b[31mred.py": Entry(f"x = '{ESCAPES}'\n".encode() * (number + 1)),
        "<img src=x onerror=alert(1)>.html": Entry(f"<p>{SCRIPT}</p>\n{number}\n".encode()),
        "[bold]日本語[/bold]/\u202efdp.txt": Entry(f"{BIDI}\r\n{BREAKS}\n{number}\n".encode()),
        "two\nlines.py": Entry(b"pass\n"),
        "undecodable-\udcff.bin": Entry(b"\x00\x01\xff" * (number + 10)),
        "long.txt": Entry(b"x" * (100_000 + number)),
        "program": Entry(b"#!/bin/sh\ntouch owned\n", 0o100755),
        "link": Entry(b"/etc/passwd", 0o120000),
        "up": Entry(f"../../../{number}".encode(), 0o120000),
        ".gitattributes": Entry(b"* filter=owned diff=owned export-ignore\n"),
        ".gitmodules": Entry(b'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% owned\n'),
    }


class HostileRun(RunBuilder):
    """Appends hostile steps to a run; ``run`` is open to write and is the caller's to close."""

    def __init__(self, parent: Path, name: str = RUN_NAME) -> None:
        settings = Settings.model_validate(
            {"benchmark": f"suite {ALL}", "model": MODEL, "operator": OPERATOR}
        )
        versions = {"benchmark": ALL, "dgm": ALL, "python": ALL}
        config = make_config(
            settings, sandbox=f"bubblewrap {ALL}", name=name, created=1_700_000_000.0, versions=versions
        )
        super().__init__(create_run(parent / name, config, Budget(evaluations=100, usd=5.0), TASKS))
        self._kept: dict[str, Digest] = {}
        self.born((), "")

    def cost(self, *names: str) -> Cost:
        """With a hostile trace under each of the names."""
        for name in set(names) - self._kept.keys():
            self._kept[name] = self.run.traces.put(_SOUND.get(name, _RAW + name.encode()))
        return Cost(_USAGE, 1.5, {name: self._kept[name] for name in names})

    def start(self, what: Action) -> ActionId:
        """An action with one model call."""
        action = self.begin(what)
        self.record_exchange(action, 1, _REQUEST, Reply(ALL), MODEL, ROLE, _USAGE, 0.5)
        return action

    def born(self, parents: tuple[int, ...], rationale: str) -> AgentId:
        """An agent; the seed where it has no parents."""
        ids = tuple(map(AgentId, parents))
        number = len(self.run.tree.agents)
        action = self.start(Expand(ids, OPERATOR, aim=ALL)) if ids else ActionId(0)
        cost = self.cost("log", "statement", "reading", "evidence", "vetting") if ids else Cost()
        return self.bear(
            source(number),
            parents,
            operator=OPERATOR,
            rationale=rationale,
            action=action,
            cost=cost,
            syntax=f"key {ALL}",
            decided=ALL if number == 1 else "",
        )

    def graded(self, agent: int, task: int, verdict: Verdict, attempt: int = 0) -> None:
        """One evaluation with all its traces."""
        action = self.start(Evaluate(AgentId(agent), TASKS[task], attempt))
        reason = KINDS[(self.run.tree.evaluations + self.run.tree.invalid) % len(KINDS)]
        cost = self.cost("patch", "log", "conversation", "circumstances", "tests", "failures")
        self.record_verdict(
            action, agent, TASKS[task], verdict, reason, attempt=attempt, score=0.5, cost=cost
        )

    def troubles(self) -> None:
        """Everything else that a log can hold, and two actions that are under way at its end."""
        dead = self.start(Expand((AgentId(1),), OPERATOR, aim=SCRIPT))
        self.run.append(CallRefused(dead, ROLE, 404, f"code {ALL}", ALL))
        outcome = Stillborn(
            (AgentId(1),), OPERATOR, f"stage {ALL}", f"{ALL} {HALF}", self.cost("log", "vetting")
        )
        self.run.append(AgentStillborn(dead, outcome))
        lost = self.start(Evaluate(AgentId(1), TASKS[5]))
        self.run.append(ActionLost(lost, ALL, final=True))
        self.run.append(RunPaused(ALL))
        asked = self.start(Expand((AgentId(2),), OPERATOR))
        commit = self.commit(source(99), (2,))
        self.run.repository.name_waiting(asked, commit)
        child = Born((AgentId(2),), OPERATOR, commit, ALL, self.cost("log"))
        self.run.append(ChildProposed(asked, child))
        self.start(Evaluate(AgentId(0), TASKS[5]))
        self.start(Expand((AgentId(0),), OPERATOR, aim=ESCAPES))


def hostile(parent: Path, *, stopped: bool = True, name: str = RUN_NAME) -> HostileRun:
    """Makes the run ``parent/name``: an agent per kind of hostile text, a crossover, verdicts of all three kinds.

    Args:
        parent: an existing folder.
        stopped: whether it ended in good order (for a hostile reason); else two actions are under way.
        name: of its folder.
    """
    made = HostileRun(parent, name)
    for number, kind in enumerate(KINDS):
        made.born((max(0, number - 2),), kind)
    made.born((3, 4), ALL)
    last = len(made.run.tree.agents) - 1
    for agent in (0, 1, 2, 3, last):
        for task in range(5):
            better = (agent + task) % 2 if agent < last else task != 2
            made.graded(agent, task, Verdict.RESOLVED if better else Verdict.UNRESOLVED)
    made.graded(4, 0, Verdict.INVALID)
    made.graded(0, 1, Verdict.RESOLVED, attempt=1)
    made.troubles()
    if stopped:
        made.run.append(RunStopped(f"because {ALL}"))
    return made


def examined(run: Run) -> None:
    """Gives a hostile run a holdout evaluation of its seed and its last agent on the same hostile tasks, ended."""
    with create_run(run.folder / "holdout", run.config, Budget(), TASKS) as exam:
        made = RunBuilder(exam)
        for agent in (run.tree.agents[0], run.tree.agents[-1]):
            commit = exam.repository.commit(run.repository.source(agent.commit), ())
            exam.append(exam.birth(Born((), "candidate", commit, ALL), ActionId(0), key=agent.commit))
        for task in TASKS:
            for agent in (AgentId(0), AgentId(1)):
                action = made.begin(Evaluate(agent, task))
                made.record_exchange(action, 1, _REQUEST, Reply(ALL), MODEL, ROLE, _USAGE, 0.5)
                made.record_verdict(
                    action, agent, task, Verdict.RESOLVED if agent else Verdict.UNRESOLVED, ALL
                )
        exam.append(RunStopped(ALL))


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a hostile run with a holdout evaluation, closed; to be read only."""
    made = hostile(tmp_path_factory.mktemp("hostile"))
    examined(made.run)
    made.run.close()
    return made.run.folder
