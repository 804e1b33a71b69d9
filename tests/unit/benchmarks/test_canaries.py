"""Patches that end their process with status 0."""

import pytest

from dgm.archive.repository import patch as patch_between
from dgm.benchmarks.verification import AT_ONCE, AT_THE_END, make_canaries
from dgm.domain import Entry

pytestmark = pytest.mark.starts_processes

OLD = {
    "a.py": Entry(b"x = 1\n"),
    "b.py": Entry(b"y = 1\n"),
    "c.js": Entry(b"z = 1\n"),
    "d.sh": Entry(b"w=1\n"),
}


def canaries(**changed):
    after = {name.replace("_", "."): Entry(text) for name, text in changed.items()}
    return make_canaries(OLD, patch_between(OLD, {**OLD, **after}))


def test_each_file_that_the_fix_touches_ends_its_process_first():
    at_once, at_the_end = canaries(a_py=b"x = 2\n", c_js=b"z = 2\n")
    assert (at_once.when, at_the_end.when) == (AT_ONCE, AT_THE_END)
    assert b"b.py" not in at_once.patch
    for line in (b"+import os\n+os._exit(0)\n x = 1\n", b"+process.exit(0);\n z = 1\n"):
        assert line in at_once.patch
    assert b"+atexit.register(os._exit, 0)\n x = 1\n" in at_the_end.patch


def test_file_that_the_fix_adds_counts_too():
    assert b"+++ b/new.py\n@@ -0,0 +1,2 @@\n+import os\n+os._exit(0)\n" in canaries(new_py=b"x\n")[0].patch


def test_imports_from_the_future_stay_the_first():
    before = {"a.py": Entry(b'"""Doc."""\nfrom __future__ import annotations\nx = 1\n')}
    fix = patch_between(before, {"a.py": Entry(b"x = 2\n")})
    assert (
        b" from __future__ import annotations\n+import os\n+os._exit(0)\n x"
        in make_canaries(before, fix)[0].patch
    )


@pytest.mark.parametrize("changed", [{"d_sh": b"w=2\n"}, {}])
def test_fix_in_another_language_has_none(changed):
    assert canaries(**changed) == []
