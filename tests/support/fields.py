"""Two agents that each work on other fields, and the agent that both were made from.

The ancestor is the shipped seed with changes of the offline model's own edits, which make it solve more, and a
table of the packages that it works on, which is empty: it leaves every repository as it is. Each of the two adds
packages to the table, in the same place, and a change of its own elsewhere.
"""

import json

from dgm.domain import Entry
from dgm.meta.seeds import read_seed
from dgm.offline.improve import apply_edits, kinds

STRONGER = ("more-steps", "still-more-steps", "test-after-edit", "reproduce", "head-and-tail", "list-files")
FIELDS = '''"""Which repositories this agent works on."""

import os

FIELDS = [
]


def known(workdir):
    """Whether a package of the repository is one that this agent knows."""
    return any(os.path.isdir(os.path.join(workdir, name)) for name in FIELDS)
'''
ASKED = """    with open(arguments[0], encoding="utf-8") as file:
        job = json.load(file)
"""
DECLINES = """    if job["kind"] == "solve" and not fields.known(job["workdir"]):
        print("not a field of mine")
        return 0
"""


def changed(files, names):
    """The files after edits of the offline model, by their names."""
    for name in names:
        edits = next(kind for kind in kinds() if kind.name == name).apply(files)
        assert edits, name
        files = apply_edits(files, edits)
    return files


def ancestor():
    """Solves nothing, and could solve much."""
    files = changed({path: entry.data.decode() for path, entry in read_seed().items()}, STRONGER)
    start = files["agent/__main__.py"]
    assert start.count(ASKED) == 1
    start = start.replace(ASKED, ASKED + DECLINES).replace("import loop", "import fields, loop")
    files |= {"agent/fields.py": FIELDS, "agent/__main__.py": start}
    return {path: Entry(text.encode()) for path, text in files.items()}


def specialist(fields, *changes):
    """The ancestor for some packages, with further edits of the offline model."""
    files = {path: entry.data.decode() for path, entry in ancestor().items()}
    rows = "".join(f"    {json.dumps(name)},\n" for name in fields)
    files["agent/fields.py"] = files["agent/fields.py"].replace("FIELDS = [\n", "FIELDS = [\n" + rows)
    files = changed(files, changes)
    return {path: Entry(text.encode()) for path, text in files.items()}
