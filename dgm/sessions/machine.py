"""Checks of this machine: whether it can run a search, and what would improve it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dgm.config import Settings, resolve
from dgm.errors import DgmError, UserError
from dgm.models import local_servers
from dgm.models.abilities import Abilities
from dgm.models.auto import Offer, settle_auto
from dgm.models.keys import read_key
from dgm.models.local_servers import USUAL, LocalServer, Probe
from dgm.models.pricing import Prices
from dgm.models.providers import PROVIDER_KINDS, ProviderKind
from dgm.protocols import Checked
from dgm.sandboxes.choose import choose_auto, is_unbounded_accepted
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import (
    EngineAddress,
    find_cluster,
    find_named_engine,
    resolve_addresses,
    use_engine,
)
from dgm.sandboxes.probes import is_fit, probe, probe_images
from dgm.sandboxes.ray_address import NAME as RAY
from dgm.search.model_checks import check_models, prices_of

SHOWN = 3
"""Maximum number of a server's models that are named."""
CHOSEN = "sandbox chosen by auto"


class CheckRow(NamedTuple):
    """One check of the machine."""

    check: str
    ok: bool
    detail: str
    """The observation, or the remedy."""


class MachineChecks(NamedTuple):
    """All checks of the machine."""

    rows: Sequence[CheckRow]
    usable: bool
    """Whether a search can run."""


async def check_machine(known: Callable[[str], bool | None]) -> MachineChecks:
    """Check Python, git, disk, models and sandboxes; open each sandbox, and call no provider.

    Args:
        known: the user's earlier answer about a provider that costs money; None if not asked yet.
    """
    rows = [_python_row(), _git_row(), _disk_row(), *model_rows(local_servers.probe, known)]
    if find_cluster() is not None:
        return await _check_cluster(rows)
    addresses = resolve_addresses() if find_named_engine() else ()
    if len(addresses) > 1:
        return await _check_engines(rows, addresses)
    found = [*probe_images(), *await probe("docker"), *await probe("bubblewrap")]
    rows += [CheckRow(row.name, row.ok, row.detail) for row in found]
    try:
        chosen, why = choose_auto()
    except DgmError as error:
        return MachineChecks([*rows, CheckRow(CHOSEN, False, str(error))], False)
    usable = is_fit(found, chosen.name, unbounded=is_unbounded_accepted())
    detail = f"{chosen.name}, since {why}" if why else chosen.name
    flaw = "" if usable else ", which fails a check above: no search can run in it"
    return MachineChecks([*rows, CheckRow(CHOSEN, usable, f"{detail}{flaw}")], usable)


async def _check_cluster(rows: Sequence[CheckRow]) -> MachineChecks:
    """Check the Ray cluster that the environment names: a sandbox on one of its nodes, and what the nodes have."""
    from dgm.sandboxes.ray.engine import diagnose_nodes

    found = await probe(RAY)
    usable = is_fit(found, RAY, unbounded=is_unbounded_accepted())
    shown = [CheckRow(row.name, row.ok, row.detail) for row in (*found, await diagnose_nodes())]
    return MachineChecks([*rows, *shown], usable)


async def _check_engines(rows: Sequence[CheckRow], addresses: Sequence[EngineAddress]) -> MachineChecks:
    """Check each of several Docker engines; a search can run while one of them can be used."""
    checked: list[CheckRow] = []
    fit: list[str] = []
    known: dict[str, str] = {}
    for address in addresses:
        with use_engine(address.url, address.origin):
            found = await probe("docker")
            places = _places_row(address, known)
        if is_fit(found, "docker", unbounded=is_unbounded_accepted()):
            fit.append(address.url)
        checked += [
            CheckRow(f"{address.url}: {row.name.removeprefix('docker: ')}", row.ok, row.detail)
            for row in found
        ]
        checked += [places] if places else []
    detail = f"docker, on {len(fit)} of {len(addresses)} engines: {' '.join(fit)}"
    if not fit:
        detail = f"none of the {len(addresses)} engines passes all its checks: no search can run"
    return MachineChecks([*rows, *checked, CheckRow(CHOSEN, bool(fit), detail)], bool(fit))


