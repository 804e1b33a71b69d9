"""The list of the evidence in the task of an agent that works on itself."""

from dgm.domain import Entry
from dgm.meta.evidence.listing import describe_evidence

INDEX = """# Evidence

`agents/N/` tells of agent N.

## Cases of agent 4, whose source is in the repository

- `cases/lru-ttl-0/`: unresolved: 1 of 3 tests fail (812 bytes)

## Agents

`agents/4/`: child of 0; solved 3 of 9
  by self-edit: more steps
"""


def test_each_folder_has_a_line():
    evidence = {"README.md": Entry(INDEX.encode())}
    shown = describe_evidence(evidence, mounted=True, also=["- `merged/`: both changes"])
    assert shown.splitlines()[1:] == [
        "- `merged/`: both changes",
        "- `cases/lru-ttl-0/`: unresolved: 1 of 3 tests fail",
        "- `agents/4/`: child of 0; solved 3 of 9",
    ]
    assert "`/run/evidence`" in shown
    assert "`/job/evidence`" in describe_evidence(evidence, mounted=False)


def test_a_long_list_is_cut():
    rows = "".join(f"- `cases/{n}/`: {'x' * 500}\n" for n in range(99))
    lines = describe_evidence({"README.md": Entry(rows.encode())}, mounted=True).splitlines()
    assert len(lines) == 42
    assert lines[-1] == "- and 59 more"
    assert max(map(len, lines[1:])) == 160


def test_no_evidence_is_said():
    assert describe_evidence({}, mounted=True) == "There is no evidence of what it did yet."
