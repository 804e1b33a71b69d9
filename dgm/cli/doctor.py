"""``dgm doctor``: checks whether this machine can run a search, and what would improve it."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from dgm.cli.arguments import as_json
from dgm.cli.commands import FIRST
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json
from dgm.errors import DgmError, UserError

if TYPE_CHECKING:
    from dgm.models.local_servers import LocalServer, Probe
    from dgm.models.provider import Provider

OPTIONAL = ("key: ", "model server: ", "image polyglot")
"""Prefixes of the checks that a search can do without."""
SHOWN = 3
"""Maximum number of a server's models that are named."""
Row = tuple[str, bool, str]
"""Check, whether it holds, and the observation or the remedy."""


@click.command()
@click.option("--model", help="Make one small real call to this model, too, with a tool; says what it costs.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="A setting, such as models.….")
@as_json
def doctor(model: str | None, assignments: tuple[str, ...], as_json: bool) -> int:
    """Check Python, git, disk, models and sandboxes; each sandbox is opened and probed from the inside.

    No model is asked anything unless one is named by --model.
    """
    if assignments and not model:
        raise UserError("--set is about the model that --model names; name one")
    rows, usable = asyncio.run(_run_checks())
    if model:
        asked = asyncio.run(_check_model(model, assignments))
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


async def _run_checks() -> tuple[list[Row], bool]:
    from dgm.cli.consent import open_consent
    from dgm.models import local_servers
    from dgm.sandboxes.choose import choose
    from dgm.sandboxes.probes import probe, probe_images

    rows: list[Row] = [
        _python_row(),
        _git_row(),
        _disk_row(),
        *model_rows(local_servers.probe, open_consent().known),
    ]
    found = [*probe_images(), *await probe("docker"), *await probe("bubblewrap")]
    rows += [(row.name, row.ok, row.detail) for row in found]
    try:
        chosen = choose("auto")
    except DgmError as error:
        return [*rows, ("sandbox chosen by auto", False, str(error))], False
    return [*rows, ("sandbox chosen by auto", True, chosen.name)], True


async def _check_model(model: str, assignments: Sequence[str]) -> list[Row]:
    """Check a model by one small real call; report its cost and what it revealed."""
    from dgm.config import resolve
    from dgm.search.model_checks import check_models, prices_of

    name = f"model {model}"
    try:
        settings = resolve(None, assignments, {"model": model})
        checks = await check_models(settings)
        prices = prices_of(settings)
    except DgmError as error:
        return [(name, False, str(error))]
    if not checks:
        return [(name, True, "answers on this machine, without a provider")]
    return [
        (
            name,
            True,
            f"answers (a check of {one.usage.tokens:,} tokens, {prices[one.model].cost(one.usage):.4f} USD)"
            + "".join(f"; {words}" for words in one.words),
        )
        for one in checks
    ]


def _python_row() -> Row:
    version = ".".join(map(str, sys.version_info[:3]))
    return "Python", sys.version_info >= (3, 11), version


def _git_row() -> Row:
    if not shutil.which("git"):
        return "git", False, "not found; install git"
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return "git", True, said


def _disk_row() -> Row:
    free = shutil.disk_usage(".").free / 1e9
    return "disk space here", free > 2.0, f"{free:.0f} GB free; a long run with images wants 2 GB or more"


def model_rows(probe: "Probe", known: Callable[[str], bool | None]) -> list[Row]:
    """Return rows on the usable models and on the choice of ``auto``; call no provider and spend nothing.

    Args:
        probe: asks local servers for their models.
        known: the user's earlier answer about a provider; None if not asked yet.
    """
    from dgm.models.local_servers import USUAL
    from dgm.models.pricing import Prices
    from dgm.models.providers import PROVIDERS

    prices = Prices.load({})
    answering = probe([server.base_url for server in USUAL])
    rows = [
        _key_row(provider)
        for provider in PROVIDERS.values()
        if not provider.is_cloud or os.environ.get(provider.key_env, "").strip()
    ]
    rows += [_server_row(server, answering.get(server.base_url, ())) for server in USUAL]
    counted = f"of {len(prices.rows)} models, as of {prices.as_of}; add yours with [models.prices]"
    return [*rows, ("model prices", True, counted), _auto_row(probe, known)]


def _key_row(provider: "Provider") -> Row:
    from dgm.models.keys import read_key

    variable = provider.key_env
    name = f"key: {variable}"
    if not os.environ.get(variable, "").strip():
        optional = ", and only where the server wants a key" if provider.key_is_optional else ""
        return name, False, f"not set; needed for {provider.name}/… only{optional}"
    try:
        read_key(variable)
    except UserError as error:
        return name, False, str(error)
    return name, True, f"set, for {provider.name}/…"


def _server_row(server: "LocalServer", models: Sequence[str]) -> Row:
    shown = ", ".join(models[:SHOWN]) + (f" and {len(models) - SHOWN} more" if len(models) > SHOWN else "")
    return f"model server: {server.name}", bool(models), f"{server.base_url}: {shown or 'does not answer'}"


def _auto_row(probe: "Probe", known: Callable[[str], bool | None]) -> Row:
    from dgm.config import Settings
    from dgm.models.auto import Offer, settle_auto

    name = "model chosen by auto"
    unasked: list[str] = []

    def agreed(offer: Offer) -> bool:
        answer = known(offer.provider)
        if answer is None:
            unasked.append(offer.provider)
        return answer is not False

    try:
        _, why = settle_auto(Settings(), agreed, os.environ, probe)
    except DgmError as error:
        return name, False, str(error)
    return name, True, f"{why}; asks you before it is used for the first time" if unasked else why
