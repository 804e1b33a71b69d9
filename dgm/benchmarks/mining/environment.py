"""Packages of a commit: one setup command fills them in a build's sandbox, and their digest names them.

The command is the user's (``--setup``) or the language's usual one. It runs in a copy of the checkout,
which is a git repository with the commit's tag, so that projects that take their version from git can be built.
What an editable installation or a build leaves in the checkout belongs to every workspace (``generated``).
"""

import ast
import asyncio
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dgm.benchmarks.environments import (
    FOLDER,
    GENERATED,
    NAME_LENGTH,
    NODE_PROGRAMS,
    OWN,
    PACKAGES,
    Environment,
    environment_digest,
    read_environments,
)
from dgm.benchmarks.languages import LANGUAGES, Language
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.writing import toml_text
from dgm.domain import Snapshot
from dgm.errors import UserError
from dgm.folders import list_files, read_entry
from dgm.protocols import Builder, BuildError

SETUP_S = 1800.0
_SOURCE, _GENERATED = "source", "generated"
_SHOWN = 300
_START = r"""
git init -q . && git add -Af . && git -c user.name=dgm -c user.email=dgm@localhost commit -qm commit &&
    { [ -z "$DGM_TAG" ] || git tag "$DGM_TAG"; }
[ "$DGM_LANGUAGE" != python ] || uv venv -q "$DGM_PACKAGES" || exit 1
mkdir -p "$DGM_PACKAGES" && sh -c "$1" || exit
if [ "$DGM_LANGUAGE" = python ]; then
    uv pip install 'pytest>=6' || exit 1
    uv pip install coverage
    for name in $DGM_MISSING; do uv pip install --only-binary :all: "$name"; done
elif [ "$DGM_LANGUAGE" = javascript ]; then
    for name in $DGM_MISSING; do
        npm install --no-save --ignore-scripts "$name" && cp -a node_modules/. "$DGM_PACKAGES"
    done
fi
mkdir -p ../generated
[ ! -d .git ] || { git ls-files -oz -- . ":(exclude,glob)**/node_modules/**" ":(exclude,glob)**/target/**" \
    ":(exclude,glob)**/__pycache__/**" ":(exclude,glob)**/*.egg-info/**" ":(exclude,glob)**/.*/**" \
    ":(exclude)build" ":(exclude)dist" ":(exclude,glob)**/*.lock" ":(exclude,glob)**/.*" | head -z -n 2000
    find node_modules -maxdepth 1 -type l -lname '../*' -print0
    find node_modules/@* -maxdepth 1 -type l -lname '../../*' -print0; } 2>/dev/null |
    xargs -0r cp -P --parents -t ../generated
"""
"""What the sandbox's shell does around the setup command, which is ``$1``."""
_VOLATILE: Mapping[Language, Sequence[str]] = {
    Language.PYTHON: ("**/__pycache__", ".lock", ".gitignore", "CACHEDIR.TAG", "**/*.dist-info/direct_url.json"),
    Language.JAVASCRIPT: (".package-lock.json", ".yarn-integrity", ".modules.yaml", ".cache", ".vite"),
    Language.GO: ("mod/cache/download/sumdb", "mod/cache/vcs", "mod/**/*.lock", "mod/**/lock", "mod/cache/**/*.zip",
           "mod/cache/**/list"),
    Language.JVM: ("m2/**/_remote.repositories", "m2/**/resolver-status.properties", "m2/**/*.lastUpdated",
            "m2/**/*.lock", "m2/**/*.part", "m2/.cache", "m2/.locks", "m2/.meta"),
}  # fmt: skip
"""What two installations do not share, or no test needs."""
_DISTRIBUTIONS: Mapping[str, str] = {
    "yaml": "pyyaml", "PIL": "pillow", "sklearn": "scikit-learn", "attr": "attrs", "dateutil": "python-dateutil",
    "bs4": "beautifulsoup4", "git": "gitpython", "OpenSSL": "pyopenssl", "jwt": "pyjwt", "dotenv": "python-dotenv",
    "cv2": "opencv-python-headless", "zmq": "pyzmq", "pkg_resources": "setuptools<81", "docx": "python-docx",
    "serial": "pyserial", "Crypto": "pycryptodome", "nacl": "pynacl", "magic": "python-magic", "ruamel": "ruamel.yaml",
    "django": "django", "flask": "flask", "distutils": "setuptools",
    "mocker": "pytest-mock", "benchmark": "pytest-benchmark", "httpx_mock": "pytest-httpx",
    "requests_mock": "requests-mock", "httpserver": "pytest-httpserver", "snapshot": "syrupy",
    "subtests": "pytest-subtests", "freezer": "pytest-freezer", "aiohttp_client": "pytest-aiohttp",
    "data_regression": "pytest-regressions", "datadir": "pytest-datadir", "fs": "pyfakefs", "settings": "pytest-django",
    "event_loop": "pytest-asyncio", "httpbin": "pytest-httpbin", "postgresql": "pytest-postgresql",
}  # fmt: skip
"""Modules and fixtures of pytest whose packages have another name."""
_MISSING = re.compile(
    r"No module named ['\"]([\w.-]+)|fixture ['\"](\w+)['\"] not found"
    r"|Cannot find (?:module|package) '((?:@[\w.-]+/)?[\w-][\w.-]*)'"
)
_MISSING_PLUGINS: Mapping[str, str] = {
    "async def functions are not natively supported": "pytest-asyncio",
    "unrecognized arguments: --cov": "pytest-cov",
    "Missing required plugins: ": "",
}
_EDITABLE_MAPS = (
    re.compile(r"^MAPPING\b[^=]*= (\{.*\})$", re.M),
    re.compile(r"map_module\((['\"][\w.]+['\"]), (['\"].*?['\"])\)"),
)


