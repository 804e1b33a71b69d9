"""SWE-bench as a benchmark: its instances as tasks that stand in their images, graded by the package's rules.

An agent sees an instance's statement and its repository at the base commit. Docker only.
"""

import asyncio
import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path

from dgm.benchmarks import swebench_images as images
from dgm.benchmarks import swebench_subsets as subsets
from dgm.benchmarks.context import BenchmarkContext
from dgm.benchmarks.formats import Format
from dgm.benchmarks.grader_version import stamp_version
from dgm.benchmarks.swebench_grading import Exam, grade, plan_of
from dgm.benchmarks.swebench_instances import Instance, load
from dgm.benchmarks.swebench_parsers import Parsers
from dgm.benchmarks.swebench_rows import DATA_SETS
from dgm.benchmarks.task_images import WITHOUT_IMAGES, InstancePlanner
from dgm.benchmarks.toml_table import suggestion
from dgm.config import SwebenchSettings
from dgm.domain import Split, Task, TaskId
from dgm.errors import UserError
from dgm.protocols import Grade, InImage, SandboxEngine, SandboxSpec

PREFIX = "swebench:"
WORKDIR = "/testbed"
CPUS, MEMORY_MB, PIDS, DISK_MB = 2.0, 4096, 512, 2048
"""Limits of the sandbox that grades: CPUs, memory in MB, processes, disk in MB."""
PLACE = (
    "\n\n---\nThe repository stands in {workdir} at the commit that this was reported on, with all that it depends on "
    "installed{interpreter}. There is no network.\n"
)


