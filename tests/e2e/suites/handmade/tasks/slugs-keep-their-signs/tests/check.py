"""Leaves the share of titles that are right as the reward."""

import json
import subprocess
import sys
from pathlib import Path

CASES = {"Hello, World!": "hello-world", "a  b": "a-b", "-x-": "x", "Version 2.0": "version-2-0"}
ASK = "import sys; from slug import slug; print(slug(sys.argv[1]))"


def right(title, expected):
    asked = [sys.executable, "-c", ASK, title]
    return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False).stdout.strip() == expected


share = sum(right(*case) for case in CASES.items()) / len(CASES)
Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": share}))
