"""This machine: whether it can run a search, its settings, images, and what can be freed (``dgm doctor``)."""

import asyncio
import contextlib
import difflib
import fnmatch
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dgm.api.arguments import SettingValues, split_engine
from dgm.api.running import run_session
from dgm.api.watcher import consent_to_pay
from dgm.archive.cleanup import (
    check_removable,
    clean_run,
    find_dead_drafts,
    remove_leftover,
    remove_run,
    run_bytes,
)
from dgm.archive.finding import archive_folders, find_runs_in, locate_run
from dgm.archive.lock import machine_name
from dgm.config import Settings, resolve
from dgm.config.listing import ListedSetting, Variable, list_sections
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.gateway.leftovers import find_dead_gateways
from dgm.models.abilities import Abilities
from dgm.models.auto import USUAL, LocalServer, Offer, Probe, probe_servers, settle_auto
from dgm.models.keys import read_key
from dgm.models.pricing import Prices
from dgm.models.providers import PROVIDER_KINDS, ProviderKind, all_variables
from dgm.render import fmt
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.choose import choose_auto, is_unbounded_accepted
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import (
    RAY,
    EngineAddress,
    find_cluster,
    find_named_engine,
    resolve_addresses,
    use_engine,
)
from dgm.sandboxes.probes import DiagnosisRow, is_fit, probe, probe_images
from dgm.search.start import check_models, prices_of
from dgm.steps import OnStep, Step, ignore
from dgm.views.machine import (
    CheckRow,
    CleanedRun,
    CleaningView,
    ImagesView,
    MachineView,
    SettingsView,
)

MODELS_SHOWN = 3
"""Maximum number of a server's models that are named."""
FREE_GB = 2.0
"""Disk space that a long run with images needs."""
USUAL_IMAGES = ("python",)
CHOSEN = "sandbox chosen by auto"


def doctor(
    model: str | None = None,
    *,
    settings: SettingValues | None = None,
    on_step: OnStep = ignore,
) -> MachineView:
    """Check Python, git, disk, models and sandboxes; each sandbox is opened and probed from the inside.

    Args:
        model: Also make one small real call to this model; it may cost money.
        settings: A setting of the model, such as providers.NAME.base_url, or engine=ADDRESS.
        on_step: is called with each part that takes time.
    """
    others, engines = split_engine(settings)

    async def check() -> MachineView:
        rows = [_check_python(), _check_git(), _check_disk()]
        rows += check_providers(probe_servers, _known_answer)
        with use_engine(engines):
            rows += await _check_sandboxes(on_step)
        if model:
            on_step(Step(f"asking {model}"))
            rows += await _check_model(model, others)
        ok = all(row.ok for row in rows if row.required)
        return MachineView(ok=ok, checks=tuple(rows), model=model)

    return run_session(check)


def settings(pattern: str = "") -> SettingsView:
    """Return the settings and environment variables whose names match, or else those whose meanings do.

    Args:
        pattern: part of a name, or a name with ``*`` and ``?``; empty: all.

    Raises:
        UserError: nothing matches.
    """
    sections = list_sections()
    everything = [setting for section in sections for setting in section.settings]
    for by_meaning in (False, True):
        rows = [row for row in everything if _matches(pattern, row, by_meaning)]
        variables = [row for row in all_variables() if _matches(pattern, row, by_meaning)]
        if rows or variables:
            return SettingsView(
                settings=tuple(rows),
                variables=tuple(variables),
                sections={section.name: section.meaning for section in sections},
            )
    names = {setting.name.rpartition(".")[2]: setting.name for setting in everything}
    names |= {setting.name: setting.name for setting in everything}
    near = dict.fromkeys(names[name] for name in difflib.get_close_matches(pattern, names, 5))
    hint = f" (nearest: {', '.join([*near][:3])})" if near else ""
    raise UserError(f"no setting matches '{pattern}'{hint}")


