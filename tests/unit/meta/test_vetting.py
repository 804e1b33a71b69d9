"""A child is stopped at the first stage that it fails; nothing that costs more has run then."""

import asyncio
import json

import pytest

from dgm.archive.repository import patch
from dgm.archive.snapshots import from_folder, tree_id
from dgm.benchmarks.opening import NoSandboxEngine, open_suite
from dgm.conduct import Secrets, inspect_edit
from dgm.config import GateSettings, LimitSettings, VettingSettings
from dgm.domain import Entry, FindingKind, TaskId, Verdict
from dgm.errors import AgentFault, Infrastructure
from dgm.messages import Reply, RequestRefused, Usage
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.seeds import read_seed
from dgm.meta.similarity import AgentEdit, Judge, syntax_key
from dgm.meta.vetting import DryRuns, Vetting
from dgm.offline import OfflineModel
from dgm.paths import asset
from dgm.protocols import Completed, Grade, Work

pytestmark = pytest.mark.starts_processes

TOML = b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n'
CODE = (
    b"def work(job, model):\n    for step in range(10):\n        model.ask(job, step)\n    return job.end()\n"
)
PARENT = {"agent.toml": Entry(TOML), "a.py": Entry(CODE)}
CHILD = {**PARENT, "a.py": Entry(CODE.replace(b"10", b"20"))}
TWIN = {**PARENT, "a.py": Entry(CODE.replace(b"10", b"30"))}
REMARK = {**PARENT, "a.py": Entry(CODE.replace(b"10", b"30") + b"\n\n# That is all.\n")}
TASKS = (TaskId("one"), TaskId("two"))
STAGES = [
    *("patch", "unchanged", "protected", "size", "conduct", "duplicate", "syntax"),
    *("contract", "novelty", "check", "improve", "probe"),
]
EVERYTHING = GateSettings(novelty="similarity")
SEEDS_AND_TEMPLATES = [path for path in asset("archive", "templates").iterdir() if path.is_dir()]


class World:
    """Checks, agents and probes that end as told; it notes what costs something."""

    def __init__(self, check=None, work=None, probes=(Verdict.RESOLVED,), answers=()):
        self.checked = check or Completed(0, b"ok")
        self.worked = work or Work(CHILD, b"", Completed(0, b""), (), 1)
        self.verdicts = list(probes)
        self.answers = list(answers)
        self.ran = []
        self.vetting = None

    async def check(self, source):
        self.ran.append("check")
        return self.checked

    async def work(self, job):
        self.ran.append("improve")
        return self.worked

    async def tries(self, child, task):
        self.ran.append(f"probe {task}")
        verdict = self.verdicts.pop(0)
        if isinstance(verdict, Exception):
            raise verdict
        return Grade(verdict, f"tests of {task}", 0.0)

    async def ask(self, request, role):
        self.ran.append(f"ask {role}")
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, usage=Usage(1)) if answer else await OfflineModel().reply(request)

    def vet(self, child, gates=EVERYTHING, probes=TASKS, vetting=None, parent=PARENT, known=True, **limits):
        secrets = limits.pop("secrets", Secrets())
        conduct = {name: limits.pop(name) for name in ("findings", "on_misconduct") if name in limits}
        twins = {tree_id(TWIN): "agent 3"} if known else {}
        keys = {syntax_key(TWIN): "agent 3", syntax_key(PARENT): "agent 0"} if known else {}
        edits = [AgentEdit("agent 3", patch(PARENT, TWIN)), AgentEdit("agent 2", patch(TWIN, PARENT))]
        self.vetting = Vetting(
            child=child,
            parent=parent,
            dry=DryRuns(self, "python", 1.0),
            try_task=self.tries,
            probes=probes,
            known=lambda source: twins.get(tree_id(source)),
            syntax=lambda: keys,
            edits=lambda: edits if known else (),
            limits=LimitSettings(**limits),
            vetting=vetting or VettingSettings(),
            gates=gates,
            secrets=lambda: secrets,
            **conduct,
            judge=Judge(self, Prompts(load_shipped()), 1, 60_000) if gates.novelty == "model" else None,
        )
        return asyncio.run(self.vetting.run())

    @property
    def results(self):
        return {stage["stage"]: stage["result"] for stage in self.vetting.stages}