def _places_row(address: EngineAddress, known: dict[str, str]) -> CheckRow | None:
    """Return how many sandboxes fit on an engine, and whether it was met before; None if it does not answer."""
    try:
        facts = DockerEngine(address).facts
    except DgmError:
        return None
    name, other = f"{address.url}: places", known.setdefault(facts.ident, address.url)
    if facts.ident and other != address.url:
        return CheckRow(name, False, f"the same engine as {other}: its processors are counted twice")
    return CheckRow(name, True, f"{facts.cpus} sandboxes of one processor at once")


async def check_model(model: str, assignments: Sequence[str]) -> Sequence[CheckRow]:
    """Check a model by one small real call; report its cost and what it revealed."""
    name = f"model {model}"
    try:
        settings = resolve(None, assignments, {"model": model})
        checks = await check_models(settings)
        prices = prices_of(settings)
    except DgmError as error:
        return [CheckRow(name, False, str(error))]
    if not checks:
        return [CheckRow(name, True, "answers on this machine, without a provider")]
    return [
        CheckRow(
            name,
            True,
            f"answers (a check of {one.usage.tokens:,} tokens, {prices[one.model].cost(one.usage):.4f} USD)"
            + "".join(f"; {words}" for words in one.words)
            + _proposed_settings(one),
        )
        for one in checks
    ]


def _proposed_settings(checked: Checked) -> str:
    """Return the settings that spare each run what this check learned; empty if it learned no change."""
    lines = Abilities.from_record(checked.abilities).as_settings(checked.model)
    return f"; put into the settings file:\n{lines}" if lines else ""


def _python_row() -> CheckRow:
    version = ".".join(map(str, sys.version_info[:3]))
    return CheckRow("Python", sys.version_info >= (3, 11), version)


def _git_row() -> CheckRow:
    if not shutil.which("git"):
        return CheckRow("git", False, "not found; install git")
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return CheckRow("git", True, said)


def _disk_row() -> CheckRow:
    free = shutil.disk_usage(".").free / 1e9
    detail = f"{free:.0f} GB free; a long run with images wants 2 GB or more"
    return CheckRow("disk space here", free > 2.0, detail)


def model_rows(probe: Probe, known: Callable[[str], bool | None]) -> list[CheckRow]:
    """Return rows on the usable models and on the choice of ``auto``; call no provider and spend nothing.

    Args:
        probe: asks local servers for their models.
        known: the user's earlier answer about a provider; None if not asked yet.
    """
    prices = Prices.load()
    answering = probe([server.base_url for server in USUAL])
    rows = [
        _key_row(kind)
        for kind in PROVIDER_KINDS.values()
        if not kind.is_cloud or os.environ.get(kind.key_env, "").strip()
    ]
    rows += [_server_row(server, answering.get(server.base_url, ())) for server in USUAL]
    counted = f"of {len(prices.rows)} models, as of {prices.as_of}; add yours with [models.prices]"
    return [*rows, CheckRow("model prices", True, counted), _auto_row(probe, known)]


def _key_row(kind: ProviderKind) -> CheckRow:
    variable = kind.key_env
    name = f"key: {variable}"
    if not os.environ.get(variable, "").strip():
        optional = ", and only where the server wants a key" if kind.key_is_optional else ""
        return CheckRow(name, False, f"not set; needed for {kind.name}/… only{optional}")
    try:
        read_key(variable)
    except UserError as error:
        return CheckRow(name, False, str(error))
    return CheckRow(name, True, f"set, for {kind.name}/…")


def _server_row(server: LocalServer, models: Sequence[str]) -> CheckRow:
    shown = ", ".join(models[:SHOWN]) + (f" and {len(models) - SHOWN} more" if len(models) > SHOWN else "")
    detail = f"{server.base_url}: {shown or 'does not answer'}"
    return CheckRow(f"model server: {server.name}", bool(models), detail)


def _auto_row(probe: Probe, known: Callable[[str], bool | None]) -> CheckRow:
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
        return CheckRow(name, False, str(error))
    asks = "; asks you before it is used for the first time" if unasked else ""
    return CheckRow(name, True, f"{why}{asks}")