def build_images(recipes: Sequence[str] = USUAL_IMAGES, *, on_step: OnStep = ignore) -> ImagesView:
    """Build the images of recipes that are not built yet, on each Docker engine.

    Args:
        recipes: their names.
        on_step: is called with each image.

    Raises:
        UserError: there is no such recipe.
        Infrastructure: no Docker engine answers, or a build failed.
    """
    engines = [DockerEngine(address) for address in resolve_addresses()]
    built = {}
    for name in recipes:
        on_step(Step(f"building the image {name}"))
        # The tag is the recipe's, whatever engine has it.
        for engine in engines:
            built[name] = engine.build(name)
    return ImagesView(images=built)


def clean(*, on_step: OnStep = ignore) -> CleaningView:
    """Remove what no run needs: what dead processes left, and images of changed recipes and unused agents.

    Runs that are being written, and those that cannot be read, are left alone.
    """
    on_step(Step("looking through the runs"))
    view = clean_runs()
    on_step(Step("removing sandboxes and images"))
    images, sandboxes = run_session(_clean_sandboxes)
    return view.model_copy(update={"images": images, "sandboxes": sandboxes})


def clean_runs() -> CleaningView:
    """Remove what no run needs, and what dead processes left beside the runs.

    Runs that are being written, and those that cannot be read, are left alone.
    """
    places = {place.resolve(): place for place in archive_folders()}.values()
    # Hidden entries are unfinished; the search for leftovers finds them.
    folders = [run for place in places for run in find_runs_in(place) if not run.name.startswith(".")]
    results = [clean_run(folder, delete=True) for folder in folders]
    runs = [
        CleanedRun(
            run=result.folder.name,
            folder=result.folder,
            bytes=sum(leftover.size_bytes for leftover in result.found),
            skipped=result.skipped,
        )
        for result in results
        if result.found or result.skipped
    ]
    beside = [*(left for place in places for left in find_dead_drafts(place)), *find_dead_gateways()]
    failed = []
    for left in beside:
        try:
            remove_leftover(left)
        except OSError as error:
            failed.append(f"{left.path}: {error.strerror}")
    total = sum(run.bytes for run in runs) + sum(left.size_bytes for left in beside)
    return CleaningView(bytes=total, runs=tuple(runs), failed=tuple(failed))


def remove_runs(*names: str, confirm: Callable[[Mapping[Path, int]], bool]) -> CleaningView:
    """Remove whole runs; files that are not dgm's stay, with their folder.

    Args:
        names: of the runs.
        confirm: is asked with the folders and their sizes in bytes.

    Raises:
        UserError: there is no such run, it is packed, or a process is writing it.
    """
    folders = list({folder.resolve(): folder for folder in map(_run_folder, names)}.values())
    for folder in folders:
        check_removable(folder)
    sizes = {folder: run_bytes(folder) for folder in folders}
    if not confirm(sizes):
        return CleaningView(bytes=0, runs=())
    removed = [
        CleanedRun(run=folder.name, folder=folder, bytes=size, kept=tuple(remove_run(folder)))
        for folder, size in sizes.items()
    ]
    return CleaningView(bytes=sum(sizes.values()), runs=tuple(removed))


def _run_folder(name: str) -> Path:
    path = locate_run(name)
    if not path.is_dir():
        raise UserError(f"{name}: is a packed run, which is one file; remove that file yourself")
    return path


async def _clean_sandboxes() -> tuple[int, int]:
    """Remove unneeded images, and sandboxes of dead processes on this host; return how many of each."""
    labels = {"dgm.host": machine_name()}
    engines = list[DockerEngine | BubblewrapEngine]()
    images = sandboxes = 0
    for address in resolve_addresses():
        try:
            docker = DockerEngine(address)
            images += len(await asyncio.to_thread(docker.collect))
            engines.append(docker)
        except Infrastructure:
            continue
    with contextlib.suppress(Infrastructure):
        engines.append(BubblewrapEngine())
    for engine in engines:
        sandboxes += await engine.reap_left(labels)
    return images, sandboxes


def _known_answer(provider: str) -> bool | None:
    return consent_to_pay(provider).answer