class CannotInstall(Exception):
    """The packages of a commit cannot be installed; the message tells the cause and where the log is."""


@dataclass(frozen=True, slots=True)
class Tool:
    """The program of a sandbox that the packages are for."""

    language: Language
    version: str
    machine: str


class Environments:
    """The environments of a mining, by what their commits declare.

    Attributes:
        remarks: name of an environment → what a user should know of how it was built.
    """

    def __init__(
        self, work: Path, tool: Tool, journal: MiningJournal, builder: Builder, setup: str = ""
    ) -> None:
        """Keep what environments are built from; ``setup`` is the user's own command."""
        self._work = work.absolute()
        self._tool = tool
        self._journal = journal
        self._builder = builder
        self._setup = setup
        self._record = LANGUAGES[tool.language]
        self._locks: dict[str, asyncio.Lock] = {}
        self.remarks: dict[str, str] = {}

    async def environment(
        self, files: Snapshot, day: str, tag: str = "", missing: Sequence[str] = ()
    ) -> Environment:
        """Return the environment for a commit's files; build it if it is missing.

        Args:
            files: the commit's.
            day: its day; no package is newer, unless nothing can be installed so.
            tag: the last tag before it, from which projects compute their version.
            missing: further packages by name.

        Raises:
            CannotInstall: the setup command fails.
            Infrastructure: the sandbox failed.
        """
        digest = self._digest(files, missing)
        async with self._locks.setdefault(digest, asyncio.Lock()):
            key = f"environment {digest}"
            record = self._journal.get(key)
            if record is None or (record["name"] and record["name"] not in read_environments(self._work)):
                record = await self._build(files, (day, tag, missing), digest)
                if record["name"] or read_environments(self._work):
                    # Where nothing was ever installed, the cause may be this machine: no network, no disk.
                    self._journal.put(key, record)
        if not record["name"]:
            raise CannotInstall(record["remark"])
        self.remarks[record["name"]] = record["remark"]
        return read_environments(self._work)[record["name"]]

    def _digest(self, files: Snapshot, missing: Sequence[str]) -> str:
        digest = hashlib.sha256(repr(tuple(missing)).encode())
        for name, entry in sorted(files.items()):
            if self._record.declares.fullmatch(name.rpartition("/")[2]):
                digest.update(f"{name} {len(entry.data)}\n".encode("utf-8", "replace") + entry.data)
        return digest.hexdigest()

    async def _build(
        self, files: Snapshot, facts: tuple[str, str, Sequence[str]], digest: str
    ) -> Mapping[str, str]:
        log = self._work / "logs" / f"setup-{digest[:12]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        (self._work / FOLDER).mkdir(parents=True, exist_ok=True)
        command = self._setup or self._record.setup
        day, tag, missing = facts
        dated = not self._setup and self._tool.language is Language.PYTHON
        failure = ""
        for until in (day, "") if dated else ("",):
            env = {"UV_EXCLUDE_NEWER": until} if until else {}
            env |= {"DGM_DAY": day, "DGM_TAG": tag, "DGM_MISSING": " ".join(missing)}
            with tempfile.TemporaryDirectory(prefix=".draft-", dir=self._work / FOLDER) as draft:
                try:
                    name, remark = await self._run(command, files, env, (Path(draft), log))
                except (CannotInstall, BuildError) as error:
                    failure = failure or f"{error} (log: {log})"
                    continue
                first = (
                    "by --setup" if self._setup else "" if until or not dated else "with the newest packages"
                )
                more = f"with {', '.join(missing)}, which tests ask for" if missing else ""
                return {"name": name, "remark": "; ".join(filter(None, [first, more, remark]))}
        return {"name": "", "remark": failure}

    async def _run(
        self, command: str, files: Snapshot, env: Mapping[str, str], places: tuple[Path, Path]
    ) -> tuple[str, str]:
        """Run the command in a fresh sandbox; return the environment's name, and what it was refused."""
        draft, log = places
        language = self._tool.language
        async with self._builder.open(public=bool(self._setup)) as sandbox:
            packages, source = f"{sandbox.folder}/{PACKAGES}", f"{sandbox.folder}/{_SOURCE}"
            await sandbox.put(files, _SOURCE)
            variables = {
                "DGM_PACKAGES": packages,
                "VIRTUAL_ENV": packages if language is Language.PYTHON else "",
                "UV_PROJECT_ENVIRONMENT": packages,
                "UV_NO_PROGRESS": "1",
                "DGM_LANGUAGE": language.value,
                f"DGM_{self._record.program.upper()}": self._tool.version,
                "GOMODCACHE": f"{packages}/mod",
                "GOTOOLCHAIN": "local",
                "GOFLAGS": "-modcacherw",
                **env,
            }
            done = await sandbox.run(
                ["sh", "-c", _START, "sh", command], name=_SOURCE, timeout_s=SETUP_S, env=variables
            )
            log.write_text(f"$ {command}\n{done.output}\n", encoding="utf-8")
            if done.exit_code:
                raise CannotInstall(done.explain(find_error(done.output) or f"exit status {done.exit_code}"))
            await sandbox.fetch(PACKAGES, draft / PACKAGES)
            await sandbox.fetch(_GENERATED, draft / GENERATED)
        return await asyncio.to_thread(self._store, draft, files, source), done.refused

    def _store(self, draft: Path, files: Snapshot, source: str) -> str:
        """Make a draft the same wherever it is built, and give it its name; return that."""
        packages, language = draft / PACKAGES, self._tool.language
        record: dict[str, object] = {"command": True}
        match language:
            case Language.PYTHON:
                record = {"python": self._tool.version, "roots": finish_python(packages, files, source)}
            case Language.JAVASCRIPT:
                _finish_node(packages)
                record = {"node": self._tool.version}
            case Language.GO:
                (packages / "mod").mkdir(exist_ok=True)
                record = {"go": self._tool.version}
            case _:
                (packages / "vendor").mkdir(exist_ok=True)
        for pattern in _VOLATILE.get(language, ()):
            for path in sorted(packages.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(
                    missing_ok=True
                )
        for path in sorted(packages.rglob("maven-metadata-*.xml")):
            path.write_bytes(re.sub(rb"(<lastUpdated>)\d+", rb"\g<1>0", path.read_bytes()))
        (packages / ".keep").touch()
        for path in (packages, *packages.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        record["machine"] = self._tool.machine if _has_machine_code(packages) else ""
        record["requirements"] = _list_packages(packages, language)
        if not any((draft / GENERATED).iterdir()):
            (draft / GENERATED).rmdir()
        return _name(draft, record, self._work / FOLDER)


def with_generated(files: Snapshot, environment: Environment) -> Snapshot:
    """Return a workspace with what installing the project made in it."""
    folder = environment.generated
    if not folder.is_dir():
        return files
    return {**{name: read_entry(folder, name) for name in list_files(folder)}, **files}


def _name(draft: Path, record: Mapping[str, object], environments: Path) -> str:
    (draft / "environment.toml").write_text(toml_text(record), encoding="utf-8")
    try:
        name = environment_digest(draft)[:NAME_LENGTH]
    except UserError as error:
        raise CannotInstall(str(error)) from error
    if not (environments / name).exists():
        (environments / name).mkdir()
        for path in sorted(draft.iterdir()):
            path.replace(environments / name / path.name)
    return name


def find_error(log: str) -> str:
    """Return the lines of a log that say why it failed, as one; the last line if none does."""
    lines = [re.sub(r"^[\s×╰─▶│|`>-]+", "", line).strip() for line in log.splitlines()]
    start = next(
        (n for n, line in enumerate(lines) if re.match(r"Because |.*(?:\berror\b|ERR!)", line, re.I)), -1
    )
    lines = [line for line in lines[start:] if line] or [line for line in lines if line][-1:]
    return " ".join(lines)[:_SHOWN]


def missing_packages(log: str, files: Iterable[str]) -> tuple[str, ...]:
    """Return the packages that errors in the output of tests name as missing, but for the repository's own."""
    own = {part.removesuffix(".py") for name in files for part in name.split("/")}
    names: dict[str, None] = {}
    for match in _MISSING.finditer(log):
        name = next(filter(None, match.groups())).partition(".")[0]
        is_fixture = bool(match[2])
        if name not in own and not name.startswith("_") and (not is_fixture or name in _DISTRIBUTIONS):
            names[_DISTRIBUTIONS.get(name, name)] = None
    for text, name in _MISSING_PLUGINS.items():
        if text in log:
            names |= dict.fromkeys([name] if name else re.findall(rf"{text}([\w.-]+)", log))
    return tuple(names)


def finish_python(packages: Path, files: Snapshot, source: str) -> list[str]:
    """Turn a virtual environment into a folder for ``PYTHONPATH``; return the workspace's folders of modules.

    Args:
        packages: the folder; what was installed with ``--target`` lies in it as it is to be.
        files: the checkout.
        source: where the checkout was.
    """
    site = next(iter(packages.glob("lib/python3*/site-packages")), None)
    for path in sorted(site.iterdir()) if site else ():
        if not (packages / path.name).exists():
            path.rename(packages / path.name)
    for name in ("lib", "lib64", "include", "share", "pyvenv.cfg"):
        path = packages / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for script in sorted((packages / "bin").glob("*")):
        if script.is_symlink() or script.name.startswith(("activate", "deactivate", "python", "pydoc")):
            script.unlink()
        else:
            _make_portable(script)
    roots = [*_editable_roots(packages, source), *_copied_roots(packages, files, source)]
    for record in sorted(packages.rglob("*.dist-info/RECORD")):
        lines = record.read_text(encoding="utf-8").splitlines()
        kept = sorted(line for line in lines if not re.match(r"(?:\.\./)*bin/|.*/__pycache__/", line))
        record.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    usual = [
        folder
        for folder in ("src", "lib")
        if any(re.match(rf"{folder}/\w+(?:/__init__)?\.py$", n) for n in files)
    ]
    return [*dict.fromkeys([*roots, *usual, "."])]


def _editable_roots(packages: Path, source: str) -> list[str]:
    """Return the folders that editable installations lead to; the files by which they do so are removed."""
    paths: list[str] = []
    for file in sorted(
        [*packages.glob("*.pth"), *packages.glob("__editable__*.py"), *packages.glob("_editable_impl_*.py")]
    ):
        text = file.read_text(encoding="utf-8", errors="replace")
        paths += [line.strip() for line in text.splitlines() if line.startswith(source)]
        modules: dict[str, str] = {}
        for match in _EDITABLE_MAPS[0].finditer(text):
            modules |= ast.literal_eval(match[1])
        modules |= {ast.literal_eval(a): ast.literal_eval(b) for a, b in _EDITABLE_MAPS[1].findall(text)}
        for name, path in modules.items():
            depth = name.count(".") + 1 + path.endswith("/__init__.py")
            paths.append(str(PurePosixPath(path).parents[depth - 1]))
        if source in text:
            file.unlink()
    inner = [
        path.removeprefix(source).strip("/") or "." for path in paths if f"{path}/".startswith(f"{source}/")
    ]
    return [*dict.fromkeys(inner)]


def _copied_roots(packages: Path, files: Snapshot, source: str) -> list[str]:
    """Remove the repository's own modules that were installed as copies; return the folders that have them.

    The metadata of all its own packages goes to a folder of its own.
    """
    roots: list[str] = []
    for direct in sorted(packages.glob("*.dist-info/direct_url.json")):
        if not str(json.loads(direct.read_bytes()).get("url", "")).startswith(f"file://{source}"):
            continue
        for line in (direct.parent / "RECORD").read_text(encoding="utf-8").splitlines():
            inner = line.rsplit(",", 2)[0].strip('"')
            is_module = not inner.startswith(("bin/", "..", "/")) and ".dist-info/" not in inner
            if is_module and (packages / inner).is_file():
                holders = [name for name in files if name == inner or name.endswith(f"/{inner}")]
                roots += [min(holders, key=len).removesuffix(inner).strip("/") or "."] if holders else []
                (packages / inner).unlink()
        (packages / OWN).mkdir(exist_ok=True)
        direct.parent.rename(packages / OWN / direct.parent.name)
    return roots


def _make_portable(script: Path) -> None:
    """Let a Python script start with whatever Python the sandbox has."""
    data = script.read_bytes()
    if data.startswith(b"#!") and b"python" in data[:_SHOWN]:
        body = data.partition(b"\n'''\n")[2] if data.startswith(b"#!/bin/sh") else data.partition(b"\n")[2]
        script.write_bytes(b"#!/usr/bin/env python3\n" + body)


def _finish_node(modules: Path) -> None:
    (modules / ".bin").mkdir(exist_ok=True)
    (modules / NODE_PROGRAMS).mkdir(exist_ok=True)
    (modules / NODE_PROGRAMS / "bin").unlink(missing_ok=True)
    (modules / NODE_PROGRAMS / "bin").symlink_to("../.bin")
    for path in sorted(modules.rglob("*")):
        if path.is_symlink() and not path.exists():
            path.unlink()


def _has_machine_code(packages: Path) -> bool:
    for path in packages.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    return True
    return False


def _list_packages(packages: Path, language: Language) -> list[str]:
    """Return the packages with their versions, for people."""
    match language:
        case Language.PYTHON:
            return sorted("==".join(path.stem.rsplit("-", 1)) for path in packages.glob("*.dist-info"))
        case Language.JAVASCRIPT:
            manifests = [*packages.glob("*/package.json"), *packages.glob("@*/*/package.json")]
            return sorted(filter(None, (_npm_name(path) for path in manifests)))
        case Language.GO:
            top = packages / "mod" / "cache" / "download"
            hashes = top.glob("**/@v/*.ziphash")
            return sorted(f"{path.parent.parent.relative_to(top).as_posix()}@{path.stem}" for path in hashes)
        case Language.RUST:
            return sorted(path.name for path in packages.glob("vendor/*") if path.is_dir())
        case _:
            return sorted({path.stem for path in packages.glob("m2/**/*.jar")})


def _npm_name(manifest: Path) -> str:
    try:
        about = json.loads(manifest.read_bytes())
        return f"{about['name']}@{about['version']}"
    except (ValueError, KeyError, TypeError):
        return ""