def failing(world, child, *args, **kwargs):
    with pytest.raises(AgentFault) as caught:
        world.vet(child, *args, **kwargs)
    return caught.value


def test_a_good_child_passes_all_stages_and_each_says_what_it_took():
    world = World()
    size = sum(len(entry.data) for entry in CHILD.values())
    assert world.vet(CHILD, agent_files=len(CHILD), agent_bytes=size) == syntax_key(CHILD)
    assert world.ran == ["check", "improve", "probe one"]
    assert list(world.results.items()) == [(stage, "passed") for stage in STAGES]
    stages = json.loads(world.vetting.trace())["stages"]
    assert [stage["stage"] for stage in stages] == STAGES
    assert all(0 < stage["seconds"] < 600 for stage in stages)
    assert stages[-1]["tries"][0].items() >= {"task": "one", "verdict": "resolved"}.items()


BIG = {**CHILD, "big.txt": Entry(b"0123456789\n" * 400)}
COPY = {**PARENT, "a.py": Entry(CODE.replace(b"10", b"30").replace(b"end()", b"end( )") + b"x = 1\n")}


@pytest.mark.parametrize(
    ("child", "stage", "reason"),
    [
        ({**CHILD, "a.py/b": Entry(b"")}, "patch", "both a file and a folder"),
        ({**CHILD, "../b": Entry(b"")}, "patch", "not the name of a file"),
        ({**CHILD, "tool": Entry(b"x", 0o160000)}, "patch", "neither a file nor a link"),
        (BIG, "patch", "bytes as a patch; 4000 are allowed"),
        (PARENT, "unchanged", "the same as its parent's"),
        ({**CHILD, "agent.toml": Entry(TOML + b"\n")}, "protected", "agent.toml"),
        ({"a.py": Entry(b"1")}, "protected", "agent.toml"),
        ({**CHILD, **{f"f{n}": Entry(b"") for n in range(20)}}, "size", "22 files; 10 are allowed"),
        (TWIN, "duplicate", "the same content as agent 3"),
        (REMARK, "syntax", "the same as agent 3"),
        ({**PARENT, "a.py": Entry(CODE + b'"""Words."""\n')}, "syntax", "the same as agent 0"),
        (COPY, "novelty", "a near copy of the edit of agent 3"),
    ],
)
def test_what_needs_no_sandbox_is_stopped_without_one(child, stage, reason):
    world = World()
    gates = GateSettings(novelty="similarity", novelty_threshold=0.3)
    limits = {"patch_bytes": 4000, "agent_files": 10, "agent_bytes": 4000}
    fault = failing(world, child, gates if stage == "novelty" else EVERYTHING, **limits)
    assert (fault.stage, world.ran) == (stage, [])
    assert reason in str(fault)
    assert list(world.results.items()) == [
        *((before, "passed") for before in STAGES[: STAGES.index(stage)]),
        (stage, "failed"),
    ]
    assert json.loads(world.vetting.trace())["stages"][-1]["reason"] == str(fault)


def test_a_source_that_shrinks_by_a_large_patch_may_still_be_too_large():
    assert failing(World(), BIG, agent_bytes=4000).stage == "size"


def test_nothing_is_a_child_of_what_is_no_agent():
    world = World()
    assert (failing(world, CHILD, parent={"a.py": Entry(CODE)}).stage, world.ran) == ("contract", [])


