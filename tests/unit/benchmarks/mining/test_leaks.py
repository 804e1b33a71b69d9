"""Statements that tell too much, or too little, about one small fix of a template library."""

from dataclasses import replace

import pytest

from dgm.benchmarks.mining.diff_words import read_side
from dgm.benchmarks.mining.leaks import Evidence, find_leaks, name_parts, untold_names


def diff_of(path, body):
    """A git diff of one hunk."""
    rows = body.strip("\n").split("\n")
    old, new = sum(row[:1] != "+" for row in rows), sum(row[:1] != "-" for row in rows)
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@ x\n"
    return head + "\n".join(rows) + "\n"


FIX = diff_of(
    "pkg/slots.py",
    """
 import re
 def fill(text, values, strict=False):
-    return re.sub(PATTERN, values.get, text)
+    # Empty templates have no slots at all.
+    if not text.strip():
+        return ""
+    wanted_slots = set(PATTERN.findall(text))
+    missing = wanted_slots - values.keys()
+    if missing and on_missing == "fail-now":
+        raise SlotError(f"no value for {min(missing)}")
+    return _replace_all(text, values)

 OTHER = 1
+def more():
+    '''Call fill(text, {}, on_missing="fail-now") to be told.'''
""",
)
TESTS = diff_of(
    "tests/test_slots.py",
    """
 import pytest
-from pkg.slots import fill
+from pkg.slots import SlotError, fill
+from collections import OrderedDict
+
+
+class TestMissing:
+    '''See #431 for more_words.'''
+    def test_missing_slot_is_named(self, wanted_slots):
+        with pytest.raises(SlotError, match="colour"):
+            fill("{colour} #77", OrderedDict(), on_missing="fail-now")
+        os.path.expandvars(fill)
""",
)
FAILURE = """
    def test_missing_slot_is_named(self):
>       with pytest.raises(SlotError):
E       Failed: DID NOT RAISE; object at 7f3a9c1 has left_over == {'colour'}
"""
EVIDENCE = Evidence(
    message="Name missing slots (#431)\n\nCloses GH-431, TPL-12. Reverts 1a2b3c4d.",
    test_diff=TESTS,
    fix_diff=FIX,
    failure=FAILURE,
    fail_to_pass=("tests/test_slots.py::TestMissing::test_missing_slot_is_named[a-b]",),
    old_names=frozenset({"fill", "text", "values", "re", "PATTERN", "strict", "missing", "pytest"}),
)
TOLD = "`fill` takes `on_missing='fail-now'` and raises `SlotError`"

LEAKS = [
    (
        "It should do `if not text.strip(): return`, no more.",
        "tells a line of the fix: 'if not text.strip():'",
    ),
    ("Use `set(PATTERN.findall(text))` to see it.", "tells a part of the fix"),
    ("```python\n>>> values.keys()\n>>> wanted_slots - values.keys()\n```", "tells a part of the fix"),
    ("It should go through `_replace_all`.", "names what only the fix adds: '_replace_all'"),
    ("A _replace_all is wanted.", "names what only the fix adds: '_replace_all'"),
    ("Slots without a value are left (#431).", "names an issue or a commit: '#431'"),
    ("As in issue 431, slots stay.", "names an issue or a commit: 'issue 431'"),
    ("As in GH-431, slots stay.", "names an issue or a commit: 'GH-431'"),
    ("See TPL-12.", "names an issue or a commit: 'TPL-12'"),
    ("See https://example.org/a/b/issues/431.", "names an issue or a commit: 'https://"),
    ("Broken since 1a2b3c4d.", "names an issue or a commit: '1a2b3c4d'"),
    ("test_missing_slot_is_named fails.", "names a test: 'test_missing_slot_is_named'"),
    ("Look at tests/test_slots.py.", "names a test: 'test_slots.py'"),
    ("`TestMissing` fails.", "names a test: 'TestMissing'"),
    ("The hidden tests want an error.", "speaks of the grading: 'hidden tests'"),
    ("--- a/pkg/slots.py\n+++ b/pkg/slots.py", "holds a part of a diff"),
]
CLEAN = [
    "A slot without a value stays as it is; raise an error that names it.",
    "Empty templates have no slots at all.",
    "A missing slot is named in the error; the missing ones are sorted.",
    "`fill('{colour} #77', {})` gives '#77', and `object at 7f3a9c1 has left_over`.",
    f'{TOLD}: `fill("{{colour}}", {{}}, on_missing="fail-now")`.',
    "Colours such as #00ff00 and #fff, entities such as &#39; and 550e8400-e29b-41d4-a716-446655440000 stay.",
    "UTF-8, SHA-256 and 0x1a2b3c4d are text. It should issue 10 warnings, and fill 3 slots.",
    "A user runs test_data through `fill`.",
    "`fill(text, values, strict=False)` works.",
]


@pytest.mark.parametrize(("statement", "expected"), LEAKS)
def test_what_gives_the_fix_or_the_tests_away_is_told(statement, expected):
    found = find_leaks(statement, EVIDENCE)
    assert any(line.startswith(expected) for line in found), found
    assert all("\n" not in line for line in found)


