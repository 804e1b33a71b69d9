"""SWE-bench as a benchmark: its instances as tasks that stand in their images, graded by the swebench package.

An agent sees an instance's statement and its repository at the base commit. Docker only.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from dgm.benchmarks import swebench_images as images
from dgm.benchmarks.formats import BenchmarkContext, Format
from dgm.benchmarks.grade import unresolved
from dgm.benchmarks.grader_version import stamp_version
from dgm.benchmarks.prediction_patches import normalised_patch
from dgm.benchmarks.swebench_grading import WORKDIR, Exam, grade, make_script, package_version
from dgm.benchmarks.swebench_rows import DATA_SETS, Instance, Parts, load, read_subset
from dgm.benchmarks.task_images import WITHOUT_IMAGES, InstancePlanner
from dgm.benchmarks.toml_table import suggestion
from dgm.config import SwebenchSettings
from dgm.domain import Split, Task, TaskId
from dgm.errors import UserError
from dgm.protocols import Grade, InImage, SandboxEngine, SandboxSpec

PREFIX = "swebench:"
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
        parts: Parts,
        engine: SandboxEngine,
        settings: SwebenchSettings,
    ) -> None:
        images.check(settings.images, instances)
        self.name = name
        self.instances = instances
        self._parts = parts
        self._engine = engine
        self._settings = settings
        self._scripts: dict[TaskId, str] = {}
        self.version = _version(instances, parts, settings)

    def tasks(self, split: Split) -> Sequence[Task]:
        """Return the split's instances, in the order of the subset."""
        return [self.task(task) for task in self._parts.get(split, ())]

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
            image=self._image(instance),
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
        if task not in self._scripts:
            self._scripts[task] = make_script(instance)
        chosen = self._settings.images
        if isinstance(self._engine, InstancePlanner):
            self._engine.plan_instance([images.image_of(instance, chosen)], images.tag_of(instance, chosen))
        else:
            images.ensure(instance, chosen, images.store_of(self._engine))
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
        if not normalised_patch(patch).data:
            return unresolved("empty patch")
        return await grade(await asyncio.to_thread(self.exam, task), patch, self._engine, labels)

    def exam(self, task: TaskId) -> Exam:
        """Return the inputs for grading a patch for this instance, including the hidden tests; as ``workspace``."""
        place = self.workspace(task)
        instance = self.instance(task)
        spec = SandboxSpec(
            image=self._image(instance),
            filled={WORKDIR: place.source},
            cpus=CPUS,
            memory_mb=MEMORY_MB,
            pids=PIDS,
            disk_mb=DISK_MB,
        )
        return Exam(instance, self._scripts[task], spec, self._settings.tests_s)

    def _image(self, instance: Instance) -> str:
        return images.IN_ENGINE + images.tag_of(instance, self._settings.images)


def open_swebench(context: BenchmarkContext) -> SwebenchBenchmark:
    """Open ``swebench:`` with a data set's name or a file of instances.

    Raises:
        UserError: there is none, something in it is wrong, or the engine has no images.
    """
    name = context.name.removeprefix(PREFIX)
    if context.engine.name in WITHOUT_IMAGES:
        images.store_of(context.engine)
    instances = load(name)
    settings = context.settings.swebench
    parts = read_subset(settings.subset, instances) if settings.subset else {Split.SEARCH: tuple(instances)}
    short = name if name in DATA_SETS else Path(name).stem
    return SwebenchBenchmark(f"swebench-{short}", instances, parts, context.engine, settings)


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


def _version(instances: Mapping[TaskId, Instance], parts: Parts, settings: SwebenchSettings) -> str:
    """Return the version by instances, splits, image names, limits and the package's version."""
    limits = f"{package_version()} {settings.tests_s} {CPUS} {MEMORY_MB} {PIDS} {DISK_MB}"
    digest = hashlib.sha256(limits.encode())
    for split in Split:
        for task in parts.get(split, ()):
            instance = instances[task]
            digest.update(f"{split} {task} {images.image_of(instance, settings.images)}\n".encode())
            digest.update(instance.digest)
    return stamp_version(digest.hexdigest())