@pytest.mark.parametrize(
    ("check", "cause"),
    [
        (Completed(1, b"Traceback\nSyntaxError: x"), "SyntaxError"),
        (Completed(124, b"", timed_out=True), "time-out"),
        (Completed(137, b""), "no"),
    ],
)
def test_a_failing_check_is_fatal(check, cause):
    world = World(check)
    fault = failing(world, CHILD)
    assert (fault.stage, fault.cause) == ("check", cause)
    assert world.ran == ["check"]
    assert list(world.results)[-1] == "check"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"out_of_processor": True}, "took more than 1 s of processor time (limits.check_s)"),
        ({"seconds": 60.2}, "did not end within 60 s, at a second try: it waits for something"),
    ],
)
def test_what_a_child_ran_out_of_is_told_and_what_it_printed_is_kept(how, reason):
    late = Completed(124, b"loading\n", timed_out=True, **how)
    fault = failing(World(late), CHILD)
    assert (str(fault), fault.output) == (f"the self-check {reason}", b"loading\n")
    fault = failing(World(work=Work(CHILD, b"", late, (), 1)), CHILD)
    assert (str(fault), fault.output) == (
        f"an improve job, to which the model only says DONE, {reason}",
        b"loading\n",
    )


@pytest.mark.parametrize(
    ("work", "cause"),
    [
        (Work(CHILD, b"", Completed(0, b""), (), 0), "no call"),
        (Work(CHILD, b"", Completed(124, b"", timed_out=True), (), 1), "time-out"),
        (
            Work(CHILD, b"", Completed(1, b"Traceback (most recent call last)\nKeyError: 'x'"), (), 1),
            "KeyError",
        ),
    ],
)
def test_a_child_that_cannot_improve_is_stillborn(work, cause):
    world = World(work=work)
    fault = failing(world, CHILD)
    assert (fault.stage, fault.cause) == ("improve", cause)
    assert world.ran == ["check", "improve"]


@pytest.mark.parametrize(
    ("verdicts", "probes", "result", "tried"),
    [
        ([Verdict.UNRESOLVED, Verdict.RESOLVED], TASKS, "passed", ["probe one", "probe two"]),
        ([Verdict.INVALID, Verdict.RESOLVED], TASKS, "passed", ["probe one", "probe two"]),
        ([Verdict.RESOLVED], TASKS, "passed", ["probe one"]),
        ([], (), "skipped", []),
    ],
)
def test_one_probe_that_is_solved_is_enough(verdicts, probes, result, tried):
    world = World(probes=verdicts)
    world.vet(CHILD, probes=probes)
    assert (world.results["probe"], world.ran[2:]) == (result, tried)
    assert bool(world.vetting.stages[-1].get("note")) == (result == "skipped")


def test_a_child_that_fails_every_probe_is_broken():
    world = World(probes=[Verdict.UNRESOLVED, AgentFault("patch", "too large")])
    fault = failing(world, CHILD)
    assert fault.stage == "probe"
    assert "any of the 2 tasks" in str(fault)
    assert "one: tests of one; two: patch: too large" in str(fault)
    assert world.ran == ["check", "improve", "probe one", "probe two"]
    assert [tried["verdict"] for tried in world.vetting.stages[-1]["tries"]] == ["unresolved"] * 2


def test_a_probe_that_the_infrastructure_fails_says_nothing_of_the_child():
    world = World(probes=[Infrastructure("engine gone")])
    with pytest.raises(Infrastructure):
        world.vet(CHILD)
    assert world.results["probe"] == "broken"


def test_stages_that_are_turned_off_are_not_run():
    world = World()
    off = VettingSettings(patch=False, syntax=False, probes=0)
    assert world.vet(REMARK, GateSettings(), vetting=off) == ""
    assert list(world.results) == [
        "unchanged",
        "protected",
        "size",
        "conduct",
        "duplicate",
        "contract",
        "check",
        "improve",
    ]
    assert world.ran == ["check", "improve"]


def test_a_model_decides_which_edit_is_a_copy():
    asks = GateSettings(novelty="model", novelty_threshold=0.01)
    world = World(answers=['{"copy": false, "why": "it counts further"}'])
    world.vet(CHILD, asks)
    assert world.ran == ["ask diagnose", "check", "improve", "probe one"]
    world = World(answers=["Well.", 'I think: {"copy": true, "why": "another\\nnumber"}'])
    fault = failing(world, CHILD, asks)
    assert fault.stage == "novelty"
    assert str(fault).endswith("another number")
    assert world.ran == ["ask diagnose"] * 2


