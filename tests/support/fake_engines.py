"""Docker engines of one process, which can be switched off: what several engines as one are tried on."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.engine_client import EngineFacts


@dataclass
class FakeEngine:
    """An engine that counts its sandboxes and images."""

    cpus: int = 2
    is_away: bool = False
    open_sandboxes: dict[int, SandboxSpec] = field(default_factory=dict)
    left: list[Mapping[str, str]] = field(default_factory=list)
    """Labels of sandboxes that a dead process left."""
    images: set[str] = field(default_factory=set)
    builds: list[str] = field(default_factory=list)
    opened: int = 0

    @property
    def facts(self) -> EngineFacts:
        """The engine's own words."""
        return EngineFacts(False, "20.10", "x86_64", False, True, True, cpus=self.cpus)

    @property
    def machine(self) -> str:
        """The architecture."""
        return "x86_64"

    @property
    def task_images(self) -> "FakeEngine":
        """Its images."""
        return self

    def check_answers(self) -> None:
        """Raise where the engine is switched off."""
        if self.is_away:
            raise Infrastructure("no answer")

    def has(self, reference: str) -> bool:
        """Return whether the image is there."""
        self.check_answers()
        return reference in self.images

    def build(self, recipe: object, tag: str = "", *, network: bool = False) -> str:
        """Build a recipe's image, or a task's."""
        name = tag or str(recipe)
        self.check_answers()
        if name not in self.images:
            self.builds.append(name)
            self.images.add(name)
        return name

    def offered(self, reference: str) -> bool:
        """Return that no registry has the image."""
        return False

    def build_agent(self, dockerfile: str, source: object) -> str:
        """Build an agent's image."""
        return self.build(None, f"dgm/agent:{dockerfile}")

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Derive an image."""
        if not self.has(image):
            raise UserError(f"no image {image}")
        self.build(tag)

    def check(self, image: str) -> None:
        """Raise where the image is missing."""
        if not self.has(image):
            raise UserError(f"the engine has no image {image}")

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[SandboxSpec]:
        """Open a sandbox, which is no more than its specification."""
        self.check_answers()
        self.opened += 1
        number = self.opened
        self.open_sandboxes[number] = spec
        try:
            yield spec
        finally:
            del self.open_sandboxes[number]
            if self.is_away:
                self.left.append(spec.labels)

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove what a dead process left."""
        return self.remove_labelled(labels)

    def remove_labelled(self, labels: Mapping[str, str]) -> int:
        """Remove what a dead process left."""
        self.check_answers()
        gone = [each for each in self.left if labels.items() <= each.items()]
        self.left = [each for each in self.left if each not in gone]
        return len(gone)


def connect_to(engines: Mapping[str, FakeEngine]):
    """Return a function that connects to these engines by their hosts' names."""

    def connect(address: EngineAddress) -> FakeEngine:
        engine = engines[address.url.rpartition("/")[2]]
        engine.check_answers()
        return engine

    return connect
