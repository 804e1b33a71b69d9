"""Which definitions belong to which part, and what a change of one part may not touch."""

import pytest

from dgm.archive.snapshots import LINK, PROGRAM
from dgm.domain import Entry, Snapshot
from dgm.meta.contract import PARTS
from dgm.meta.parts import TOP, SourcePlace, find_frozen_changes, parts_of, places
from dgm.meta.seeds import read_seed

SEED = read_seed()
LOOP, TOOLS, PROMPTS = "agent/loop.py", "agent/tools.py", "agent/prompts.py"
CODE = b'''"""Doc."""
import os
from agent import tools as t

LIMIT, OTHER = 1, 2


class Agent:
    """An agent."""

    size = 3

    def run(self):
        """Run."""
        return os.name

    def prompt(self):
        return "p"


register(Agent)
'''


def named(found) -> set[str]:
    return {str(place) for place in found}


def seed_with(path: str, old: bytes, new: bytes) -> Snapshot:
    assert SEED[path].data.count(old) == 1
    return {**SEED, path: Entry(SEED[path].data.replace(old, new))}


def changes(before: bytes, after: bytes, part: str = "memory", path: str = "x.py") -> list[str]:
    return [str(p) for p in find_frozen_changes({path: Entry(before)}, {path: Entry(after)}, part)]


def test_the_parts_of_the_seed():
    found = {part: named(places(SEED, part)) for part in PARTS}
    assert found["memory"] == {f"{LOOP}::work", f"{PROMPTS}::first_message"}
    assert found["completion"] == {f"{LOOP}::work", f"{LOOP}::MAX_STEPS"}
    assert found["context"] == {f"{TOOLS}::OUTPUT_LIMIT", f"{TOOLS}::truncate"}
    assert found["prompts"] == {
        f"{PROMPTS}::{name}" for name in ("SOLVE", "IMPROVE", "system", "first_message")
    }
    assert found["tools"] == {
        f"{TOOLS}::{name}"
        for name in (
            "OUTPUT_LIMIT",
            "COMMAND_TIMEOUT_S",
            "SCHEMAS",
            "TOOLS",
            "bash",
            "edit",
            "truncate",
            "run",
        )
    }
    assert {f"{LOOP}::work", "agent/model.py::reply", f"agent/__main__.py::{TOP}", "README.md"} <= found[
        "loop"
    ]


def test_every_place_is_in_a_part():
    everywhere = frozenset[SourcePlace]().union(*(places(SEED, part) for part in PARTS))
    assert {place.path for place in everywhere} == set(SEED)
    assert parts_of(SourcePlace("zzz.py", "zzz")) == {"loop"}


def test_a_method_without_a_telling_name_belongs_to_its_class():
    assert parts_of(SourcePlace("a.py", "ToolBox.add")) == {"tools"}
    assert parts_of(SourcePlace("a.py", "ToolBox.render_prompt")) == {"prompts"}
    assert parts_of(SourcePlace("a.py", "Agent.run")) == {"loop", "memory", "completion"}
    assert parts_of(SourcePlace("prompts/system.md")) == {"prompts"}
    assert parts_of(SourcePlace("tools.py", "run")) == {"tools"}


def test_what_agent_toml_declares_replaces_the_names():
    declared = {"context": [f"{TOOLS}::trunc*", "ctx/"], "prompts": ["**/*.md"], "tools": ["a.py::Box"]}
    assert named(places(SEED, "context", declared)) == {f"{TOOLS}::truncate"}
    assert named(places(SEED, "prompts", declared)) == {"README.md"}
    assert f"{TOOLS}::bash" in named(places(SEED, "loop", declared))
    assert parts_of(SourcePlace("ctx/a.py", "f"), declared) == {"context"}
    assert parts_of(SourcePlace("a.py", "Box.add"), declared) == {"tools"}
    assert parts_of(SourcePlace("a.py", "Boxes"), declared) == {"loop"}


def test_a_change_inside_the_part_is_free_and_outside_is_named():
    more = seed_with(LOOP, b"MAX_STEPS = 10", b"MAX_STEPS = 30")
    assert find_frozen_changes(SEED, more, "completion") == []
    assert find_frozen_changes(SEED, more, "context") == [SourcePlace(LOOP, "MAX_STEPS")]
    assert find_frozen_changes(SEED, SEED, "context") == []


