"""``dgm doctor``: checks whether this machine can run a search, and what would improve it."""

import asyncio
import sys

import click

from dgm.cli.arguments import as_json, engine_option
from dgm.cli.commands import FIRST
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json
from dgm.errors import UserError

OPTIONAL = ("key: ", "model server: ")
"""Prefixes of the checks that a search can do without."""


@click.command()
@click.option("--model", help="Make one small real call to this model, too, with a tool; says what it costs.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting, such as models.….")
@engine_option
@as_json
def doctor(model: str | None, assignments: tuple[str, ...], as_json: bool) -> int:
    """Check Python, git, disk, models and sandboxes; each sandbox is opened and probed from the inside.

    No model is asked anything unless one is named by --model.
    """
    if assignments and not model:
        raise UserError("--set is about the model that --model names; name one")
    from dgm.api.watcher import consent_to_pay
    from dgm.sessions.machine import check_machine, check_model

    rows, usable = asyncio.run(check_machine(lambda provider: consent_to_pay(provider).answer))
    if model:
        asked = asyncio.run(check_model(model, assignments))
        rows, usable = [*rows, *asked], usable and all(ok for _, ok, _ in asked)
    if as_json:
        emit_json({"ok": usable, "checks": [{"check": c, "ok": ok, "detail": d} for c, ok, d in rows]})
        return 0 if usable else FAILED
    for check, ok, detail in rows:
        mark = "ok" if ok else "--" if check.startswith(OPTIONAL) else "NO"
        sys.stdout.write(f"{mark}  {check:<30} {detail}\n")
    if usable:
        start = "" if model else f"; start with: {FIRST}"
        sys.stdout.write(f"this machine can run a search{start}\n")
    elif model and not rows[-1][1]:
        sys.stdout.write(f"the model {model} cannot be used: no search with it can run\n")
    else:
        sys.stdout.write("no sandbox can be used: no search can run\n")
    return 0 if usable else FAILED