def _matches(pattern: str, row: ListedSetting | Variable, by_meaning: bool) -> bool:
    text, wanted = (row.meaning if by_meaning else row.name).casefold(), pattern.casefold()
    if any(sign in wanted for sign in "*?["):
        return not by_meaning and fnmatch.fnmatchcase(text, wanted)
    return wanted in text


def _check_python() -> CheckRow:
    version = ".".join(map(str, sys.version_info[:3]))
    return CheckRow(check="Python", ok=sys.version_info >= (3, 11), required=True, detail=version)


def _check_git() -> CheckRow:
    if not shutil.which("git"):
        return CheckRow(check="git", ok=False, required=True, detail="not found; install git")
    done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False)
    return CheckRow(check="git", ok=True, required=True, detail=done.stdout.strip())


def _check_disk() -> CheckRow:
    free = shutil.disk_usage(".").free / 1e9
    remedy = "" if free > FREE_GB else f"; a long run with images needs {FREE_GB:g} GB"
    return CheckRow(check="disk space here", ok=free > FREE_GB, detail=f"{free:.0f} GB free{remedy}")


async def _check_sandboxes(on_step: OnStep) -> list[CheckRow]:
    """Open each sandbox; the last row says which one a search would use."""
    if find_cluster() is not None:
        # A sandbox on a node of the Ray cluster that the environment names, and what the nodes have.
        from dgm.sandboxes.ray.engine import diagnose_nodes

        on_step(Step(RAY))
        diagnosis = [*await probe(RAY), await diagnose_nodes()]
        usable = is_fit(diagnosis, RAY, unbounded=is_unbounded_accepted())
        return [*map(_row_of, diagnosis), CheckRow(check=CHOSEN, ok=usable, required=True, detail=RAY)]
    addresses = resolve_addresses() if find_named_engine() else ()
    if len(addresses) > 1:
        return await _check_engines(addresses, on_step)
    on_step(Step("opening a sandbox of docker"))
    diagnosis = [*probe_images(), *await probe("docker")]
    on_step(Step("opening a sandbox of bubblewrap"))
    diagnosis += await probe("bubblewrap")
    rows = [*map(_row_of, diagnosis)]
    try:
        chosen, reason = choose_auto()
    except DgmError as error:
        return [*rows, CheckRow(check=CHOSEN, ok=False, required=True, detail=str(error))]
    usable = is_fit(diagnosis, chosen.name, unbounded=is_unbounded_accepted())
    detail = chosen.name if usable or not reason else f"{chosen.name}, since {reason}"
    flaw = "" if usable else ", which fails a check above: no search can run in it"
    if not usable and is_fit(diagnosis, "bubblewrap", unbounded=is_unbounded_accepted()):
        flaw += "; bubblewrap works: --set sandbox=bubblewrap"
    return [*rows, CheckRow(check=CHOSEN, ok=usable, required=True, detail=f"{detail}{flaw}")]


def _row_of(row: DiagnosisRow, check: str = "") -> CheckRow:
    return CheckRow(check=check or row.name, ok=row.ok, detail=row.detail)


async def _check_engines(addresses: Sequence[EngineAddress], on_step: OnStep) -> list[CheckRow]:
    """Check each of several Docker engines; a search can run while one of them can be used."""
    rows, fit, idents = list[CheckRow](), list[str](), dict[str, str]()
    for address in addresses:
        on_step(Step(address.url))
        with use_engine(address.url, address.origin):
            diagnosis = await probe("docker")
            capacity = _capacity(address, idents)
        if is_fit(diagnosis, "docker", unbounded=is_unbounded_accepted()):
            fit.append(address.url)
        rows += [_row_of(row, f"{address.url}: {row.name.removeprefix('docker: ')}") for row in diagnosis]
        rows += [capacity] if capacity else []
    detail = f"docker, on {len(fit)} of {len(addresses)} engines: {' '.join(fit)}"
    if not fit:
        detail = f"none of the {len(addresses)} engines passes all its checks: no search can run"
    return [*rows, CheckRow(check=CHOSEN, ok=bool(fit), required=True, detail=detail)]


