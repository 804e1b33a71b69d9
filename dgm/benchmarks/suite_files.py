"""The files of a task suite as checked values (``benchmarks/README.md`` is the format's full text).

Only shapes are checked here: every key is known, has its type and names something that exists. The effect of a patch
and the results of the tests are left to ``workspaces`` and ``grading``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from dgm.archive.measures import BUILT_IN
from dgm.benchmarks.test_spec import Provenance, TestSpec, read_provenance, read_test_spec
from dgm.benchmarks.toml_table import Table
from dgm.conduct import Bait
from dgm.domain import COMMIT, CommitId, FindingKind, Metric, Split, TaskId
from dgm.errors import UserError

STATEMENTS = ("test", "example", "prose")
DIFFICULTIES = ("easy", "medium", "hard", "very-hard", "out-of-reach")
PROBLEMS = ("problem.md", "instruction.md")
IN_ENGINE = "docker:"
METRIC_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
MARK_CHARS = 8
"""Minimum length of a text by which a canary task tells that its bait was taken."""
REPOSITORY = "repository.git"
"""Bare repository of a suite, whose commits are workspaces."""


class WorkspaceSource(StrEnum):
    """The source of a task's workspace."""

    REPO = "repo"
    """A folder under ``repos/``, with ``start.patch``."""
    COMMIT = "commit"
    """A commit of the suite's ``repository.git``, with ``start.patch`` if there is one."""
    FOLDER = "workspace"
    """The task's own folder ``workspace/``."""
    IMAGE = "image"
    """The workdir of the image, unchanged."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a task; ``suite.toml`` gives the defaults, ``task.toml`` may change them."""

    image: str = "python"
    """Name of a recipe under ``sandboxes/``, or ``docker:`` and an image of the engine."""
    workdir: str = "/work/repo"
    timeout_s: float = 120.0
    """Wall time of the agent, in seconds."""
    test_timeout_s: float = 30.0
    """Wall time of all graded tests of a task together, in seconds."""


@dataclass(frozen=True, slots=True)
class SuiteRecord:
    """``suite.toml``."""

    name: str
    description: str
    license: str
    limits: Limits
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """Quantities that tests with a reward measure, by name."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """``task.toml``: the facts that grading needs and that an agent must not see."""

    id: TaskId
    split: Split
    source: WorkspaceSource
    repo: str
    """Name of a folder in ``repos/``; empty if the workspace is not one of them."""
    commit: CommitId | None
    """Commit of ``repository.git`` that is the workspace; None if it is not one."""
    environment: str
    """Name of a folder in ``environments/``; empty if the image alone has all packages."""
    statement: str
    kind: str
    difficulty: str
    tags: tuple[str, ...]
    tests: TestSpec
    limits: Limits
    provenance: Provenance | None
    problem: str
    """Name of the file with the problem."""
    dockerfile: str
    """Path of the Dockerfile in the task's folder; empty if there is none."""
    bait: Bait = field(default_factory=Bait)
    """Temptation of a canary task; empty for any other task."""


def read_suite(folder: Path) -> SuiteRecord:
    """Read ``suite.toml`` of a suite's folder.

    Raises:
        UserError: it is missing or wrong; the message names file, line and key.
    """
    table = Table.load(folder / "suite.toml")
    defaults = table.table("defaults")
    record = SuiteRecord(
        name=table.take("name", str),
        description=table.take("description", str),
        license=table.take("license", str),
        limits=_read_limits(defaults, Limits()),
        metrics=_read_metrics(table.table("metrics")),
    )
    table.end()
    defaults.end()
    if not record.name.strip() or set(record.name) & set("/+:"):
        raise table.fail("name", f"{record.name!r} must be a name without '/', '+' and ':'")
    return record


def _read_metrics(table: Table) -> Mapping[str, Metric]:
    metrics = {}
    for name in table.names():
        if not METRIC_NAME.fullmatch(name) or name in (*BUILT_IN, "reward", "rubric"):
            raise table.fail(
                name, "is the name of another thing, or not of lower-case letters, digits, _ and -"
            )
        inner = table.table(name)
        higher = inner.choice("direction", ["higher", "lower"]) == "higher"
        metrics[name] = Metric(higher, inner.take("unit", str, ""), inner.take("meaning", str, ""))
        inner.end()
    return metrics


def read_task(
    folder: Path, limits: Limits, repos: Sequence[str], environments: Sequence[str] = ()
) -> TaskRecord:
    """Read and check one task's folder; ``repos`` and ``environments`` are the libraries and packages of the suite.

    Raises:
        UserError: a file is missing or wrong; the message names file, line and key.
    """
    table = Table.load(folder / "task.toml")
    dockerfile = _dockerfile(folder, table)
    own_image = bool(dockerfile) or table.has("image")
    split = Split(table.choice("split", [split.value for split in Split]))
    commit = _read_commit(folder, table)
    repo = (
        table.choice("repo", repos)
        if table.has("repo") or (not commit and _needs_repo(folder, table))
        else ""
    )
    tests, limits = read_test_spec(folder, table), _read_limits(table, limits)
    record = TaskRecord(
        id=TaskId(folder.name),
        split=split,
        source=_find_source(folder, repo, commit),
        repo=repo,
        commit=commit,
        environment=table.choice("environment", environments) if table.has("environment") else "",
        statement=table.choice("statement", STATEMENTS, ""),
        kind=table.take("kind", str, ""),
        difficulty=table.choice("difficulty", DIFFICULTIES, ""),
        tags=table.texts("tags", ()),
        tests=tests,
        limits=limits,
        provenance=read_provenance(table),
        problem=_find_problem(folder),
        dockerfile=dockerfile,
        bait=_read_bait(table),
    )
    table.end()
    _check_source(folder, table, record, own_image=own_image)
    return record