class SwebenchBenchmark:
    """A ``dgm.protocols.Benchmark`` on instances in SWE-bench's format."""

    def __init__(
        self,
        name: str,
        instances: Mapping[TaskId, Instance],
        subset: subsets.Subset,
        engine: SandboxEngine,
        settings: SwebenchSettings,
        parsers: Parsers | None = None,
    ) -> None:
        images.check(settings.images, instances)
        self.name = name
        self.instances = instances
        self.subset = subset
        self._engine = engine
        self._settings = settings
        self._images = settings.images
        self._parsers = parsers or Parsers()
        self._gradable: set[TaskId] = set()
        self.version = _version(instances, subset, settings)

    def tasks(self, split: Split) -> Sequence[Task]:
        """Return the split's instances, in the order of the subset."""
        return [self.task(task) for task in self.subset.parts.get(split, ())]

    def task(self, task: TaskId) -> Task:
        """Return one instance, as an agent may see it.

        Raises:
            UserError: there is no such instance.
        """
        instance = self.instance(task)
        interpreter = " (its interpreter is python)" if _is_python(instance) else ""
        return Task(
            id=task,
            benchmark=self.name,
            prompt=instance.problem.rstrip() + PLACE.format(workdir=WORKDIR, interpreter=interpreter),
            image=images.IN_ENGINE + images.tag_of(instance, self._images),
            workdir=WORKDIR,
            timeout_s=self._settings.agent_s,
            tags=tuple(filter(None, (instance.repo, instance.difficulty))),
        )

    def instance(self, task: TaskId) -> Instance:
        """Return the whole instance for people, grading and fetching; an agent must not see it.

        Raises:
            UserError: there is no such instance.
        """
        if task not in self.instances:
            near = suggestion(task, list(self.instances))
            raise UserError(f"{self.name}: no instance {task!r}{near if 'mean' in near else ''}")
        return self.instances[task]

    def workspace(self, task: TaskId) -> InImage:
        """Return the repository's place in the instance's image; pull the image if it is missing.

        Raises:
            UserError: an agent's patch could not be graded; raised before that costs anything.
            Infrastructure: the image cannot be had; the message says what to do.
        """
        instance = self.instance(task)
        if task not in self._gradable:
            plan_of(self.exam(task))
            row = {"instance_id": instance.id, "repo": instance.repo, "log_parser": instance.log_parser}
            self._parsers.check(row)
            self._gradable.add(task)
        if isinstance(self._engine, InstancePlanner):
            sources, tag = images.candidates(instance, self._images), images.tag_of(instance, self._images)
            self._engine.plan_instance(sources, tag)
        else:
            images.ensure(instance, self._images, images.store_of(self._engine))
        return InImage()

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:  # noqa: ARG002  (one try, whatever came of it)
        """Return nothing: there is only one try."""
        return ""

    def reference(self, task: TaskId) -> bytes:
        """Return the reference fix; to verify instances, never shown to an agent."""
        return self.instance(task).patch.encode("utf-8", "surrogateescape")

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Apply the patch to a fresh copy of the repository in a fresh sandbox and run the instance's tests there.

        Raises:
            UserError: the swebench package is missing.
            Infrastructure: the image, the sandbox or the package failed; this is no verdict on the patch.
        """
        if patch.strip():
            await asyncio.to_thread(self.workspace, task)
        return await grade(self.exam(task), patch, self._engine, self._parsers, labels)

    def exam(self, task: TaskId) -> Exam:
        """Return the inputs for grading a patch for this instance, including the hidden tests."""
        instance = self.instance(task)
        place = InImage()
        spec = SandboxSpec(
            image=images.IN_ENGINE + images.tag_of(instance, self._images),
            filled={WORKDIR: place.source},
            cpus=CPUS,
            memory_mb=MEMORY_MB,
            pids=PIDS,
            disk_mb=DISK_MB,
        )
        return Exam(
            instance=instance.id,
            repo=instance.repo,
            version=instance.version,
            base_commit=instance.base_commit,
            test_patch=instance.test_patch,
            reference=instance.patch,
            fail_to_pass=instance.fail_to_pass,
            pass_to_pass=instance.pass_to_pass,
            spec=spec,
            workdir=WORKDIR,
            timeout_s=self._settings.tests_s,
            log_parser=instance.log_parser,
            fail_only=instance.eval_type == "fail_only",
            test_cmd=instance.test_cmd,
            eval_script=instance.eval_script,
        )


def open_swebench(context: BenchmarkContext) -> SwebenchBenchmark:
    """Open ``swebench:`` with a data set's name or a file of instances.

    Raises:
        UserError: there is none, something in it is wrong, or the engine has no images.
    """
    which = context.name.removeprefix(PREFIX)
    if context.engine.name in WITHOUT_IMAGES:
        images.store_of(context.engine)
    instances = load(which)
    settings = context.settings.swebench
    chosen = settings.subset
    subset = subsets.read(chosen, instances) if chosen else subsets.everything(instances)
    short = which if which in DATA_SETS else Path(which).stem
    return SwebenchBenchmark(f"swebench-{short}", instances, subset, context.engine, settings)


FORMAT = Format(
    "swebench",
    open_swebench,
    "swebench:verified or swebench:FILE",
    (
        (f"{PREFIX}{' | '.join(DATA_SETS)}", "SWE-bench, from Hugging Face"),
        ("swebench:FILE", "instances in SWE-bench's format: JSON, JSONL or Parquet"),
    ),
    is_folder=False,
    meaning="SWE-bench",
    data_sets=DATA_SETS,
)


def _is_python(instance: Instance) -> bool:
    return any(line.startswith("diff --git") and line.endswith(".py") for line in instance.patch.split("\n"))


def _version(instances: Mapping[TaskId, Instance], subset: subsets.Subset, settings: SwebenchSettings) -> str:
    """Return the version by instances, splits, image names, limits and the package's version."""
    digest = hashlib.sha256(f"{_package()} {settings.tests_s} {CPUS} {MEMORY_MB} {PIDS} {DISK_MB}".encode())
    for split in Split:
        for task in subset.parts.get(split, ()):
            instance = instances[task]
            digest.update(f"{split} {task} {images.named(instance, settings.images)}\n".encode())
            digest.update(instance.digest)
    return stamp_version(digest.hexdigest())


def _package() -> str:
    try:
        return importlib.metadata.version("swebench")
    except importlib.metadata.PackageNotFoundError:
        return "none"
