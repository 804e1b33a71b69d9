"""Images of the sandboxes, and remains of dead processes on this host."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from dgm.archive.this_machine import machine_name
from dgm.errors import Infrastructure
from dgm.sandboxes import recipes
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import resolve_addresses
from dgm.sandboxes.image_store import AGENT

USUAL = ("python",)
"""Recipes that are built where none is named."""

log = logging.getLogger(__name__)


def build_images(names: Sequence[str]) -> Mapping[str, str]:
    """Build the images of recipes that are not built yet, on each engine, and return recipe → tag.

    Args:
        names: of recipes; if empty, ``python``.

    Raises:
        UserError: there is no such recipe.
        Infrastructure: no Docker engine answers, or a build failed.
    """
    engines = [DockerEngine(address) for address in resolve_addresses()]
    built = {}
    for name in names or USUAL:
        for engine in engines:
            # The tag is the recipe's, whatever engine has it.
            built[name] = engine.build(name)
    return built


def list_images() -> Sequence[dict[str, Any]]:
    """Return the rows of recipes and of agents' own images; on which engine, if there are several.

    A recipe's row has the tag of its image, and whether that is built. An agent's image has no recipe; its row has the
    size in MB and the time of its last use, in seconds since 1970.

    Raises:
        Infrastructure: no Docker engine answers.
    """
    addresses = resolve_addresses()
    tags = {name: recipes.load(name).tag for name in recipes.names()}
    rows = []
    for address in addresses:
        engine = DockerEngine(address)
        present = set(engine.task_images.list_recipes())
        where = {"engine": address.url} if len(addresses) > 1 else {}
        rows += [{"recipe": name, "tag": tag, "built": tag in present, **where} for name, tag in tags.items()]
        rows += [
            {
                "recipe": "",
                "tag": image.tag,
                "built": True,
                "size_mb": round(image.size_bytes / 1e6, 1),
                "used": image.used,
                **where,
            }
            for image in engine.task_images.list_images([AGENT])
        ]
    return rows


async def remove_remains() -> dict[str, int]:
    """Remove images that are not needed, and sandboxes of dead processes; return how many of each.

    Not needed are images of recipes that have changed, and agents' own images that were not used for a week.
    """
    labels = {"dgm.host": machine_name()}
    removed = {"images": 0, "sandboxes": 0}
    engines: list[DockerEngine | BubblewrapEngine] = []
    for address in resolve_addresses():
        try:
            docker = DockerEngine(address)
            removed["images"] += len(await asyncio.to_thread(docker.collect))
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
