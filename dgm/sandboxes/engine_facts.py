"""The facts about an engine that its own answers tell: whose it is, on what machine it runs, what it can bound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_MACHINES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "aarch64"}


class EngineKind(StrEnum):
    """The programs that speak Docker's protocol and differ in what they take."""

    DOCKER = "docker"
    PODMAN = "podman"


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """An engine, as it describes itself."""

    kind: EngineKind
    version: str
    machine: str
    """Architecture of its sandboxes, as ``uname -m`` says it, such as ``x86_64``."""
    rootless: bool
    bounds_processes: bool
    bounds_memory: bool
    cpus: int = 1
    """Processors of its machine."""
    ident: str = ""
    """Id by which it is the same engine at whatever address; empty if it tells none."""

    @property
    def lacks(self) -> Sequence[str]:
        """The things that it does not bound, in words."""
        bounded = {"processes": self.bounds_processes, "memory": self.bounds_memory}
        return [name for name, is_bounded in bounded.items() if not is_bounded]


def read_facts(version: Mapping[str, Any], info: Mapping[str, Any]) -> EngineFacts:
    """Return the facts in the engine's answers to ``/version`` and ``/info``."""
    names = [str(part.get("Name", "")) for part in version.get("Components") or ()]
    is_podman = any(name.startswith("Podman") for name in names)
    rootless = any("rootless" in str(option) for option in info.get("SecurityOptions") or ())
    # Podman says that the machine could bound something, not that it may.
    powerless = rootless and str(info.get("CgroupVersion", "1")) == "1"
    architecture = str(version.get("Arch") or info.get("Architecture") or "")
    return EngineFacts(
        kind=EngineKind.PODMAN if is_podman else EngineKind.DOCKER,
        version=str(version.get("Version", "")),
        machine=_MACHINES.get(architecture, architecture),
        rootless=rootless,
        bounds_processes=bool(info.get("PidsLimit")) and not powerless,
        bounds_memory=bool(info.get("MemoryLimit")) and not powerless,
        cpus=max(1, int(info.get("NCPU") or 1)),
        ident=str(info.get("ID") or ""),
    )
