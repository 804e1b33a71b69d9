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

Parser = Callable[[str, Any], dict[str, str]]


def find_parser(name: str) -> Parser | None:
    """Return the package's parser of that name."""
    by_name: Mapping[str, Parser] = importlib.import_module("swebench.harness.log_parsers").PARSER_REGISTRY
    return by_name.get(name)


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


def answer(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """One answer: ``{"statuses": …}``, or what is wrong with the question or its log."""
    row = question["row"]
    parser = find_parser(row["log_parser"])
    if parser is None:
        return {"unknown": row["log_parser"] or row["repo"]}
    if question["ask"] == "known":
        return {"parser": parser.__name__}
    log = Path(question["log"]).read_text(encoding="utf-8", errors="replace")
    try:
        return {"statuses": statuses(parser, log, row["instance_id"])}
    except Exception as error:  # noqa: BLE001  (a parser may fail in any way on a log that graded code wrote)
        return {"unreadable": f"{type(error).__name__}: {error}"}


def open_package() -> str:
    """Return the package's version.

    ``swebench`` and ``swebench.harness`` import all that they have when they are imported (8 s, 180 MB), of which
    parsing needs next to nothing: both are put in place unexecuted.
    """
    version = importlib.metadata.version("swebench")
    if int(version.split(".")[0]) < 5:
        raise RuntimeError(f"version {version} is too old; 5 or newer is needed")
    for name in ("swebench", "swebench.harness"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        module = ModuleType(name)
        module.__path__ = list(spec.submodule_search_locations or ())
        sys.modules[name] = module
    importlib.import_module("swebench.harness.log_parsers")
    return version


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
        version = open_package()
    except Exception as error:  # noqa: BLE001  (whatever the import of a foreign package raises)
        missing = isinstance(error, importlib.metadata.PackageNotFoundError)
        say({"missing" if missing else "broken": f"{type(error).__name__}: {error}"})
        return
    say({"version": version})
    for line in sys.stdin:
        say(answer(json.loads(line)))


if __name__ == "__main__":
    main()
