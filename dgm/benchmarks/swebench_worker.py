"""The only program that imports the swebench package, for its evaluation scripts, parsers and verdicts.

``swebench_grading`` runs it once for a question: ``python -P swebench_worker.py`` in an empty folder (importing the
package reads a ``.env`` of the working directory), with a JSON object on standard input and one on standard output.
It imports nothing of dgm.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

UNUSED = ("datasets", "dotenv", "tqdm")
"""Libraries that the package imports for other work than grading."""


class _Unused(ModuleType):
    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (stands in for anything)
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_args, **_options: None


def import_package() -> tuple[Any, Any]:
    """Return the package's modules ``grading`` and ``utils``.

    ``swebench.harness`` imports Docker and data set libraries (8 s, 180 MB) when it is imported, and grading needs none
    of them: it is put in place unexecuted.

    Raises:
        ImportError: the package is missing or older than 5.
    """
    spec = importlib.util.find_spec("swebench.harness")
    version = importlib.metadata.version("swebench")
    if spec is None or int(version.split(".")[0]) < 5:
        raise ImportError(f"version {version} is too old; 5 or newer is needed")
    harness = ModuleType("swebench.harness")
    harness.__path__ = list(spec.submodule_search_locations or ())
    sys.modules["swebench.harness"] = harness
    for name in UNUSED:
        sys.modules.setdefault(name, _Unused(name))
    return importlib.import_module("swebench.harness.grading"), importlib.import_module(
        "swebench.harness.utils"
    )


def answer(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an instance's evaluation script, or, for a log of it, the package's report."""
    try:
        grading, utils = import_package()
    except Exception as error:  # noqa: BLE001  (importing a foreign package may raise anything)
        missing = isinstance(error, ModuleNotFoundError | importlib.metadata.PackageNotFoundError)
        return {"missing" if missing else "broken": f"{type(error).__name__}: {error}"}
    row = question["row"]
    if row["log_parser"] not in grading.PARSER_REGISTRY:
        return {"parsers": sorted(grading.PARSER_REGISTRY)}
    spec = utils.make_test_spec(row)
    if "log" not in question:
        return {"script": spec.eval_script}
    prediction = {"instance_id": row["instance_id"], "model_patch": ""}
    try:
        report = grading.get_eval_report(spec, prediction, question["log"], include_tests_status=True)
    except Exception as error:  # noqa: BLE001  (a parser may fail in any way on a log that graded code wrote)
        return {"unreadable": f"{type(error).__name__}: {error}"}
    return {"report": report[row["instance_id"]]}


def main() -> None:
    """Answer one question."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # The package and what it imports print now and then.
    os.dup2(2, 1)
    json.dump(answer(json.load(sys.stdin)), replies)
    replies.close()


if __name__ == "__main__":
    main()
