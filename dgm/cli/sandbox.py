"""``dgm sandbox``: images of the sandboxes, and what a dead process left."""

import asyncio
import logging
import sys

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json


@click.group()
def sandbox() -> None:
    """Build, list and remove sandbox images."""


@sandbox.command()
@click.argument("names", nargs=-1, metavar="[RECIPE]…")
@as_json
def build(names: tuple[str, ...], as_json: bool) -> None:
    """Build the images of the named recipes, or of all; what is built already is left alone."""
    from dgm.sandboxes.images import Images
    from dgm.sandboxes.recipes import recipe_names

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    images = Images.connect()
    built = {name: images.ensure(name) for name in names or recipe_names()}
    if as_json:
        emit_json({"images": built})
        return
    for name, tag in built.items():
        sys.stdout.write(f"{name:<12} {tag}\n")


@sandbox.command(name="list")
@as_json
def list_(as_json: bool) -> None:
    """List recipes and whether their image is built."""
    from dgm.sandboxes.images import Images

    rows = Images.connect().listing()
    if as_json:
        emit_json({"images": rows})
        return
    for row in rows:
        state = f"{row['size_mb']} MB" if row["built"] else "not built"
        sys.stdout.write(f"{row['recipe']:<12} {row['tag']:<40} {state}\n")


@sandbox.command()
@as_json
def gc(as_json: bool) -> None:
    """Remove images of recipes that have changed, and sandboxes that a dead process left on this host."""
    removed = asyncio.run(_collect())
    if as_json:
        emit_json(removed)
        return
    sys.stdout.write(f"removed {removed['images']} images and {removed['sandboxes']} sandboxes\n")


async def _collect() -> dict[str, int]:
    from dgm.sandboxes.choose import available
    from dgm.sandboxes.images import Images

    images = 0
    sandboxes = 0
    for engine in available():
        sandboxes += await engine.reap({})
        if engine.name == "docker":
            images = await asyncio.to_thread(lambda: Images.connect().gc())
    return {"images": images, "sandboxes": sandboxes}
