"""Instances in SWE-bench's format as checked values, from a file or from Hugging Face's data sets by name.

The shipped table (``benchmarks/swebench/known.json``) lists repositories and versions with a known test command. The
swebench package is asked only about an instance that is not in the table and brings no test command of its own.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.benchmarks import swebench_rows
from dgm.benchmarks.swebench_parsers import Parsers
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import TaskId
from dgm.errors import UserError
from dgm.paths import asset

TEXTS = ("instance_id", "repo", "base_commit", "problem_statement", "patch", "test_patch")
"""Keys that every instance has."""
TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
OPTIONAL = ("version", "difficulty", "log_parser", "eval_type", "eval_script", "test_cmd", "image")
"""Optional keys; the last five are of swebench 5, or an instance's own."""
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance; everything but the statement is for grading and must not reach an agent."""

    id: TaskId
    repo: str
    version: str
    base_commit: str
    problem: str
    patch: str
    """The reference fix."""
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    difficulty: str = ""
    """Difficulty from the data set (``15 min - 1 hour`` …); empty if it has none."""
    log_parser: str = ""
    eval_type: str = ""
    eval_script: str = ""
    test_cmd: str = ""
    image: str = ""

    @property
    def digest(self) -> bytes:
        """The SHA-256 of everything that can change a verdict."""
        texts = (
            self.id,
            self.repo,
            self.version,
            self.base_commit,
            self.problem,
            self.patch,
            self.test_patch,
        )
        tests = ("\0".join(self.fail_to_pass), "\0".join(self.pass_to_pass))
        own = (self.log_parser, self.eval_type, self.eval_script, self.test_cmd, self.image)
        digest = hashlib.sha256()
        for text in (*texts, *tests, *own):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.digest()


def load(name: str) -> Mapping[TaskId, Instance]:
    """Load instances of a data set (``lite``, ``verified``, ``full``, ``multilingual``) or of a file, in their order.

    Raises:
        UserError: there is no such data set or file, it cannot be had or read, or an instance in it is wrong; one line
            that names file and instance.
    """
    where, rows = swebench_rows.rows(name)
    found: dict[TaskId, Instance] = {}
    for place, row in rows:
        instance = _instance(row, place)
        if instance.id in found:
            raise UserError(f"{place}: instance {instance.id!r} is there twice")
        found[instance.id] = instance
    if not found:
        raise UserError(f"{where}: no instance in it")
    _check_known(where, found.values())
    return found


def _instance(row: object, place: str) -> Instance:
    if not isinstance(row, dict):
        raise UserError(f"{place}: {type(row).__name__} where an instance (a table of fields) is expected")
    name = row.get("instance_id")
    place = f"{place}: instance {name!r}" if isinstance(name, str) else place
    for key in (*TEXTS, *TESTS):
        if row.get(key) is None:
            near = suggestion(key, [str(given) for given in row])
            raise UserError(f"{place}: the field {key!r} is missing{near if 'mean' in near else ''}")
    texts = [_text(row, key, place) for key in TEXTS]
    version, difficulty, *own = (_text(row, key, place) for key in OPTIONAL)
    for key, value in (("instance_id", texts[0]), ("repo", texts[1].replace("/", "", 1))):
        if not ID.fullmatch(value):
            raise UserError(f"{place}: {key} = {row[key]!r}: expected a name as in 'django__django-11099'")
    wanted, kept = (_tests(row[key], key, place) for key in TESTS)
    if not wanted:
        raise UserError(
            f"{place}: FAIL_TO_PASS names no test, so nothing would tell a fix from doing nothing"
        )
    _, repo, base_commit, problem, patch, test_patch = texts
    return Instance(
        TaskId(texts[0]),
        repo,
        version,
        base_commit,
        problem,
        patch,
        test_patch,
        wanted,
        kept,
        difficulty,
        *own,
    )


def _text(row: Mapping[str, Any], key: str, place: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if key == "version" and isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise UserError(f"{place}: {key} = {str(value)[:60]!r} is not a text")
    return value


def _tests(value: object, key: str, place: str) -> tuple[str, ...]:
    """Return a list of names, which some copies of the data sets hold as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{place}: {key} is neither a list nor JSON text: {error}") from error
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise UserError(f"{place}: {key} is not a list of names of tests")
    return tuple(value)


def _check_known(where: str, instances: Iterable[Instance]) -> None:
    """Check that there is a test command and a log parser for each instance.

    Raises:
        UserError: neither the table nor the installed swebench package has them.
    """
    table: Mapping[str, Sequence[str]] = json.loads(
        asset("benchmarks", "swebench", "known.json").read_text(encoding="utf-8")
    )["repositories"]
    strange: dict[tuple[str, str, str, bool], Instance] = {}
    for each in instances:
        commanded = bool(each.test_cmd or each.eval_script)
        parsed = bool(each.log_parser) or each.repo in table
        if not (parsed and (commanded or each.version in table.get(each.repo, ()))):
            strange.setdefault((each.repo, each.version, each.log_parser, commanded), each)
    if strange:
        _ask(where, table, strange.values())


def _ask(where: str, table: Mapping[str, Sequence[str]], strange: Iterable[Instance]) -> None:
    parsers = Parsers()
    try:
        for each in strange:
            row = {"instance_id": each.id, "repo": each.repo, "log_parser": each.log_parser}
            try:
                parsers.check(row)
            except UserError as error:
                raise UserError(_unknown(where, table, each)) from error
            if not (each.test_cmd or each.eval_script):
                raise UserError(_unknown(where, table, each))
    finally:
        parsers.close()


def _unknown(where: str, table: Mapping[str, Sequence[str]], instance: Instance) -> str:
    versions = table.get(instance.repo)
    if versions is None:
        near = suggestion(instance.repo, list(table))
        what = f"unknown repository {instance.repo!r}{near if 'mean' in near else ''}"
    elif instance.version in versions:
        what = f"no log parser {instance.log_parser!r}"
    else:
        what = (
            f"unknown version {instance.version!r} of {instance.repo}{suggestion(instance.version, versions)}"
        )
    return f"{where}: instance {instance.id!r}: {what}; give it a test_cmd and a log_parser (such as parse_log_pytest)"