def test_comments_and_layout_are_free_but_docstrings_are_not():
    assert changes(b"def f(a):\n    return a\n", b"# why\ndef f( a ):\n\n    return (a)  # what\n") == []
    assert changes(b'def f(a):\n    "x"\n', b'def f(a):\n    "y"\n') == ["x.py::f"]


def test_new_definitions_methods_imports_and_files_are_free():
    new = CODE.replace(b"import os", b"import os\nimport sys").replace(
        b"register", b"def g(): pass\n\nregister"
    )
    new = new.replace(b"    def prompt", b"    def more(self): ...\n\n    def prompt")
    assert changes(CODE, new) == []
    assert (
        find_frozen_changes(SEED, {**SEED, "agent/new.py": Entry(b"import sys\nsys.exit()\n")}, "context")
        == []
    )


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b"size = 3", b"size = 4", ["x.py::Agent"]),
        (b"class Agent:", b"class Agent(list):", ["x.py::Agent"]),
        (b"return os.name", b"return 1", ["x.py::Agent.run"]),
        (b'return "p"', b'return "q"', ["x.py::Agent.prompt"]),
        (b"LIMIT, OTHER = 1, 2", b"LIMIT, OTHER = 1, 3", ["x.py::LIMIT", "x.py::OTHER"]),
        (b"LIMIT, OTHER = 1, 2", b"LIMIT = 1", ["x.py::LIMIT", "x.py::OTHER"]),
        (b"register(Agent)", b"register(Agent)\nAgent.run = 1", ["x.py::(statements)"]),
        (b"register(Agent)", b"", ["x.py::(statements)"]),
        (b"register(Agent)", b"register(Agent)\nLIMIT = 5", ["x.py::LIMIT"]),
        (b"register(Agent)", b"register(Agent)\nLIMIT += 5", ["x.py::LIMIT"]),
        (b"register(Agent)", b"register(Agent)\nfrom y import LIMIT", ["x.py::LIMIT"]),
        (b"register(Agent)", b"register(Agent)\nfrom y import *", ["x.py::(statements)"]),
        (b"from agent import tools as t", b"from agent import loop as t", ["x.py::t"]),
        (b"from agent import tools as t", b"def t(): pass", ["x.py::t"]),
        (b"from agent import tools as t", b"", []),
        (b'"""Doc."""', b'"""Other."""', []),
    ],
)
def test_every_way_to_change_a_frozen_place(old, new, what):
    assert CODE.count(old) == 1
    # No place of this file is of the tools.
    assert changes(CODE, CODE.replace(old, new), "tools") == what


def test_new_statements_in_a_file_without_any_are_seen():
    assert changes(b"def f(): pass\n", b"def f(): pass\nf()\n") == ["x.py::(statements)"]


def test_other_files_are_compared_whole():
    assert changes(b"a", b"b", path="notes.txt") == []
    assert changes(b"a", b"b", path="data.txt") == ["data.txt"]
    before = {"data.txt": Entry(b"a"), "run.py": Entry(b"def f(): pass"), "e.py": Entry(b"")}
    for after in (
        {},
        {
            "data.txt": Entry(b"a", PROGRAM),
            "run.py": Entry(b"def f(): pass", PROGRAM),
            "e.py": Entry(b"", PROGRAM),
        },
        {"data.txt": Entry(b"a", LINK), "run.py": Entry(b"def f(): pass", LINK), "e.py": Entry(b"", LINK)},
    ):
        assert named(find_frozen_changes(before, after, "tools")) == {"data.txt", "run.py::f", "e.py"}


def test_a_file_that_is_no_python_counts_whole():
    bad = b"def f(:\n"
    assert changes(b"def f(): pass\ndef g(): pass\n", bad) == ["x.py::f", "x.py::g"]
    assert changes(bad, b"def f(): pass\n") == ["x.py"]
    assert changes(bad, bad + b"x") == ["x.py"]
    assert named(places({"x.py": Entry(bad), "tools\udcff.py": Entry(b"\0")}, "loop")) == {"x.py"}


@pytest.mark.slow
def test_a_file_of_very_many_definitions_is_read():
    many = b"".join(b"a=%d\n" % (n % 10) for n in range(20_000))
    assert changes(many, many.replace(b"a=0", b"a=1", 1), "tools") == ["x.py::a"]
