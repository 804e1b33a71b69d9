"""The only program that imports the swebench package; it reads test logs with the package's own parsers.

Started by ``swebench_parsers`` with ``python -P swebench_worker.py`` in an empty folder (importing the package may
read a ``.env`` of the working directory). Speaks JSON lines: first what it found, then one answer for each question.
Nothing of dgm is imported, so that any interpreter that has the package will do.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

FAILURES = ("FAILED", "ERROR")
FAMILIES = ("c", "go", "java", "javascript", "php", "python", "ruby", "rust")

Parser = Callable[[str, Any], dict[str, str]]


class Old:
    """swebench 4: parsers and test commands are looked up by repository and version."""

    def __init__(self) -> None:
        self._constants = importlib.import_module("swebench.harness.constants")
        self._by_repo: Mapping[str, Parser] = importlib.import_module(
            "swebench.harness.log_parsers"
        ).MAP_REPO_TO_PARSER

    def parser(self, repo: str, name: str) -> Parser | None:
        """The parser of that name, or the repository's."""
        for family in FAMILIES if name else ():
            module = importlib.import_module(f"swebench.harness.log_parsers.{family}")
            if name.startswith("parse_log_") and callable(getattr(module, name, None)):
                found: Parser = getattr(module, name)
                return found
        return None if name else self._by_repo.get(repo)

    def fail_only(self, repo: str) -> bool:
        """Whether the repository's parser lists failures only."""
        return repo in self._constants.FAIL_ONLY_REPOS

    def script(self, row: Mapping[str, str]) -> str:
        """The package's own evaluation script of the instance; empty where it knows none."""
        specs = self._constants.MAP_REPO_VERSION_TO_SPECS.get(row["repo"], {}).get(row["version"])
        if specs is None or "test_cmd" not in specs:
            return ""
        scripts = importlib.import_module("swebench.harness.test_spec.create_scripts")
        lines = scripts.make_eval_script_list(
            row, specs, "testbed", row["workdir"], row["base_commit"], row["test_patch"]
        )
        return "\n".join(lines)


class New:
    """swebench 5: instances name their parser and carry their script."""

    def __init__(self) -> None:
        self._by_name: Mapping[str, Parser] = importlib.import_module(
            "swebench.harness.log_parsers"
        ).PARSER_REGISTRY

    def parser(self, repo: str, name: str) -> Parser | None:  # noqa: ARG002
        """The parser of that name; this version knows no repositories."""
        return self._by_name.get(name)

    def fail_only(self, repo: str) -> bool:  # noqa: ARG002
        """Instances say it themselves."""
        return False

    def script(self, row: Mapping[str, str]) -> str:  # noqa: ARG002
        """This version knows no test commands."""
        return ""


def statuses(parser: Parser, log: str, instance: str) -> dict[str, str]:
    """Test → PASSED, FAILED, ERROR, SKIPPED or XFAIL, as the package's parser has it.

    The parsers keep the last status of a test, so that a line printed by the graded code at its exit would win over the
    runner's. Those of Python's runners tell a failure from its line alone: each such line is read by itself, and a
    failure stands whatever else the log says of the test.
    """
    spec = SimpleNamespace(instance_id=instance)
    found = dict(parser(log, spec))
    if parser.__module__.endswith(".python"):
        for line in filter(_may_tell_a_failure, log.split("\n")):
            alone = parser(line, spec)
            found |= {
                test: alone[test] for test in alone if test in found and _status(alone[test]) in FAILURES
            }
    return {str(test): _status(status) for test, status in found.items()}


def _may_tell_a_failure(line: str) -> bool:
    # sympy: " F" and " E" end a line, and a heading of underscores names the test.
    return "FAIL" in line or "ERROR" in line or line.startswith("_") or line.rstrip().endswith((" F", " E"))


def _status(status: object) -> str:
    return str(getattr(status, "value", status))


def answer(package: Old | New, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """One answer: ``{"script": …}``, ``{"statuses": …}``, or what is wrong with the question or its log."""
    row = question["row"]
    if question["ask"] == "script":
        return {"script": package.script(row)}
    parser = package.parser(row["repo"], row["log_parser"])
    fail_only = package.fail_only(row["repo"])
    if parser is None:
        return {"unknown": row["log_parser"] or row["repo"]}
    if question["ask"] == "known":
        return {"parser": parser.__name__, "fail_only": fail_only}
    log = Path(question["log"]).read_text(encoding="utf-8", errors="replace")
    try:
        found = statuses(parser, log, row["instance_id"])
    except Exception as error:  # noqa: BLE001  (a parser may fail in any way on a log that graded code wrote)
        return {"unreadable": f"{type(error).__name__}: {error}"}
    return {"statuses": found, "fail_only": fail_only}


def opened() -> tuple[str, Old | New]:
    """The package and its version.

    ``swebench`` and ``swebench.harness`` import all that they have when they are imported (8 s, 180 MB), of which
    parsing needs next to nothing: both are put in place unexecuted. Where a version does not take that, it is imported
    as it wants to be.
    """
    version = importlib.metadata.version("swebench")
    kind = Old if int(version.split(".")[0]) < 5 else New
    try:
        for name in ("swebench", "swebench.harness"):
            spec = importlib.util.find_spec(name)
            assert spec is not None
            module = ModuleType(name)
            module.__path__ = list(spec.submodule_search_locations or ())
            sys.modules[name] = module
        return version, kind()
    except Exception:  # noqa: BLE001  (whatever comes of it, there is another way)
        for name in [name for name in sys.modules if name.split(".")[0] == "swebench"]:
            del sys.modules[name]
        return version, kind()


def main() -> None:
    """Answers questions until its input ends."""
    sys.setrecursionlimit(10_000)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # The package and what it imports print now and then.
    os.dup2(2, 1)

    def say(reply: Mapping[str, Any]) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    try:
        version, package = opened()
    except Exception as error:  # noqa: BLE001  (whatever the import of a foreign package raises)
        missing = isinstance(error, importlib.metadata.PackageNotFoundError)
        say({"missing" if missing else "broken": f"{type(error).__name__}: {error}"})
        return
    say({"version": version})
    for line in sys.stdin:
        say(answer(package, json.loads(line)))


if __name__ == "__main__":
    main()