@pytest.mark.parametrize("answers", [["?", "?"], [RequestRefused("context_length_exceeded", "too long")]])
@pytest.mark.parametrize(("threshold", "stage"), [(0.01, "novelty"), (1.0, "")])
def test_where_the_model_does_not_say_similarity_does(answers, threshold, stage):
    world = World(answers=answers)
    gates = GateSettings(novelty="model", novelty_threshold=threshold)
    if stage:
        assert failing(world, CHILD, gates).stage == stage
    else:
        world.vet(CHILD, gates)
    assert "the model did not say" in world.vetting.trace().decode()


def test_the_offline_model_judges_by_the_words_that_change():
    asks = GateSettings(novelty="model")
    World().vet({**PARENT, "b.py": Entry(b"import os\n\n\ndef home():\n    return os.getcwd()\n")}, asks)
    same = {**PARENT, "a.py": Entry(CODE.replace(b"10", b"30") + b"\n\nstep = 10\n")}
    assert failing(World(), same, asks).stage == "novelty"


def test_the_first_child_of_all_is_new():
    world = World()
    world.vet(CHILD, known=False)
    assert world.results["novelty"] == "skipped"


def test_a_real_agent_with_a_binary_file_a_link_and_a_program_passes_the_patch_stage():
    seed = read_seed()
    child = {
        **{path: entry for path, entry in seed.items() if not path.endswith("README.md")},
        "logo.bin": Entry(bytes(range(256))),
        "run.sh": Entry(b"#!/bin/sh\n", 0o100755),
        "here": Entry(b"agent", 0o120000),
        "no newline \xe4.txt": Entry(b"x"),
    }
    world = World()
    world.vet(child, GateSettings(), parent=seed)
    assert world.results["patch"] == "passed"


def started(work):
    """What ``start_solve`` says of an agent that leaves this behind."""
    asyncio.run(DryRuns(World(work=work), "python", 1.0).start_solve(CHILD))


@pytest.mark.parametrize(
    "work",
    [
        Work(CHILD, b"", Completed(0, b"")),
        Work(CHILD, b"", Completed(1, b"Traceback (most recent call last)\nValueError: DONE"), (), 1),
        Work(CHILD, b"", Completed(1, b"told no"), (), 0, ("unsupported_parameter",)),
        Work(CHILD, b"", Completed(124, b"", timed_out=True)),
    ],
)
def test_an_agent_can_start_that_asks_its_model_or_ends_well_or_is_slow(work):
    started(work)


def test_an_agent_cannot_start_that_fails_before_it_asks_its_model():
    with pytest.raises(AgentFault, match="exits 127 before it asks the model: no such program") as caught:
        started(Work(CHILD, b"", Completed(127, b"\nno such program\n\n")))
    assert caught.value.stage == "start"


CHEAT = {**PARENT, "a.py": Entry(CODE + b"SOLVED = {'slugs-keep-their-signs': 7}\n")}


def test_an_edit_that_knows_a_task_is_flagged_with_its_line_and_lives():
    world, findings = World(), {}
    world.vet(CHEAT, secrets=Secrets(names=frozenset(["slugs-keep-their-signs"])), findings=findings)
    (finding,) = findings
    assert (finding.kind, finding.location) == (FindingKind.SPECIAL_CASE, "a.py:5")
    assert "slugs" not in json.dumps(world.vetting.stages)


def test_an_edit_that_knows_a_task_dies_where_misconduct_is_rejected():
    world, findings = World(), {}
    options = {"secrets": Secrets(names=frozenset(["slugs-keep-their-signs"])), "on_misconduct": "reject"}
    fault = failing(world, CHEAT, findings=findings, **options)
    assert (fault.stage, str(fault), len(findings)) == ("conduct", "a.py:5: names a task of the benchmark", 1)
    assert world.ran == []


@pytest.mark.parametrize("name", ["plain", "solid"])
def test_no_shipped_seed_or_template_is_flagged(name):
    secrets = open_suite("starter", NoSandboxEngine()).secrets()
    sources = {
        path.name: from_folder(path) for path in (*SEEDS_AND_TEMPLATES, asset("archive", "seeds", name))
    }
    flagged = {
        key: found
        for key, source in sources.items()
        if (found := inspect_edit(patch({}, source), {}, secrets))
    }
    assert flagged == {}
