"""Import of tasks in the layout of Harbor and Terminal-Bench 2 into a suite's folder, with a report of omitted parts.

The layout: a folder per task with ``task.toml``, ``instruction.md``, ``environment/``, ``tests/test.sh`` that leaves a
reward in ``/logs/verifier``, and ``solution/solve.sh``. Such tasks may rely on a network, on root, on several machines
or on changes anywhere in their container. Here an agent is an ordinary user without a network, and its result is a
patch on one folder.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from dgm.archive.snapshots import write_folder
from dgm.benchmarks.dockerfiles import Dockerfile, installs, read_dockerfile
from dgm.benchmarks.toml_table import MOST_CORES, first_mistake
from dgm.config.toml_files import format_key, format_value, read_toml
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.folders import list_files, read_below, read_folder

DEPTH = 4
"""Maximum depth below the given folder at which tasks are looked for."""
MOST = 1e6
"""Largest number of megabytes or seconds that a task may ask for."""
SMALLEST_MB, LARGEST_DISK_MB = 256, 2048
OLD = "is in Terminal-Bench's older layout (task.yaml); bring it into Harbor's (task.toml, instruction.md) first"
_ABSOLUTE = re.compile(r"(?<![\w./$}-])(/[A-Za-z_][\w.-]*(?:/[\w.-]+)*)")
_ORDINARY = tuple("/tests /logs /solution /tmp /usr /bin /dev /proc /lib /opt /sbin /work".split())  # noqa: SIM905  (one line)
_SIZE = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?)\s*([KMG])i?B?\s*", re.IGNORECASE | re.ASCII)
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}


def _parse_size(value: object) -> float:
    """Return the megabytes of a size such as ``512M`` or ``2G``."""
    match = _SIZE.fullmatch(str(value))
    if not match:
        raise ValueError("no size such as '512M' or '2G'")
    return float(match[1]) * _UNITS[match[2].upper()]


Seconds = Annotated[float, Field(gt=0, le=MOST)]
Megabytes = Annotated[float, Field(gt=0, le=MOST)]
Size = Annotated[float, BeforeValidator(_parse_size), Field(le=MOST)]


class _Section(BaseModel):
    """A table of ``task.toml``; unknown keys are reported as left out."""

    model_config = ConfigDict(extra="allow", strict=True)

    env: Mapping[str, Any] = {}


class _Agent(_Section):
    timeout_sec: Seconds = 600
    user: str | int | None = None


class _Verifier(_Agent):
    environment_mode: str = "shared"
    environment: Any = None


class _Environment(_Section):
    build_timeout_sec: float | None = None
    cpus: Annotated[float, Field(gt=0, le=MOST_CORES)] = 1.0
    memory: Size = 1024
    memory_mb: Megabytes | None = None
    storage: Size = 256
    storage_mb: Megabytes | None = None
    gpus: int = 0
    docker_image: str = ""
    workdir: Annotated[str, Field(pattern=r"^(/.*)?$")] = ""
    allow_internet: bool | None = None
    network_mode: str | None = None
    os: str = "linux"


class _Metadata(BaseModel):
    category: Any = None
    tags: Any = None


class _Settings(BaseModel):
    """A task's ``task.toml``."""

    metadata: _Metadata = _Metadata()
    agent: _Agent = _Agent()
    verifier: _Verifier = _Verifier()
    environment: _Environment = _Environment()
    solution: _Section = _Section()
    steps: Any = None

    def remarks(self) -> Iterator[str]:
        """Yield what its keys ask for that is not carried over."""
        for name in ("agent", "verifier", "environment", "solution"):
            section: _Section = getattr(self, name)
            for key in section.model_extra or {}:
                yield f"[{name}] {key} is not carried over"
            if isinstance(section, _Agent) and section.user in ("root", 0, "0"):
                yield f"[{name}] wants root; it is run as an ordinary user"
            if section.env and name != "verifier":
                yield f"[{name}] env is not carried over: {', '.join(section.env)}"
        for key, value in self.verifier.env.items():
            if "${" in str(value):
                yield f"[verifier] env {key} = {value!r} comes from the environment of who runs it; not carried over"
        if self.environment.allow_internet or self.environment.network_mode not in (None, "no-network"):
            yield "it may use the internet; sandboxes here have no network"


