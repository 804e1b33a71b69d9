"""A sandbox and a gateway in one, for tests of the workbench: no program runs, and no model is asked."""

import json
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from dgm.domain import ActionId, Entry
from dgm.gateway.lease import CallLimits, ModelNames
from dgm.gateway.memory import LeaseMemory
from dgm.protocols import Completed, Job, JobKind, SandboxSpec
from dgm.worker.workbench import SandboxWorkbench

MANIFEST = b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n'
SOURCE = {"agent.toml": Entry(MANIFEST)}
WORKSPACE = {"a.py": Entry(b"1")}
SOLVE = Job(JobKind.SOLVE, "p", SOURCE, WORKSPACE, "python", "/work/repo", 6.0)
IDLE = Completed(0, b"")
SPEC = SandboxSpec("python")


class Place:
    """Every program ends as told and leaves the next of ``folders``, the last one for ever."""

    action, lost_s, blameless = 1, 0.0, ""
    folder, socket_name = Path("/nowhere"), "gateway.sock"
    limits, takes_tools = CallLimits(calls=80), True
    names = ModelNames("scripted")
    findings, asked_models = {}, {}
    token, failure, threads, calls, refused = "dgm-0", None, (), 0, ()
    caller, reached, memory = None, True, LeaseMemory()
    idle = IDLE
    """How a program ends that does nothing."""

    def __init__(self, completed=IDLE, folders=(WORKSPACE,)):
        self.completed, self.folders, self.jobs = completed, list(folders), []

    async def recall(self):
        pass

    @contextmanager
    def lend(self, action, role, limits=None, heard=None, kind=""):
        yield self

    @asynccontextmanager
    async def open(self, spec):
        yield self

    async def put(self, files, target):
        self.jobs.append(files)

    async def exec(self, argv, **_):
        return self.idle if argv[:2] == ["sh", "-c"] else self.completed

    async def wait_for_calls(self, limit_s):
        pass

    async def get(self, source, **_):
        return self.folders.pop(0) if len(self.folders) > 1 else self.folders[0]

    def problem(self, job):
        """The problem of a job's file."""
        return json.loads(self.jobs[job]["job/job.json"].data)["problem"]

    def bench(self, limits, **options):
        """A workbench whose sandboxes and gateway are here."""
        return SandboxWorkbench(self.open, self, ActionId(1), SPEC, limits, **options)
