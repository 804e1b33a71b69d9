"""The tasks of the golden verdicts as the files of one suite, one task for each way of grading."""

import json
from collections.abc import Mapping

from tests.support.named_suite import FAIL, FIX, HIDDEN, PASS, START
from tests.support.suite_on_disk import FILES, TASK

HEAD = 'name = "golden"\ndescription = "one task a grader"\nlicense = "Apache-2.0"\n[defaults]\ntest_timeout_s = 20\n'
TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
TABLE = """\
import pytest
from sums import half, twice


def test_twice():
    assert twice(2) == 4


@pytest.mark.parametrize(("number", "wanted"), [(4, 2), (10, 5), (20, 10), (0, 0)])
def test_half(number, wanted):
    assert half(number) == wanted


def test_several():
    assert [half(n) for n in (6, 8)] == [3, 4]
    assert half(100) == 50
"""
TABLE_FAIL = (
    *(f"tests/test_sums.py::test_half[{row}]" for row in ("4-2", "10-5", "20-10")),
    "tests/test_sums.py::test_several",
)
WRONG = "def grams(kilos):\n    return kilos * 100\n"
RIGHT = WRONG.replace("100", "1000")
UNIT = """\
import unittest

from scale import grams


class Grams(unittest.TestCase):
    def test_two(self):
        self.assertEqual(grams(2), 2000)

    def test_many(self):
        for weight in (3, 7, 12, -4):
            self.assertEqual(grams(weight), 10 * 100 * weight)
"""
ASKING = """\
import subprocess
import sys

ASK = "from scale import grams; print([grams(weight) for weight in (2, 5, 7)])"
told = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=5)
sys.exit(0 if told.stdout.strip() == str([2000, 5000, 7000]) else 1)
"""
UNITTEST = "python3 -m unittest discover -s /tests -t /tests"
REWARD = "export PYTHONPATH=.\nif {}; then N=1; else N=0; fi\necho $N >/logs/verifier/reward.txt\n"
EXIT = 'command = ["sh", "/tests/test.sh"]\nenv = { PYTHONPATH = "." }\n'
SHARE = """\
import json
from scale import grams
right = sum(grams(n) == 1000 * n for n in (1, 2, 3, 4)) / 4
open("/logs/verifier/reward.json", "w").write(json.dumps({"reward": right}))
"""
COMMANDS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "exit-imports": (EXIT, {"test_grams.py": UNIT, "test.sh": UNITTEST}),
    "exit-apart": (EXIT, {"check.py": ASKING, "test.sh": "exec python3 /tests/check.py\n"}),
    "reward-imports": ('result = "reward"\n', {"test_grams.py": UNIT, "test.sh": REWARD.format(UNITTEST)}),
    "reward-apart": (
        'result = "reward"\n',
        {"check.py": ASKING, "test.sh": REWARD.format("python3 /tests/check.py")},
    ),
    "reward-share": (
        'result = "reward"\nthreshold = 0.75\ncommand = ["python3", "/tests/share.py"]\nenv = { PYTHONPATH = "." }\n',
        {"share.py": SHARE},
    ),
    "reward-script": ('result = "reward"\n', {"test.sh": "cd /work/repo\n. ./reward.sh\n"}),
}


