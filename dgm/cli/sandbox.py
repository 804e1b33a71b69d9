"""``dgm sandbox``: images of the sandboxes, and remains of dead processes."""

import asyncio
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from dgm.cli.arguments import as_json, engine_option
from dgm.cli.output import emit_json


@click.group()
def sandbox() -> None:
    """Build, list and remove sandbox images."""


@sandbox.command()
@click.argument("names", nargs=-1, metavar="[RECIPE]…")
@click.option("--all", "everything", is_flag=True, help="Build every recipe: ten minutes and 3 GB.")
@engine_option
@as_json
def build(names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Build the images of the named recipes (default: python); what is built already is left alone."""
    from dgm.sandboxes import recipes
    from dgm.sessions.sandbox_images import build_images

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    built = build_images(recipes.names() if everything else names)
    if as_json:
        emit_json({"images": built})
        return
    for name, tag in built.items():
        sys.stdout.write(f"{name:<20} {tag}\n")


@sandbox.command(name="list")
@engine_option
@as_json
def list_(as_json: bool) -> None:
    """List recipes and whether their image is built, and agents' own images."""
    from dgm.sessions.sandbox_images import list_images

    rows = list_images()
    if as_json:
        emit_json({"images": rows})
        return
    for row in rows:
        state = _tell_state(row)
        recipe = row["recipe"] or "(an agent's)"
        where = f" on {row['engine']}" if "engine" in row else ""
        sys.stdout.write(f"{recipe:<20} {row['tag']:<40} {state}{where}\n")


@sandbox.command()
@engine_option
@as_json
def gc(as_json: bool) -> None:
    """Remove images that are not needed, and sandboxes that dead processes left on this host.

    Not needed are images of recipes that have changed, and agents' own images that were not used for a week; those are
    built again where a run needs them.
    """
    from dgm.sessions.sandbox_images import remove_remains

    removed = asyncio.run(remove_remains())
    if as_json:
        emit_json(removed)
        return
    sys.stdout.write(f"removed {removed['images']} images and {removed['sandboxes']} sandboxes\n")


def _tell_state(row: Mapping[str, Any]) -> str:
    if "used" not in row:
        return "built" if row["built"] else "not built"
    used = time.strftime("%Y-%m-%d", time.localtime(row["used"]))
    return f"{row['size_mb']:,.1f} MB, last used {used}"
