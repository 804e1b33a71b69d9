"""Import of tasks in the layout of Harbor and Terminal-Bench 2 into a suite's folder, with a report of omitted parts.

The layout: a folder per task with ``task.toml``, ``instruction.md``, ``environment/``, ``tests/test.sh`` that leaves a
reward in ``/logs/verifier``, and ``solution/solve.sh``. Such tasks may rely on a network, on root, on several machines
or on changes anywhere in their container. Here an agent is an ordinary user without a network, and its result is a
patch on one folder.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgm.archive.snapshots import write_folder
from dgm.benchmarks.dockerfiles import Dockerfile, installs, read_dockerfile
from dgm.benchmarks.toml_table import MOST_CORES
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.folders import list_files, read_below, read_folder
from dgm.toml_files import read_toml

DEPTH = 4
"""Maximum depth below the given folder at which tasks are looked for."""
TIMEOUT_S = 600.0
MOST = 1e6
"""Largest number of megabytes or seconds that a task may ask for."""
SMALLEST_MB, LARGEST_DISK_MB = 256, 2048
OLD = "is in Terminal-Bench's older layout (task.yaml); bring it into Harbor's (task.toml, instruction.md) first"
_ABSOLUTE = re.compile(r"(?<![\w./$}-])(/[A-Za-z_][\w.-]*(?:/[\w.-]+)*)")
_ORDINARY = tuple(
    "/tests /logs /solution /tmp /usr /bin /dev /proc /lib /opt /sbin /work".split()  # noqa: SIM905  (one line)
)
_SIZE = re.compile(r"\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*([KMGT]?)i?B?\s*", re.IGNORECASE | re.ASCII)
_UNITS: Mapping[str, float] = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_KNOWN: Mapping[str, frozenset[str]] = {
    "agent": frozenset({"timeout_sec", "user"}),
    "verifier": frozenset({"timeout_sec", "user", "env"}),
    "environment": frozenset(
        {"build_timeout_sec", "cpus", "memory", "memory_mb", "storage", "storage_mb", "gpus", "docker_image"}
        | {"allow_internet", "env", "os", "network_mode"}
    ),
    "solution": frozenset({"env"}),
}
"""Known keys; unknown ones are reported as left out, except those of [metadata] and [task]."""


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
    found = _find_tasks(source)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target}: is there already; give a folder that does not exist")
    names = _assign_names(found)
    try:
        result = _import_all(names, target, image, _choose_holdout(list(names.values()), holdout))
        _write_suite(source, target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return result


def _import_all(names: Mapping[Path, str], target: Path, image: str, held: frozenset[str]) -> ImportReport:
    result = ImportReport()
    for folder, name in names.items():
        try:
            split = "holdout" if name in held else "search"
            result.remarks[name] = _import(folder, target / "tasks" / name, image, split)
            result.tasks.append(name)
        except ImportRefused as reason:
            shutil.rmtree(target / "tasks" / name, ignore_errors=True)
            result.skipped[name] = str(reason)
    if not result.tasks:
        first, why = next(iter(result.skipped.items()))
        raise UserError(f"none of {len(names)} tasks can be imported; {first} {why}")
    return result


def _find_tasks(source: Path) -> Sequence[Path]:
    if not source.is_dir():
        raise UserError(f"{source}: no such folder")
    if (source / "suite.toml").is_file():
        raise UserError(f"{source}: is a suite of dgm's own already; use it as --benchmark {source}")
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


def _choose_holdout(names: Sequence[str], share: float) -> frozenset[str]:
    mixed = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    return frozenset(mixed[: int(len(names) * share)])


def _import(folder: Path, target: Path, image: str, split: str) -> list[str]:
    """Write one task; return remarks on the parts left out."""
    if not (folder / "task.toml").is_file():
        raise ImportRefused(OLD)
    _check_folder(folder)
    settings = _read_settings(folder)
    _check_fit(folder, settings)
    environment = settings["environment"]
    remarks = [*_note_ignored_keys(settings), *_note_needs(folder, settings)]
    given = environment.get("docker_image", "")
    file = folder / "environment" / "Dockerfile"
    dockerfile = read_dockerfile(file) if file.is_file() else Dockerfile((), "", {}, ())
    target.mkdir(parents=True)
    _copy(folder, target)
    if image:
        workdir = _make_workspace(target, dockerfile, remarks)
        chosen = image
    else:
        workdir = _use_own_image(folder, target, dockerfile, given, remarks)
        chosen = "" if file.is_file() else f"docker:{given}"
    remarks += _note_outside_paths(target, workdir)
    (target / "task.toml").write_text(_task_toml(settings, split, chosen, workdir, remarks), encoding="utf-8")
    return remarks


def _check_folder(folder: Path) -> None:
    """Refuse a task of which a part leads out of it, or is neither file nor folder, before anything is read."""
    parts = (folder / name for name in ("tests", "solution", "environment"))
    try:
        for part in (folder, *(part for part in parts if part.is_dir())):
            list_files(part)
    except UserError as error:
        raise ImportRefused(f"cannot be taken in: {error}") from error


def _read_settings(folder: Path) -> dict[str, Any]:
    file = folder / "task.toml"
    settings = read_toml(file)
    for section in ("metadata", "task", *_KNOWN):
        if not isinstance(settings.setdefault(section, {}), dict):
            raise UserError(f"{file}: {section}: {settings[section]!r} is not a table")
        if not isinstance(settings[section].get("env", {}), dict):
            raise UserError(f"{file}: {section}.env: {settings[section]['env']!r} is not a table")
    _check_numbers(file, settings)
    return settings


def _check_numbers(file: Path, settings: Mapping[str, Any]) -> None:
    environment = settings["environment"]
    if "docker_image" in environment and not isinstance(environment["docker_image"], str):
        raise UserError(f"{file}: environment.docker_image: {environment['docker_image']!r} is not a text")
    numbers = [("environment", key) for key in ("cpus", "memory_mb", "storage_mb")]
    for section, key in (*numbers, ("agent", "timeout_sec"), ("verifier", "timeout_sec")):
        value = settings[section].get(key, 1)
        most = MOST_CORES if key == "cpus" else MOST
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            raise UserError(
                f"{file}: {section}.{key}: {value!r} is not a number above 0 and at most {most:,g}"
            )
    for key in ("memory", "storage"):
        size = str(environment.get(key, "1M"))
        if not _SIZE.fullmatch(size) or _megabytes({key: size}, key, 0) > MOST:
            raise UserError(
                f"{file}: environment.{key}: {environment[key]!r} is no size such as '512M' or '2G'"
            )


def _check_fit(folder: Path, settings: Mapping[str, Any]) -> None:
    environment = settings["environment"]
    services = _services(folder / "environment")
    if (folder / "steps").is_dir() or settings.get("steps"):
        raise ImportRefused("has several steps; a task here has one instruction and is graded once")
    if len(services) > 1:
        raise ImportRefused(f"needs several containers ({', '.join(services)}); a task here has one sandbox")
    if environment.get("gpus"):
        raise ImportRefused("needs a GPU")
    if str(environment.get("os", "linux")).lower() != "linux":
        raise ImportRefused(f"needs {environment['os']}")
    for name in ("instruction.md", "tests/test.sh"):
        if not (folder / name).is_file():
            raise ImportRefused(f"has no {name}")


def _services(folder: Path) -> Sequence[str]:
    """Return the services of a compose file: the keys one level below ``services:``."""
    found: list[str] = []
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        if (folder / name).is_file():
            text = _read_text(folder, name)
            block = re.search(r"^services:[^\S\n]*\n((?:[ \t]+.*\n?|\s*\n|#.*\n)*)", text, re.MULTILINE)
            lines = re.findall(r"^([ \t]+)([\w.-]+):", block[1] if block else "", re.MULTILINE)
            least = min((len(indent) for indent, _ in lines), default=0)
            found += [key for indent, key in lines if len(indent) == least]
    return found


def _note_ignored_keys(settings: Mapping[str, Any]) -> Iterator[str]:
    for section, known in _KNOWN.items():
        for key in settings[section]:
            if key not in known:
                yield f"[{section}] {key} is not carried over"
    for section in ("verifier", "agent"):
        if settings[section].get("user") in ("root", 0, "0"):
            yield f"[{section}] wants root; it is run as an ordinary user"
    for section in ("environment", "solution"):
        if settings[section].get("env"):
            yield f"[{section}] env is not carried over: {', '.join(settings[section]['env'])}"
    for name, value in _variables(settings, carried=False).items():
        yield f"[verifier] env {name} = {value!r} comes from the environment of who runs it; not carried over"


def _variables(settings: Mapping[str, Any], *, carried: bool) -> Mapping[str, str]:
    env = settings["verifier"].get("env", {})
    return {name: str(value) for name, value in env.items() if ("${" in str(value)) != carried}


def _note_needs(folder: Path, settings: Mapping[str, Any]) -> Iterator[str]:
    if settings["environment"].get("allow_internet") is True:
        yield "it may use the internet; sandboxes here have no network"
    for name in ("tests/test.sh", "solution/solve.sh"):
        text = _read_text(folder, name) if (folder / name).is_file() else ""
        for number, line in enumerate(text.splitlines(), 1):
            if installs(line) and not line.lstrip().startswith("#"):
                what = line.strip()[:80]
                yield f"{name}:{number} installs something, which needs a network: have it in the image ({what})"
                break
    if not (folder / "solution" / "solve.sh").is_file():
        yield "it has no solution/solve.sh, so that it cannot be verified"


def _copy(folder: Path, target: Path) -> None:
    """Copy instruction, tests and solution."""
    (target / "instruction.md").write_bytes(read_below(folder, "instruction.md"))
    for name in ("tests", "solution"):
        if (folder / name).is_dir():
            write_folder(read_folder(folder / name), target / name)


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
    after = re.sub(
        rb"(?<![\w./-])" + re.escape(old.encode()) + rb"(?![\w-])",
        new.encode().replace(b"\\", rb"\\"),
        before,
    )
    if b"\0" in before or before == after:
        return False
    file.write_bytes(after)
    return True


def _use_own_image(folder: Path, target: Path, dockerfile: Dockerfile, given: str, remarks: list[str]) -> str:
    """Leave the workspace to the task's own image."""
    if (folder / "environment" / "Dockerfile").is_file():
        write_folder(read_folder(folder / "environment"), target / "environment")
        remarks.append(
            f"its image stands on {', '.join(dockerfile.bases)}, and is built by Docker when it is needed"
        )
        if dockerfile.workdir in ("", "/"):
            raise ImportRefused(
                "has a Dockerfile without a WORKDIR, so that agents would work in /; try --image python"
            )
        return dockerfile.workdir
    if not given:
        raise ImportRefused("has neither environment/Dockerfile nor docker_image; try --image python")
    remarks.append(f"its image {given} does not say where agents work; /app was taken")
    return "/app"