def unit_files() -> Mapping[str, str]:
    """Return tasks of ``unittest``: hurried, with a second visible module, and where tests/ is no package, too."""
    place = f"tasks/{TASK}/"
    files = {name: text for name, text in FILES.items() if name != "suite.toml"}
    own = {name.removeprefix(place): text for name, text in files.items() if name.startswith(place)}
    more = "import unittest\nfrom sums import double\n\n\nclass More(unittest.TestCase):\n    def test_a(self):\n"
    settings = own["task.toml"]
    changes = {
        "unit-hurried": f"test_timeout_s = 2\n{settings}",
        "unit-later": settings.replace('repo = "sums"', 'repo = "later"').replace(
            '"tests/test_sums.py::S', '"tests/test_more.py::More::test_a", "tests/test_sums.py::S'
        ),
        "unit-bare": settings.replace('repo = "sums"', 'repo = "bare"'),
    }
    for task, text in changes.items():
        files |= {f"tasks/{task}/{name}": text_ for name, text_ in own.items()} | {
            f"tasks/{task}/task.toml": text
        }
    repo = {name.split("/", 2)[2]: text for name, text in files.items() if name.startswith("repos/sums/")}
    files |= {f"repos/later/{name}": text for name, text in repo.items()}
    files |= {"repos/later/tests/test_more.py": more + "        self.assertEqual(double(4), 8)\n"}
    files |= {f"repos/bare/{name}": text for name, text in repo.items() if name != "tests/__init__.py"}
    return files


def named_files(task: str, environment: str, hidden: str, fail: tuple[str, ...]) -> Mapping[str, str]:
    """Return a task whose tests pytest runs by name."""
    place = f"tasks/{task}"
    settings = (
        f'split = "search"\nenvironment = "{environment}"\nfail_to_pass = {json.dumps(fail)}\n'
        f'pass_to_pass = {json.dumps(PASS)}\n[tests]\nrunner = "pytest"\ndeleted = ["tests/test_old.py"]\n'
    )
    return {
        f"{place}/task.toml": settings,
        f"{place}/problem.md": "half(4) is 1\n",
        f"{place}/solution.patch": FIX,
        f"{place}/tests/tests/test_sums.py": hidden,
        **{f"{place}/workspace/{name}": text for name, text in START.items()},
    }


def command_files() -> Mapping[str, str]:
    """Return the tasks that a command grades."""
    text_patch = "--- a/text.txt\n+++ b/text.txt\n@@ -3,3 +3,3 @@\n three\n-four\n+FOUR\n five\n"
    files = {
        "tasks/text/task.toml": 'split = "search"\n[tests]\ncommand = ["grep", "-q", "FOUR", "text.txt"]\n',
        "tasks/text/problem.md": "four is small\n",
        "tasks/text/workspace/text.txt": TEXT,
        "tasks/text/solution.patch": text_patch,
        "tasks/text/tests/none": "",
    }
    files |= {name.replace("/text/", "/text-crlf/"): text for name, text in files.items()}
    files["tasks/hang/task.toml"] = (
        'split = "search"\ntest_timeout_s = 1\n[tests]\ncommand = ["sh", "wait.sh"]\n'
    )
    files |= {
        "tasks/hang/problem.md": "",
        "tasks/hang/workspace/wait.sh": "exit 1\n",
        "tasks/hang/tests/none": "",
    }
    files["tasks/text-crlf/workspace/text.txt"] = TEXT.replace("\n", "\r\n")
    fix = "--- a/scale/__init__.py\n+++ b/scale/__init__.py\n@@ -1,2 +1,2 @@\n def grams(kilos):\n"
    for task, (settings, tests) in COMMANDS.items():
        files |= {
            f"tasks/{task}/task.toml": f'split = "search"\ntest_timeout_s = 8\n[tests]\n{settings}',
            f"tasks/{task}/problem.md": "# Weights in grams are too small\n",
            f"tasks/{task}/workspace/scale/__init__.py": WRONG,
            f"tasks/{task}/solution.patch": f"{fix}-    return kilos * 100\n+    return kilos * 1000\n",
            **{f"tasks/{task}/tests/{name}": text for name, text in tests.items()},
        }
    return files


def golden_files(environment: str) -> Mapping[str, str]:
    """Return the whole suite; ``environment`` holds pytest."""
    return {
        "suite.toml": HEAD,
        **unit_files(),
        **named_files("named", environment, HIDDEN["tests/test_sums.py"], FAIL),
        **named_files("named-table", environment, TABLE, TABLE_FAIL),
        **command_files(),
    }
