"""The operator that changes one named part of an agent: what it asks for, and what it does not let pass."""

import pytest

from dgm.archive.snapshots import PROGRAM
from dgm.domain import Entry, Verdict
from dgm.errors import AgentFault
from dgm.meta.contract import PARTS, read_contract
from dgm.meta.self_edit import Module, files_of_part
from dgm.offline.improve import apply_edits, kinds
from dgm.protocols import JobKind, Needs
from tests.support.offline_talk import IMPROVE, Scaffold
from tests.unit.meta.making import MORE_OUTPUT, MORE_STEPS, SEED, Bench, brief, make, member

WORDS = "DONE\nRationale: show more\nGeneral: long output  is cut on every problem"
LOOP_FILES = ["README.md", "agent/__init__.py", "agent/__main__.py", "agent/loop.py", "agent/model.py"]


def change(child=MORE_OUTPUT, aim="tools", *, words=WORDS, source=SEED, child_number=2, **verdicts):
    bench = Bench(edit=lambda _: child, words=words)
    about = brief(member(4, source, **verdicts), aim=aim, child_number=child_number)
    return make(Module, bench, about), bench.jobs[0]


def fail(stage, *args, **more):
    with pytest.raises(AgentFault) as fault:
        change(*args, **more)
    assert fault.value.stage == stage
    return str(fault.value)


def test_the_parent_is_asked_to_change_the_files_of_one_part():
    new_file = {**MORE_OUTPUT, "agent/new.py": Entry(b"import os\n")}
    proposal, job = change(new_file)
    assert Module.needs == Needs(aims=("loop", "tools", "context", "prompts", "memory", "completion"))
    assert (job.kind, job.source, job.workspace, job.time_limit_s) == (JobKind.IMPROVE, SEED, SEED, 60.0)
    assert (proposal.source, proposal.rationale, proposal.log) == (new_file, "show more", b"log")
    assert proposal.stated == "long output is cut on every problem"
    assert "Change only the part `tools`," in job.problem
    assert "May change:\n- `agent/tools.py`\n\nChild number: 2" in job.problem
    assert "$" not in job.problem


@pytest.mark.parametrize(
    ("child_number", "part"), [(0, "loop"), (3, "prompts"), (5, "completion"), (6, "loop")]
)
def test_without_an_aim_the_parts_take_turns(child_number, part):
    _, job = change(SEED, "", child_number=child_number)
    assert f"Change only the part `{part}`," in job.problem


@pytest.mark.parametrize(
    ("declared", "part", "files"),
    [
        ({}, "tools", ["agent/tools.py"]),
        ({}, "prompts", ["agent/prompts.py"]),
        ({}, "loop", LOOP_FILES),
        ({}, "memory", LOOP_FILES),
        ({"context": ["agent/tools.py::trunc*", "**/*.md"]}, "context", ["README.md", "agent/tools.py"]),
        ({"tools": ["agent/", "agent.toml"]}, "tools", sorted(path for path in SEED if path.startswith("agent/"))),
        ({"tools": ["agent/tools.py"]}, "prompts", sorted({*LOOP_FILES, "agent/prompts.py"})),
    ],
)  # fmt: skip
def test_names_or_the_agent_say_which_files_belong_to_a_part(declared, part, files):
    text = "[agent.parts]\n" + "".join(f"{name} = {patterns!r}\n" for name, patterns in declared.items())
    source = {**SEED, "agent.toml": Entry(SEED["agent.toml"].data + text.encode())}
    assert files_of_part(source, part, read_contract(source)) == files


@pytest.mark.parametrize(
    ("child", "aim", "paths"),
    [
        (MORE_OUTPUT, "prompts", "agent/tools.py"),
        (MORE_STEPS, "tools", "agent/loop.py"),
        ({path: MORE_OUTPUT[path] for path in SEED if "model" not in path}, "tools", "agent/model.py"),
        ({**SEED, "agent/loop.py": Entry(SEED["agent/loop.py"].data, PROGRAM)}, "tools", "agent/loop.py"),
        ({}, "tools", "README.md, agent.toml, agent/__init__.py, agent/__main__.py, agent/loop.py ..."),
    ],
)
def test_a_change_of_another_file_is_no_child(child, aim, paths):
    assert fail("protected", child, aim).endswith(f"the part {aim!r}: {paths}")


@pytest.mark.parametrize("words", ["DONE\nRationale: more", "DONE\nGeneral:", "DONE\nGeneral:   \n"])
def test_a_change_without_a_statement_is_no_child(words):
    fail("statement", words=words)
    assert change(SEED, words=words)[0].source == SEED


def test_a_statement_that_names_a_task_is_no_child():
    words = f"{WORDS}, not only on ledger-year"
    assert "'ledger-year'" in fail("statement", words=words, **{"ledger-year": Verdict.RESOLVED})


def test_a_part_that_there_is_not_costs_nothing():
    text = b'[agent]\ncommand = ["a"]\ncheck = ["b"]\neditable = ["agent/tools.py"]\n'
    locked = {**SEED, "agent.toml": Entry(text)}
    assert "no part 'brain'" in fail("part", aim="brain")
    assert "nothing in the parent's source belongs to the part 'prompts'" in fail(
        "part", aim="prompts", source=locked
    )


@pytest.mark.starts_processes
@pytest.mark.parametrize("part", PARTS)
def test_the_offline_model_changes_the_part_it_is_asked_to_change(part, tmp_path):
    class Offline(Bench):
        async def work(self, job):
            files = {path: entry.data.decode() for path, entry in job.workspace.items()}
            self.words = Scaffold(tmp_path).write(files).work(job.problem, IMPROVE)[-1]
            self.edit = lambda _: {path: Entry((tmp_path / path).read_bytes()) for path in job.workspace}
            return await super().work(job)

    proposal = make(Module, Offline(), brief(aim=part))
    assert proposal.stated == "it changes how the agent works on every problem, and speaks of none."
    texts = {path: entry.data.decode() for path, entry in SEED.items()}
    outcomes = [apply_edits(texts, kind.apply(texts)) for kind in kinds()]
    assert proposal.source != SEED
    assert {path: entry.data.decode() for path, entry in proposal.source.items()} in outcomes
