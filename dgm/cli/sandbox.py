"""``dgm sandbox``: images of the sandboxes, and remains of dead processes."""

import asyncio
import logging
import sys
from typing import TYPE_CHECKING

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.errors import Infrastructure
from dgm.protocols import SandboxEngine

if TYPE_CHECKING:
    from docker import DockerClient


@click.group()
def sandbox() -> None:
    """Build, list and remove sandbox images."""


@sandbox.command()
@click.argument("names", nargs=-1, metavar="[RECIPE]…")
@click.option("--all", "everything", is_flag=True, help="Build every recipe: ten minutes and 3 GB.")
@as_json
def build(names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Build the images of the named recipes (default: python); what is built already is left alone."""
    from dgm.sandboxes import images, recipes

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    client = _docker_client()
    wanted = recipes.names() if everything else names or ("python",)
    built = {name: images.ensure(client, recipes.load(name)) for name in wanted}
    if as_json:
        emit_json({"images": built})
        return
    for name, tag in built.items():
        sys.stdout.write(f"{name:<20} {tag}\n")


@sandbox.command(name="list")
@as_json
def list_(as_json: bool) -> None:
    """List recipes and whether their image is built."""
    from dgm.sandboxes import images, recipes

    present = set(images.list_images(_docker_client()))
    rows = [(name, recipes.load(name).tag) for name in recipes.names()]
    if as_json:
        emit_json({"images": [{"recipe": name, "tag": tag, "built": tag in present} for name, tag in rows]})
        return
    for name, tag in rows:
        sys.stdout.write(f"{name:<20} {tag:<40} {'built' if tag in present else 'not built'}\n")


@sandbox.command()
@as_json
def gc(as_json: bool) -> None:
    """Remove images of recipes that have changed, and sandboxes that dead processes left on this host."""
    removed = asyncio.run(_collect_garbage())
    if as_json:
        emit_json(removed)
        return
    sys.stdout.write(f"removed {removed['images']} images and {removed['sandboxes']} sandboxes\n")


def _docker_client() -> "DockerClient":
    from dgm.sandboxes.docker import DockerEngine

    return DockerEngine().client


async def _collect_garbage() -> dict[str, int]:
    import socket

    from dgm.sandboxes import images
    from dgm.sandboxes.bubblewrap import BubblewrapEngine
    from dgm.sandboxes.docker import DockerEngine

    labels = {"dgm.host": socket.gethostname()}
    removed = {"images": 0, "sandboxes": 0}
    engines: list[SandboxEngine] = []
    try:
        docker = DockerEngine()
        removed["images"] = len(await asyncio.to_thread(images.collect, docker.client))
        engines.append(docker)
    except Infrastructure as error:
        logging.getLogger(__name__).info("no Docker engine: %s", error)
    try:
        engines.append(BubblewrapEngine())
    except Infrastructure as error:
        logging.getLogger(__name__).info("no bubblewrap: %s", error)
    for engine in engines:
        removed["sandboxes"] += await engine.reap(labels)
    return removed
