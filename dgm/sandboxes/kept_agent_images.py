"""Agents' own images that an engine has, and when they were last used; those that nobody uses any more are removed.

No run names them: an agent's Dockerfile does, and the image is built again where it is missing. So the time of the last
use decides.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dgm.paths import cache_folder
from dgm.sandboxes import podman
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.images import remove_images

if TYPE_CHECKING:
    from docker import DockerClient

REPOSITORY = "dgm/agent"
UNUSED_S = 7 * 24 * 3600.0
"""Seconds without use after which an image is removed."""


@dataclass(frozen=True, slots=True)
class AgentImage:
    """One agent's own image."""

    tag: str
    size_bytes: int
    used: float
    """Time when it was built or last used from this machine, in seconds since 1970."""


def note_use(image: str) -> None:
    """Note that an agent's own image, as in a sandbox's specification, is used now; others are left alone."""
    tag = image.removeprefix(IN_ENGINE)
    if tag.startswith(f"{REPOSITORY}:"):
        (cache_folder("agent-images") / tag.removeprefix(f"{REPOSITORY}:")).touch()


def list_agent_images(client: "DockerClient") -> Sequence[AgentImage]:
    """Return all agents' images of an engine, the longest unused first."""
    found = [
        AgentImage(tag, int(image["Size"]), max(float(image["Created"]), _find_last_use(tag)))
        for image in client.api.images(name=REPOSITORY)
        for tag in map(podman.strip_registry, image["RepoTags"] or ())
        if tag.startswith(f"{REPOSITORY}:")
    ]
    return sorted(found, key=lambda image: (image.used, image.tag))


def collect(client: "DockerClient", now: float | None = None) -> list[str]:
    """Remove agents' images that were not used for ``UNUSED_S``; return their tags.

    Images that a container still uses are kept.

    Args:
        client: of the engine.
        now: seconds since 1970.
    """
    oldest = (time.time() if now is None else now) - UNUSED_S
    removed = remove_images(client, [image.tag for image in list_agent_images(client) if image.used < oldest])
    for tag in removed:
        (cache_folder("agent-images") / tag.removeprefix(f"{REPOSITORY}:")).unlink(missing_ok=True)
    return removed


def _find_last_use(tag: str) -> float:
    with contextlib.suppress(OSError):
        return (cache_folder("agent-images") / tag.removeprefix(f"{REPOSITORY}:")).stat().st_mtime
    return 0.0