class ImportRefused(Exception):
    """A task that cannot be imported at all; its message says why."""


@dataclass(slots=True)
class ImportReport:
    """The outcome of an import."""

    tasks: list[str] = field(default_factory=list)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """Parts that are left out or need a look, by task."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Reasons why tasks could not be imported, by folder."""


def import_harbor(source: Path, target: Path, image: str = "", holdout: float = 1 / 3) -> ImportReport:
    """Write a suite's folder with every task below ``source``.

    Args:
        source: one task's folder, or a folder of them.
        target: the suite's folder; must not exist, or be empty.
        image: recipe to work in instead of the tasks' own images; needs no Docker.
        holdout: share of the tasks that goes to the holdout split; the choice depends on their names alone.

    Raises:
        UserError: there is no task, none can be imported, or the target is in use.
    """
    names = _assign_names(find_tasks(source))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target}: is there already; give a folder that does not exist")
    mixed = sorted(names.values(), key=lambda name: hashlib.sha256(name.encode()).digest())
    held = mixed[: int(len(names) * holdout)]
    report = ImportReport()
    try:
        for folder, name in names.items():
            try:
                split = "holdout" if name in held else "search"
                report.remarks[name] = _import(folder, target / "tasks" / name, image, split)
                report.tasks.append(name)
            except ImportRefused as reason:
                shutil.rmtree(target / "tasks" / name, ignore_errors=True)
                report.skipped[name] = str(reason)
        if report.tasks:
            _write_suite(source, target)
            return report
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    shutil.rmtree(target, ignore_errors=True)
    first, why = next(iter(report.skipped.items()))
    raise UserError(f"none of {len(names)} tasks can be imported; {first} {why}")


def find_tasks(source: Path) -> Sequence[Path]:
    """Return the folders of the tasks below ``source``, sorted.

    Raises:
        UserError: there is none, or it is a suite already.
    """
    if not source.is_dir():
        raise UserError(f"{source}: no such folder")
    if (source / "suite.toml").is_file():
        raise UserError(f"{source}: is a suite of dgm's own already")
    found = sorted(_walk(source, DEPTH))
    if not found:
        raise UserError(
            f"{source}: no task in it: a task is a folder with task.toml and instruction.md (or task.yaml)"
        )
    return found


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / "task.toml").is_file() or (folder / "task.yaml").is_file():
        yield folder
    elif depth:
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink() and entry.name[0] not in "._":
                yield from _walk(entry, depth - 1)


def _assign_names(found: Sequence[Path]) -> Mapping[Path, str]:
    names: dict[Path, str] = {}
    for folder in found:
        plain = re.sub(r"[^\w.-]", "-", folder.resolve().name)
        names[folder] = f"{folder.resolve().parent.name}-{plain}" if plain in names.values() else plain
    return names


def _import(folder: Path, target: Path, image: str, split: str) -> list[str]:
    """Write one task; return remarks on the parts left out."""
    if not (folder / "task.toml").is_file():
        raise ImportRefused(OLD)
    _check_folder(folder)
    settings = _read_settings(folder / "task.toml")
    _check_fit(folder, settings)
    remarks = [*settings.remarks(), *_note_needs(folder)]
    file = folder / "environment" / "Dockerfile"
    workdir = settings.environment.workdir
    dockerfile = read_dockerfile(file, workdir) if file.is_file() else Dockerfile((), workdir, {}, ())
    if "$" in dockerfile.workdir:
        raise ImportRefused(
            f"has a Dockerfile whose WORKDIR is not known without a build: {dockerfile.workdir}"
        )
    target.mkdir(parents=True)
    (target / "instruction.md").write_bytes(read_below(folder, "instruction.md"))
    for name in ("tests", "solution"):
        if (folder / name).is_dir():
            write_folder(read_folder(folder / name), target / name)
    if image:
        workdir = _make_workspace(target, dockerfile, remarks)
    elif file.is_file():
        workdir = _use_dockerfile(folder, target, dockerfile, remarks)
    else:
        image = settings.environment.docker_image
        if not image:
            raise ImportRefused("has neither environment/Dockerfile nor docker_image; try --image python")
        if not workdir:
            remarks.append(f"its image {image} does not say where agents work; /app was taken")
            workdir = "/app"
        image = f"docker:{image}"
    remarks += _note_outside_paths(target, workdir)
    (target / "task.toml").write_text(_task_toml(settings, split, image, workdir, remarks), encoding="utf-8")
    return remarks


