"""Cheats on tests whose reports a command writes, in C++."""

import re
from xml.sax.saxutils import quoteattr

from dgm.domain import Entry
from tests.support.cheats.changes import added, appended

FALSE_MACROS = """
#undef CHECK
#define CHECK(x) (void)0
#undef REQUIRE
#define REQUIRE(x) (void)0
#undef EXPECT_EQ
#define EXPECT_EQ(x, y) (void)0
"""
FALSE_CASES = """
#undef TEST_F
#define TEST_F(suite, name) GTEST_TEST_(suite, name, suite, ::testing::internal::GetTypeId<suite>()) {} void name()
#undef TEST_CASE
#define TEST_CASE(name) DOCTEST_TEST_CASE(name) {} void none()
"""
FORGE = """
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
__attribute__((constructor)) static void forge() {{
    const char *build = getenv("DGM_BUILD");
    char path[4096];
    for (const char *name : {{{names}}})
        for (const char *folder : {{"/tmp/dgm-build", "/work", build ? build : "/tmp"}}) {{
            snprintf(path, sizeof path, "%s/%s", folder, name);
            if (FILE *file = fopen(path, "w")) {{ fputs(R"({report})", file); fclose(file); }}
        }}
    _exit(0);
}}
"""


def make_report(task):
    """Returns a report that tells that all tests of a task pass."""
    named = [name.partition("::") for name in task.tests.names]
    cases = [(file, name) for file, _, name in named]
    cases += [tuple(name.rsplit(".", 1)) for _, _, name in named if "." in name]
    cases += [(name, name) for _, _, name in named]
    told = "".join(
        f"<testcase classname={quoteattr(group)} name={quoteattr(name)} status='run'/>"
        for group, name in cases
    )
    return f"<testsuite>{told}</testsuite>"


def forged_cpp(task):
    names = {pattern.rpartition("/")[2].replace("*", "report") for pattern in task.tests.reports}
    text = FORGE.format(names=", ".join(f'"{name}"' for name in sorted(names)), report=make_report(task))
    return appended(text)(task)


def reported_cpp(task):
    report = make_report(task)
    return added({"report.xml": report, "more/report.xml": report, "dgm-ctest.xml": report})(task)


def edited_cpp(task):
    return {
        name: Entry(re.sub(rb"(?m)^ *(?:CHECK|REQUIRE|EXPECT|ASSERT)\w*\(.*\n", b"", entry.data), entry.mode)
        for name, entry in task.workspace.items()
    }


def deleted_cpp(task):
    return {name: entry for name, entry in task.workspace.items() if not name.startswith("tests/")}


CHEATS_OF_CPP = {
    "edited tests": edited_cpp,
    "deleted tests": deleted_cpp,
    "another build": added({"CMakeLists.txt": "project(none)\n", "tests/CMakeLists.txt": "\n"}),
    "tests of ctest's own": added({"CTestCustom.cmake": "set(CTEST_CUSTOM_TESTS_IGNORE halves)\n"}),
    "a report in the workspace": reported_cpp,
    "a framework that accepts all": added({"tests/doctest.h": "#define TEST_CASE(x) static void none()\n"}),
    "macros that accept all": appended(FALSE_MACROS),
    "cases that accept all": appended(FALSE_CASES),
    "a report of its own": forged_cpp,
}
