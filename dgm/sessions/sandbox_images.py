"""Images of the sandboxes, and remains of dead processes on this host."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.errors import Infrastructure
from dgm.sandboxes import recipes
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.this_machine import machine_name

USUAL = ("python",)
"""Recipes that are built where none is named."""

log = logging.getLogger(__name__)


def build_images(names: Sequence[str]) -> Mapping[str, str]:
    """Build the images of recipes that are not built yet, and return recipe → tag.

    Args:
        names: of recipes; if empty, ``python``.

    Raises:
        UserError: there is no such recipe.
        Infrastructure: no Docker engine answers, or a build failed.
    """
    engine = DockerEngine()
    return {name: engine.build(name) for name in names or USUAL}


def list_images() -> Sequence[dict[str, Any]]:
    """Return each recipe with the tag of its image, and whether that is built.

    Raises:
        Infrastructure: no Docker engine answers.
    """
    present = set(DockerEngine().images())
    tags = {name: recipes.load(name).tag for name in recipes.names()}
    return [{"recipe": name, "tag": tag, "built": tag in present} for name, tag in tags.items()]


async def remove_remains() -> dict[str, int]:
    """Remove images of recipes that have changed, and sandboxes of dead processes; return how many of each."""
    labels = {"dgm.host": machine_name()}
    removed = {"images": 0, "sandboxes": 0}
    engines: list[DockerEngine | BubblewrapEngine] = []
    try:
        docker = DockerEngine()
        removed["images"] = len(await asyncio.to_thread(docker.collect))
        engines.append(docker)
    except Infrastructure as error:
        log.info("no Docker engine: %s", error)
    try:
        engines.append(BubblewrapEngine())
    except Infrastructure as error:
        log.info("no bubblewrap: %s", error)
    for engine in engines:
        removed["sandboxes"] += await engine.reap_left(labels)
    return removed