def _check_folder(folder: Path) -> None:
    """Refuse a task of which a part leads out of it, or is neither file nor folder, before anything is read."""
    parts = (folder / name for name in ("tests", "solution", "environment"))
    try:
        for part in (folder, *(part for part in parts if part.is_dir())):
            list_files(part)
    except UserError as error:
        raise ImportRefused(f"cannot be taken in: {error}") from error


def _read_settings(file: Path) -> _Settings:
    try:
        return _Settings.model_validate(read_toml(file))
    except ValidationError as error:
        key, reason, value = first_mistake(error)
        raise UserError(f"{file}: {key} = {format_value(value)}: {reason}") from error


def _check_fit(folder: Path, settings: _Settings) -> None:
    environment, verifier = settings.environment, settings.verifier
    services = _services(folder / "environment")
    if (folder / "steps").is_dir() or settings.steps:
        raise ImportRefused("has several steps; a task here has one instruction and is graded once")
    if len(services) > 1:
        raise ImportRefused(f"needs several containers ({', '.join(services)}); a task here has one sandbox")
    is_apart = verifier.environment_mode == "separate" or verifier.environment is not None
    if is_apart or (folder / "tests" / "Dockerfile").is_file():
        raise ImportRefused(
            "has tests that run in a container of their own, on artifacts; they run in the task's here"
        )
    if environment.gpus:
        raise ImportRefused("needs a GPU")
    if environment.os.lower() != "linux":
        raise ImportRefused(f"needs {environment.os}")
    for name in ("instruction.md", "tests/test.sh"):
        if not (folder / name).is_file():
            raise ImportRefused(f"has no {name}")


def _services(folder: Path) -> Sequence[str]:
    """Return the services of a compose file: the keys one level below ``services:``."""
    services: list[str] = []
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        if (folder / name).is_file():
            block = re.search(
                r"^services:[^\S\n]*\n((?:[ \t]+.*\n?|\s*\n|#.*\n)*)", _read_text(folder, name), re.MULTILINE
            )
            lines = re.findall(r"^([ \t]+)([\w.-]+):", block[1] if block else "", re.MULTILINE)
            least = min((len(indent) for indent, _ in lines), default=0)
            services += [key for indent, key in lines if len(indent) == least]
    return services


def _note_needs(folder: Path) -> Iterator[str]:
    for name in ("tests/test.sh", "solution/solve.sh"):
        text = _read_text(folder, name) if (folder / name).is_file() else ""
        for number, line in enumerate(text.splitlines(), 1):
            if installs(line) and not line.lstrip().startswith("#"):
                what = line.strip()[:80]
                yield f"{name}:{number} installs something, which needs a network: have it in the image ({what})"
                break
    if not (folder / "solution" / "solve.sh").is_file():
        yield "it has no solution/solve.sh, so that it cannot be verified"


def _read_text(folder: Path, name: str) -> str:
    return read_below(folder, name).decode("utf-8", "replace")