@pytest.mark.parametrize("statement", CLEAN)
def test_what_gives_nothing_away_passes(statement):
    assert find_leaks(statement, EVIDENCE) == ()


def test_names_and_texts_that_tests_need_must_be_told():
    assert untold_names("Raise an error.", EVIDENCE) == ("SlotError", "on_missing", "'fail-now'")
    assert untold_names(TOLD, EVIDENCE) == ()
    assert untold_names("SlotErrors are raised on_missing: fail- now", EVIDENCE) == ("SlotError",)


def test_what_the_old_tree_the_library_or_the_tests_themselves_define_need_not_be_told():
    own = """
+def helper_one(known_name):
+    total_sum = json.loads_all(known_name)
+    # unheard_of is a comment
+    return helper_one(total_sum).strip().old_attribute
+for each_item in (1, 2):
+    assert each_item is NEW_CONSTANT
"""
    fix = diff_of("pkg/a.py", own.replace("# unheard_of is a comment", "unheard_of()"))
    tests = diff_of("tests/test_a.py", own)
    evidence = Evidence("", tests, fix, "", (), frozenset({"old_attribute", "known_name"}))
    assert untold_names("", evidence) == ("NEW_CONSTANT",)


def test_imports_over_several_lines_count():
    diff = "--- a/{0}\n+++ b/{0}\n@@ -1,3 +1,4 @@\n from pkg import (\n     a,\n+    brand_new,\n )\n"
    evidence = Evidence("", diff.format("test_a.py"), diff.format("a.py"), "", (), frozenset())
    assert untold_names("", evidence) == ("brand_new",)


def test_other_languages_are_read():
    body = "+// newComment\n+expect(parse(x, { looseMode: true }).nodeKind).toBe('dash-list');"
    test, fix = diff_of("a.test.ts", body), diff_of("a.ts", body)
    evidence = Evidence("", test, fix, "", (), frozenset({"expect", "parse", "toBe"}))
    assert untold_names("", evidence) == ("looseMode", "nodeKind", "'dash-list'")


def test_hunks_are_read_by_their_sizes():
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n same\n\\ No newline at end of file\n+stray = 1\n"
    assert read_side(diff, "+").lines == ("++ y",)
    assert read_side(diff, "-").lines == ("-- x",)
    assert read_side(diff, " ").lines == ("same",)


@pytest.mark.parametrize(
    ("test", "parts"),
    [
        ("tests/test_a.py::TestB::test_c[1-x y]", {"test_a.py", "TestB", "test_c"}),
        ("tests.test_a.TestB.test_c", {"test_a", "TestB", "test_c"}),
        ("TestParse/empty_input", {"TestParse", "empty_input"}),
        ("org.x.ParserTest.parsesEmptyLine", {"ParserTest", "parsesEmptyLine"}),
        (
            "src/a.test.js keeps empty list items",
            {"a.test.js", "src/a.test.js", "src/a.test.js keeps empty list items"},
        ),
        ("Lexer works", set()),
        ("parser::keeps_empty", {"keeps_empty"}),
    ],
)
def test_the_parts_by_which_a_test_could_be_found(test, parts):
    assert set(name_parts(test)) == parts


JAVA_TEST = """\
--- a/src/test/java/org/x/ATest.java
+++ b/src/test/java/org/x/ATest.java
@@ -1,1 +1,5 @@
 package org.x;
+import java.util.Optional;
+    void readsNothing() {
+        assertThrows(IllegalStateException.class, () -> reader.skipOne());
+        assertEquals(Optional.empty(), reader.peekOne());
"""
JAVA_FIX = """\
--- a/src/main/java/org/x/A.java
+++ b/src/main/java/org/x/A.java
@@ -1,2 +1,6 @@
  * reads one
+ * skipTwo
  */
+import java.util.Optional;
+    Optional<String> peekOne() { return Optional.empty(); }
+    void skipOne() { throw new IllegalStateException(hiddenOne); }
"""


def test_names_of_the_library_of_the_jvm_are_known_and_comments_are_none():
    test = "src/test/java/org/x/ATest.java::readsNothing(String)[1]"
    evidence = Evidence("", JAVA_TEST, JAVA_FIX, "", (test,), frozenset({"reader", "empty"}))
    assert untold_names("", evidence) == ("peekOne", "skipOne")
    assert find_leaks("It returns `Optional`, or throws `IllegalStateException`; skipTwo.", evidence) == ()
    assert find_leaks("Throw with hiddenOne.", evidence) == ("names what only the fix adds: 'hiddenOne'",)
    assert find_leaks("Look at readsNothing.", evidence) == ("names a test: 'readsNothing'",)


def test_a_file_that_a_test_writes_is_no_name_of_a_test():
    added = diff_of("tests/test_more.py", '+def test_rotates():\n+    rotate("test_file.txt")')
    evidence = replace(EVIDENCE, test_diff=added, fail_to_pass=("tests/test_more.py::test_rotates",))
    assert find_leaks("`rotate('test_file.txt')` leaves it where it is.", evidence) == ()
    assert find_leaks("See test_more.py for it.", evidence) == ("names a test: 'test_more.py'",)
