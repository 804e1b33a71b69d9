"""The script that runs a problem's example outside the repository and reports whether its result is right."""

import json
import re
from functools import lru_cache

from dgm.offline.statement import Example

PATH = "/tmp/reproduction.py"
RUN = f"python3 {PATH}"
_OUTCOME = re.compile(r"^REPRO (OK|FAIL)\b", re.M)

_SCRIPT = """import os, sys, traceback
sys.path.insert(0, os.getcwd())
lines, expected, raises = {lines}, {expected}, {raises}
here, ran, scope = os.getcwd() + os.sep, {{}}, {{}}


def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(here):
        ran[(code.co_filename[len(here):], code.co_firstlineno, code.co_name)] = True


outcome = ""
try:
    for line in lines[:-1]:
        exec(line, scope)
    sys.setprofile(note)
    try:
        try:
            last = compile(lines[-1], "example", "eval")
        except SyntaxError:
            last = compile(lines[-1], "example", "exec")
        outcome = repr(eval(last, scope))
    finally:
        sys.setprofile(None)
    good = not raises and outcome == expected
except Exception as error:
    outcome = type(error).__name__
    good = raises and outcome == expected.split(".")[-1]
    if not good:
        traceback.print_exc(file=sys.stdout)
print("REPRO " + ("OK" if good else "FAIL: got " + outcome[:300]))
for path, first, name in list(ran)[:60]:
    print("ran %s:%d %s" % (path, first, name))
"""


def command(example: Example) -> str:
    """Return the shell command that writes the script and runs it."""
    script = _SCRIPT.format(
        lines=json.dumps(list(example.lines)), expected=json.dumps(example.expected), raises=example.raises
    )
    return f"cat > {PATH} <<'END_OF_SCRIPT'\n{script}END_OF_SCRIPT\n{RUN}"


@lru_cache(maxsize=256)
def outcome(text: str) -> bool | None:
    """Return whether the last run of the script in this output was good; ``None`` if none is shown."""
    found = _OUTCOME.findall(text)
    return found[-1] == "OK" if found else None
