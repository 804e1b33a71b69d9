"""Runs the graded module in a process of its own and looks at what it answers."""

import json
import subprocess
import sys

CASES = {("A b a", 1): {"a": 2, "b": 1}, ("", 1): {}, ("xy x XY", 2): {"xy": 2}, ("ab abc", 3): {"abc": 1}}
ASK = "import json, sys; from wordcount import count; print(json.dumps(count(sys.argv[1], int(sys.argv[2]))))"

for (text, least), expected in CASES.items():
    asked = [sys.executable, "-c", ASK, text, str(least)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = done.stderr.strip()[-200:]
    if answer != expected:
        sys.exit(f"FAIL: {text!r}: {answer!r}")