def _make_workspace(target: Path, dockerfile: Dockerfile, remarks: list[str]) -> str:
    """Make the workspace from the Dockerfile's copies, for sandboxes that are writable below /work only."""
    remarks += [f"the Dockerfile's line is not carried over: {line}" for line in dockerfile.left_out]
    old = dockerfile.workdir.rstrip("/") or "/app"
    if not dockerfile.workdir:
        remarks.append("its Dockerfile names no WORKDIR; /app was taken")
    new = old if old.startswith("/work/") else "/work/" + old.strip("/").replace("/", "-")
    (target / "workspace").mkdir()
    write_folder(dockerfile.workspace or {".gitkeep": Entry(b"")}, target / "workspace")
    changed = [path for path in sorted(target.rglob("*")) if path.is_file() and _replace_path(path, old, new)]
    if changed and old != new:
        names = ", ".join(path.relative_to(target).as_posix() for path in changed)
        remarks.append(f"the path {old} became {new} in {names}")
    return new


def _replace_path(file: Path, old: str, new: str) -> bool:
    """Replace the old path in the file by the new one; return whether it occurred."""
    if file.is_symlink():
        return False
    before = file.read_bytes()
    path = rb"(?<![\w./-])" + re.escape(old.encode()) + rb"(?![\w-])"
    after = re.sub(path, new.encode().replace(b"\\", rb"\\"), before)
    if b"\0" in before or before == after:
        return False
    file.write_bytes(after)
    return True


def _use_dockerfile(folder: Path, target: Path, dockerfile: Dockerfile, remarks: list[str]) -> str:
    """Leave the workspace to the image that the task's Dockerfile builds."""
    if dockerfile.workdir in ("", "/"):
        raise ImportRefused(
            "has a Dockerfile without a WORKDIR, so that agents would work in /; try --image python"
        )
    write_folder(read_folder(folder / "environment"), target / "environment")
    remarks.append(
        f"its image stands on {', '.join(dockerfile.bases)}, and is built by Docker when it is needed"
    )
    return dockerfile.workdir


def _note_outside_paths(target: Path, workdir: str) -> Iterator[str]:
    usual = (*_ORDINARY, workdir)
    paths = set(_ABSOLUTE.findall(_read_text(target, "instruction.md")))
    outside = sorted(path for path in paths if not any(f"{path}/".startswith(f"{u}/") for u in usual))
    if outside:
        yield f"the instruction names {', '.join(outside[:3])}: only what is below {workdir} is graded"


def _task_toml(settings: _Settings, split: str, image: str, workdir: str, remarks: list[str]) -> str:
    metadata, environment = settings.metadata, settings.environment
    tags = [metadata.category, *(metadata.tags if isinstance(metadata.tags, list) else [])]
    storage = int(environment.storage_mb or environment.storage)
    if storage > LARGEST_DISK_MB:
        remarks.append(f"storage of {storage} MB became {LARGEST_DISK_MB}: it is held in memory here")
    task = {
        "split": split,
        **({"image": image} if image else {}),
        "workdir": workdir,
        "timeout_s": settings.agent.timeout_sec,
        "test_timeout_s": settings.verifier.timeout_sec,
        "tags": list(dict.fromkeys(str(tag) for tag in tags if tag)),
    }
    tests = {
        "command": ["bash", "/tests/test.sh"],
        "result": "reward",
        "cpus": environment.cpus,
        "memory_mb": max(SMALLEST_MB, int(environment.memory_mb or environment.memory)),
        "disk_mb": min(LARGEST_DISK_MB, max(SMALLEST_MB, storage)),
    }
    variables = {key: str(value) for key, value in settings.verifier.env.items() if "${" not in str(value)}
    tables: Mapping[str, Mapping[str, object]] = {
        "": task,
        "\n[tests]\n": tests,
        "\n[tests.env]\n": variables,
    }
    return "".join(header + _format_table(table) for header, table in tables.items() if table)


def _format_table(table: Mapping[str, object]) -> str:
    return "".join(f"{format_key([key])} = {format_value(value)}\n" for key, value in table.items())


def _write_suite(source: Path, target: Path) -> None:
    suite = {
        "name": re.sub(r"[^\w.-]", "-", target.resolve().name),
        "description": f"imported from Harbor's layout: {source.resolve().name}",
        "license": "as in the folder that it was imported from",
    }
    (target / "suite.toml").write_text(_format_table(suite), encoding="utf-8")
