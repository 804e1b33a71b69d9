"""Evidence stands in a sandbox of either engine as a folder that its user can read and nobody there can change."""

import asyncio
import json
import os

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.protocols import Job, JobKind
from dgm.worker.workbench import SandboxWorkbench
from tests.docker.conftest import spec
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, gateway

TOML = Entry(b'[agent]\ncommand = ["python3", "-m", "looks"]\ncheck = ["true"]\n')
LOOKS = Entry(b"""
import json, os, sys

job = json.load(open(sys.argv[1]))
top = job["evidence"]
files, refused = {}, []
for folder, _, names in os.walk(top):
    for name in names:
        path = os.path.join(folder, name)
        files[os.path.relpath(path, top)] = open(path).read()
for path in (os.path.join(top, "README.md"), os.path.join(top, "cases/a-0/new"), os.path.join(top, "new")):
    try:
        open(path, "a").write("forged")
    except OSError as error:
        refused.append(type(error).__name__)
try:
    os.chmod(os.path.join(top, "README.md"), 0o777)
except OSError as error:
    refused.append(type(error).__name__)
report = {"place": top, "files": files, "refused": refused}
json.dump(report, open(os.path.join(job["workdir"], "report.json"), "w"))
""")
SOURCE = {"agent.toml": TOML, "looks.py": LOOKS}
EVIDENCE = {"README.md": Entry(b"index\n"), "cases/a-0/patch.diff": Entry(b"diff\n", 0o100755)}


def reported(engine, folder):
    """What an agent that looks at its evidence saw of it."""

    async def scenario():
        async with gateway(folder / "gateway", Script(), MemoryJournal()) as opened:
            bench = SandboxWorkbench(engine.open, opened, ACTION, spec(), LimitSettings())
            job = Job(JobKind.IMPROVE, "p", SOURCE, SOURCE, "python", "/work/agent", 30.0, EVIDENCE)
            work = await bench.work(job)
        assert work.completed.exit_code == 0, work.completed.output
        return json.loads(work.workspace["report.json"].data)

    return asyncio.run(scenario())


def test_evidence_that_is_shown_can_be_read_and_not_changed(engine, tmp_path):
    before = os.umask(0o077)
    try:
        seen = reported(engine, tmp_path)
    finally:
        os.umask(before)
    assert seen["place"] == "/run/evidence"
    assert seen["files"] == {"README.md": "index\n", "cases/a-0/patch.diff": "diff\n"}
    assert len(seen["refused"]) == 4, seen
    assert [path.name for path in tmp_path.iterdir() if "evidence" in path.name] == []
