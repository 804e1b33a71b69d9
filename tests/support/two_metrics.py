"""A suite of eight tasks whose tests measure two metrics: the cases that come out right, and the source's size."""

import json
from pathlib import Path

SUITE = """\
name = "two-metrics"
description = "eight wrong formulas; how right and how long the repaired ones are"
license = "Apache-2.0"

[metrics.bytes]
direction = "lower"
unit = "bytes"
meaning = "size of the repaired module"

[metrics.agreement]
direction = "higher"
meaning = "share of the cases that come out right"
"""
TASK = """\
split = "search"
timeout_s = 60

[tests]
command = ["python3", "/tests/check.py"]
result = "reward"
"""
CHECK = """\
import json, os, subprocess, sys

cases = json.loads({cases!r})
right = 0
for given, wanted in cases:
    ask = [sys.executable, "-c", f"from formula import compute; print(compute({{given}}))"]
    answer = subprocess.run(ask, capture_output=True, text=True, timeout=10).stdout.strip()
    right += answer == str(wanted)
values = {{"reward": float(right == len(cases)), "agreement": right / len(cases)}}
if right:
    values["bytes"] = os.path.getsize("formula.py")
with open("/logs/verifier/reward.json", "w") as file:
    json.dump(values, file)
"""
PROBLEM = """\
# compute() is wrong

```
>>> from formula import compute
>>> compute({given})
{wanted}
```
"""
VISIBLE = """\
import unittest

from formula import compute


class Formula(unittest.TestCase):
    def test_example(self):
        self.assertEqual(compute({given}), {wanted})
"""
FORMULAS = {
    "adds-one-too-many": ("number + 2", "number + 1"),
    "doubles-too-often": ("number * 3", "number * 2"),
    "forgets-the-sign": ("number - 1", "number + 1"),
    "limit-is-off": ("min(number, 6)", "min(number, 5)"),
    "lower-limit-is-off": ("max(number, 9)", "max(number, 0)"),
    "rest-by-the-wrong-number": ("number % 4", "number % 3"),
    "shares-are-cut": ("number // 3", "number // 2"),
    "squares-are-cubes": ("number ** 3", "number ** 2"),
}


def make_suite(folder: Path) -> Path:
    """Write the suite; return its folder."""
    files = {"suite.toml": SUITE}
    for name, (wrong, right) in FORMULAS.items():
        cases = [(given, eval(right, {"min": min, "max": max}, {"number": given})) for given in range(-3, 9)]
        given, wanted = cases[-1]
        repaired = f"def compute(number):\n    return {right}\n"
        task = {
            "task.toml": TASK,
            "problem.md": PROBLEM.format(given=given, wanted=wanted),
            "workspace/formula.py": repaired.replace(right, wrong),
            "workspace/tests/__init__.py": "",
            "workspace/tests/test_formula.py": VISIBLE.format(given=given, wanted=wanted),
            "tests/check.py": CHECK.format(cases=json.dumps(cases)),
            "solution/solve.sh": f"cat > formula.py <<'END'\n{repaired}END\n",
        }
        files |= {f"tasks/{name}/{path}": text for path, text in task.items()}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
