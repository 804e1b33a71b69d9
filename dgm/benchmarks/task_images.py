"""Images that a task brings itself: a Dockerfile of its own, or an image of the engine that holds the workspace.

A task's sandboxes do not start from the image that it names. A Dockerfile has to be built, and a workspace in an image
needs a baseline beside it to compare with. The engine makes both, at the latest when the task is first worked on.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

from dgm.benchmarks.dockerfiles import wants_network
from dgm.benchmarks.suite_files import IN_ENGINE
from dgm.consents import ConsentNeeded, Subject
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.folders import docker_context, read_file, read_folder
from dgm.paths import asset
from dgm.protocols import SandboxEngine

NAMES_SHOWN = 5
WITHOUT_IMAGES = ("bubblewrap",)
"""Names of the engines that have no images but those of recipes."""


class TaskImageStore(Protocol):
    """The images that tasks bring or name.

    Each method raises ``UserError`` if there is no such image or it cannot be used or built here, and
    ``Infrastructure`` if the engine failed.
    """

    def build(self, context: Snapshot, tag: str, *, network: bool) -> None:
        """Build the context's ``Dockerfile``, whose steps may use a network, as ``tag`` if that is missing."""
        ...

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``: the image with its ``folder`` as a workspace (``InImage()``) with a baseline."""
        ...

    def check(self, image: str) -> None:
        """Check that there is such an image, and that dgm can work and grade in it."""
        ...


@runtime_checkable
class TaskImageBuilder(Protocol):
    """An engine that makes images from the parts that tasks bring."""

    @property
    def task_images(self) -> TaskImageStore:
        """The images of tasks."""
        ...


@runtime_checkable
class InstancePlanner(Protocol):
    """An engine that makes images of instances when a sandbox needs one, and not before."""

    def plan_instance(self, sources: Sequence[str], tag: str) -> None:
        """Note that ``tag`` is made of the first of ``sources`` that can be had, from its repository at ``/testbed``.

        Raises:
            UserError: no such image can be had.
        """
        ...


@dataclass(frozen=True)
class TaskImage:
    """The image of one task."""

    given: str
    """The name in ``task.toml`` or ``suite.toml``; ignored if there is a Dockerfile."""
    workdir: str
    dockerfile: Path | None = None
    holds_workspace: bool = False

    @cached_property
    def name(self) -> str:
        """The image that sandboxes are opened with; known without an engine."""
        if self.holds_workspace:
            which = "\0".join((self.built, self.workdir))
            return f"{IN_ENGINE}dgm/task-workspace:{_digest(which.encode())}"
        return f"{IN_ENGINE}{self.built}" if self.dockerfile else self.given

    @property
    def needs_building(self) -> bool:
        """Whether the image has to be made, because neither the engine nor a recipe has it."""
        return self.name != self.given

    def check(self, task: Path, engine: SandboxEngine) -> None:
        """Check that the engine can have images at all.

        Raises:
            UserError: it cannot; the message names the task's folder.
        """
        if self.name.startswith(IN_ENGINE) and engine.name in WITHOUT_IMAGES:
            raise UserError(
                f"{task}: works in an image of Docker's, and {engine.name} has none: start Docker and set "
                "sandbox to docker, or give the task a folder workspace/ and the image of a recipe"
            )

    def ensure(self, engine: SandboxEngine, *, network: bool) -> None:
        """Make the image if it is missing, and check that it has what sandboxes need; block meanwhile.

        Args:
            engine: that has the image afterwards.
            network: whether the steps of a Dockerfile may use a network.

        Raises:
            UserError: it cannot be built, only Docker could, or it lacks a program.
            Infrastructure: the engine failed.
        """
        if not isinstance(engine, TaskImageBuilder):
            if self.needs_building:
                what = self.dockerfile or self.given
                raise UserError(
                    f"{what}: {engine.name} builds no images; start Docker, and set sandbox to docker"
                )
            return
        store = engine.task_images
        if self.dockerfile:
            store.build(self.context, self.built, network=network)
        if self.holds_workspace:
            store.hold(self.built, self.workdir, self.name.removeprefix(IN_ENGINE))
        elif self.name.startswith(IN_ENGINE):
            store.check(self.built)

    @cached_property
    def context(self) -> Snapshot:
        """The files that the Dockerfile may copy, of ``environment/`` alone: never a test or a solution."""
        assert self.dockerfile
        if self.dockerfile.parent.name == "environment":
            return docker_context(read_folder(self.dockerfile.parent), self.dockerfile.name)
        return {"Dockerfile": Entry(read_file(self.dockerfile))}

    @cached_property
    def built(self) -> str:
        """The image of the Dockerfile or the given one; the name of the former follows from the context."""
        if not self.dockerfile:
            return self.given.removeprefix(IN_ENGINE)
        return f"dgm/task:{_digest(_serialise_files(self.context))}"


def check_consent(folder: Path, images: Iterable[TaskImage]) -> bool:
    """Make sure that this user has agreed to build the Dockerfiles of a suite.

    Args:
        folder: of the suite.
        images: of its tasks.

    Returns:
        Whether their steps may use a network.

    Raises:
        ConsentNeeded: the user has agreed to neither.
    """
    images = [image for image in images if image.dockerfile]
    plain, networked = (make_subject(folder, images, network=network) for network in (False, True))
    if not (plain and networked) or folder.resolve().is_relative_to(asset("benchmarks").resolve()):
        return False
    if networked.is_agreed():
        return True
    if plain.is_agreed():
        return False
    wanted = any(
        wants_network(image.context["Dockerfile"].data.decode("utf-8", "replace")) for image in images
    )
    asked = networked if wanted else plain
    raise ConsentNeeded(
        f"{folder}: needs {asked.words}, which runs programs of the suite's author; look at them first",
        f"{folder} needs {asked.words}. They run programs of its author. Build them",
        [asked],
    )


def make_subject(folder: Path, images: Iterable[TaskImage], *, network: bool) -> Subject | None:
    """Return what a user agrees to who lets Docker build the Dockerfiles of a suite; None if it has none.

    It is the same as long as the Dockerfiles and the files that they may copy are.
    """
    built = {image.dockerfile: image.built for image in images if image.dockerfile}
    if not built:
        return None
    names = [dockerfile.relative_to(folder).as_posix() for dockerfile in built]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    how = "with a network" if network else "without a network"
    content = json.dumps(["suite", network, sorted({*built.values()})])
    return Subject(content, f"Docker to build {', '.join(names[:NAMES_SHOWN])}{more} {how}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:24]


def _serialise_files(files: Mapping[str, Entry]) -> bytes:
    parts = [
        part for name, entry in files.items() for part in (os.fsencode(name), b"%o" % entry.mode, entry.data)
    ]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