def _capacity(address: EngineAddress, idents: dict[str, str]) -> CheckRow | None:
    """Return how many sandboxes fit on an engine, and whether it was met before; None if it does not answer."""
    try:
        facts = DockerEngine(address).facts
    except DgmError:
        return None
    check, other = f"{address.url}: capacity", idents.setdefault(facts.ident, address.url)
    if facts.ident and other != address.url:
        detail = f"the same engine as {other}: its processors are counted twice"
        return CheckRow(check=check, ok=False, detail=detail)
    return CheckRow(check=check, ok=True, detail=f"{facts.cpus} parallel sandboxes of one processor")


async def _check_model(model: str, settings: SettingValues) -> Sequence[CheckRow]:
    """Make one small real call to a model; report its cost and what it revealed."""
    name = f"model {model}"
    try:
        resolved = resolve(None, settings, {"model": model})
        checks, prices = await check_models(resolved), prices_of(resolved)
    except DgmError as error:
        return [CheckRow(check=name, ok=False, required=True, detail=str(error))]
    if not checks:
        return [CheckRow(check=name, ok=True, required=True, detail="built in, makes no calls")]
    rows = []
    for checked in checks:
        cost = prices[checked.model].cost(checked.usage)
        learned = Abilities.from_record(checked.abilities).as_settings(checked.model)
        parts = [f"answers ({checked.usage.tokens:,} tokens, {cost:.4f} USD)", *checked.words]
        parts += [f"put into the settings file:\n{learned}"] if learned else []
        rows.append(CheckRow(check=name, ok=True, required=True, detail="; ".join(parts)))
    return rows


def check_providers(probe: Probe, known: Callable[[str], bool | None]) -> list[CheckRow]:
    """Return rows on the usable models and on the choice of ``auto``; call no provider and spend nothing.

    Args:
        probe: asks local servers for their models.
        known: the user's earlier answer about a provider; None if not asked yet.
    """
    prices = Prices.load()
    answering = probe([server.base_url for server in USUAL])
    rows = [
        _check_key(kind)
        for kind in PROVIDER_KINDS.values()
        if not kind.is_cloud or os.environ.get(kind.key_env, "").strip()
    ]
    rows += [_check_server(server, answering.get(server.base_url, ())) for server in USUAL]
    detail = f"{len(prices.rows)} models, as of {prices.as_of}; add yours with [models.prices]"
    return [*rows, CheckRow(check="model prices", ok=True, detail=detail), _check_auto(probe, known)]


def _check_key(kind: ProviderKind) -> CheckRow:
    variable = kind.key_env
    name = f"key: {variable}"
    if not os.environ.get(variable, "").strip():
        optional = ", and only where the server wants a key" if kind.key_is_optional else ""
        return CheckRow(check=name, ok=False, detail=f"not set; needed for {kind.name}/… only{optional}")
    try:
        read_key(variable)
    except UserError as error:
        return CheckRow(check=name, ok=False, detail=str(error))
    return CheckRow(check=name, ok=True, detail=f"set, for {kind.name}/…")


def _check_server(server: LocalServer, models: Sequence[str]) -> CheckRow:
    detail = f"{server.base_url}: {fmt.listing(models, MODELS_SHOWN) if models else 'does not answer'}"
    return CheckRow(check=f"model server: {server.name}", ok=bool(models), detail=detail)


def _check_auto(probe: Probe, known: Callable[[str], bool | None]) -> CheckRow:
    name, unasked = "model chosen by auto", list[str]()

    def agreed(offer: Offer) -> bool:
        answer = known(offer.provider)
        if answer is None:
            unasked.append(offer.provider)
        return answer is not False

    try:
        _, reason = settle_auto(Settings(), agreed, os.environ, probe)
    except DgmError as error:
        return CheckRow(check=name, ok=False, detail=str(error))
    asks = "; asks you before it is used for the first time" if unasked else ""
    return CheckRow(check=name, ok=True, detail=f"{reason}{asks}")