def _read_bait(table: Table) -> Bait:
    if not table.has("canary"):
        return Bait()
    inner = table.table("canary")
    kind = FindingKind(inner.choice("kind", [kind.value for kind in FindingKind], FindingKind.CANARY.value))
    bait = Bait(kind, *(inner.texts(key, ()) for key in ("touches", "contains", "reads", "models", "fails")))
    inner.end()
    if bait == Bait(kind):
        raise table.fail("canary", "says of no bait: touches, contains, reads, models or fails")
    for key in ("contains", "reads"):
        if short := next((text for text in getattr(bait, key) if len(text) < MARK_CHARS), ""):
            raise inner.fail(
                key, f"{short!r} is too short to be no coincidence (at least {MARK_CHARS} characters)"
            )
    return bait


def _find_source(folder: Path, repo: str, commit: CommitId | None) -> WorkspaceSource:
    if repo:
        return WorkspaceSource.REPO
    if commit:
        return WorkspaceSource.COMMIT
    return WorkspaceSource.FOLDER if (folder / "workspace").is_dir() else WorkspaceSource.IMAGE


def _read_commit(folder: Path, table: Table) -> CommitId | None:
    if not table.has("commit"):
        return None
    commit = table.take("commit", str)
    if not COMMIT.fullmatch(commit):
        raise table.fail("commit", f"{commit!r} is not a commit (40 or 64 hexadecimal digits)")
    if table.has("repo") or (folder / "workspace").is_dir():
        raise table.fail(
            "commit", "the task has another workspace too (repo, or a folder workspace/); keep one"
        )
    if not (folder.parent.parent / REPOSITORY).is_dir():
        raise table.fail("commit", f"the suite has no {REPOSITORY}, which would hold it")
    return CommitId(commit)


def _needs_repo(folder: Path, table: Table) -> bool:
    """Return whether the task was meant to have a ``repo``, so that a missing one is the mistake to report."""
    if (folder / "start.patch").is_file():
        return True
    return not (folder / "workspace").is_dir() and not table.has("tests")


def _check_source(folder: Path, table: Table, record: TaskRecord, *, own_image: bool) -> None:
    """Refuse a task without a workspace, with two, or with one that a sandbox cannot hold.

    Raises:
        UserError: the task is such a one.
    """
    workdir = record.limits.workdir
    by_name = record.tests.by_name
    if record.repo and (folder / "workspace").is_dir():
        raise table.fail("repo", "the task has a folder workspace/ too; one of them is where agents work")
    if record.source is WorkspaceSource.IMAGE:
        in_engine = bool(record.dockerfile) or record.limits.image.startswith(IN_ENGINE)
        if not (in_engine and own_image):
            raise UserError(
                f"{folder}: nothing to work on: give it a folder workspace/, a library with repo = …, "
                'or an image that holds it (environment/Dockerfile, or image = "docker:…")'
            )
        if by_name:
            raise table.fail("fail_to_pass", "a workspace in an image needs a test command: a table [tests]")
    elif not workdir.startswith("/work/"):
        raise table.fail("workdir", f"{workdir!r} is not below /work, where sandboxes can be written to")
    needed = [*(["start.patch"] if record.repo else []), *(["solution.patch"] if by_name else [])]
    for name in needed:
        if not (folder / name).is_file():
            raise UserError(f"{folder / name}: missing; every such task has one")


def _dockerfile(folder: Path, table: Table) -> str:
    found = [name for name in ("Dockerfile", "environment/Dockerfile") if (folder / name).is_file()]
    if len(found) > 1:
        raise UserError(f"{folder}: has both {' and '.join(found)}; keep one")
    if found and table.has("image"):
        raise table.fail("image", f"the task has {found[0]} too; keep one of them")
    return found[0] if found else ""


def _find_problem(folder: Path) -> str:
    found = [name for name in PROBLEMS if (folder / name).is_file()]
    if not found:
        raise UserError(f"{folder / 'problem.md'}: missing; every task has one")
    if len(found) > 1:
        raise UserError(f"{folder}: has both {' and '.join(found)}; keep one")
    return found[0]


def _read_limits(table: Table, base: Limits) -> Limits:
    workdir = table.take("workdir", str, base.workdir)
    if not workdir.startswith("/"):
        raise table.fail("workdir", f"{workdir!r} is not an absolute path")
    return Limits(
        image=table.take("image", str, base.image),
        workdir=workdir,
        timeout_s=table.positive("timeout_s", base.timeout_s),
        test_timeout_s=table.positive("test_timeout_s", base.test_timeout_s),
    )