def _note_outside_paths(target: Path, workdir: str) -> Iterator[str]:
    text = _read_text(target, "instruction.md")
    usual = (*_ORDINARY, workdir)
    named = {
        path for path in _ABSOLUTE.findall(text) if not any(f"{path}/".startswith(f"{u}/") for u in usual)
    }
    if named:
        yield f"the instruction names {', '.join(sorted(named)[:3])}: only what is below {workdir} is graded"


def _task_toml(settings: Mapping[str, Any], split: str, image: str, workdir: str, remarks: list[str]) -> str:
    metadata, environment = settings["metadata"], settings["environment"]
    tags = [str(tag) for tag in (metadata.get("category"), *_list(metadata.get("tags"))) if tag]
    storage = _megabytes(environment, "storage", 256)
    if storage > LARGEST_DISK_MB:
        remarks.append(f"storage of {storage} MB became {LARGEST_DISK_MB}: it is held in memory here")
    lines = {
        "split": split,
        **({"image": image} if image else {}),
        "workdir": workdir,
        "timeout_s": _seconds(settings["agent"]),
        "test_timeout_s": _seconds(settings["verifier"]),
        "tags": list(dict.fromkeys(tags)),
    }
    tests = {
        "command": ["bash", "/tests/test.sh"],
        "result": "reward",
        "cpus": float(environment.get("cpus", 1)),
        "memory_mb": max(SMALLEST_MB, _megabytes(environment, "memory", 1024)),
        "disk_mb": min(LARGEST_DISK_MB, max(SMALLEST_MB, storage)),
    }
    variables = _variables(settings, carried=True)
    parts = ["\n".join(map(_line, lines.items())), "\n[tests]", "\n".join(map(_line, tests.items()))]
    if variables:
        parts += ["\n[tests.env]", "\n".join(map(_line, variables.items()))]
    return "\n".join(parts) + "\n"


def _line(item: tuple[str, object]) -> str:
    # JSON of texts, numbers and lists of texts is also TOML.
    # TOML takes no half of a surrogate pair, though, so JSON must not escape rare letters, as it does by default.
    return f"{item[0]} = {json.dumps(item[1], ensure_ascii=False)}"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _seconds(section: Mapping[str, Any]) -> float:
    return float(section.get("timeout_sec", TIMEOUT_S))


def _megabytes(section: Mapping[str, Any], key: str, default: int) -> int:
    if f"{key}_mb" in section:
        return int(section[f"{key}_mb"])
    match = _SIZE.fullmatch(str(section.get(key, "")))
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else default


def _write_suite(source: Path, target: Path) -> None:
    name = re.sub(r"[^\w.-]", "-", target.resolve().name)
    lines = {
        "name": name,
        "description": f"imported from Harbor's layout: {source.resolve().name}",
        "license": "as in the folder that it was imported from",
    }
    (target / "suite.toml").write_text("\n".join(map(_line, lines.items())) + "\n", encoding="utf-8")
