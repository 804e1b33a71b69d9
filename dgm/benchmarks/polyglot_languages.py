"""The six languages."""

import re
from collections.abc import Mapping

from dgm.benchmarks import polyglot_compiled as compiled
from dgm.benchmarks import polyglot_scripted as scripted
from dgm.benchmarks.polyglot_plan import Language
from dgm.benchmarks.polyglot_reports import catch_xml, go_lines, junit_xml, reporter_lines, rust_lines

_LANGUAGES = (
    Language(
        name="cpp",
        title="C++",
        hidden=re.compile(r".*_test\.cpp|test/.*"),
        test_file=re.compile(r".*_test\.cpp"),
        expected=compiled.cpp_names,
        plan=compiled.cpp_plan,
        read=catch_xml,
    ),
    Language(
        name="go",
        title="Go",
        hidden=re.compile(r".*_test\.go"),
        test_file=re.compile(r"[^/]*_test\.go"),
        expected=compiled.go_names,
        plan=compiled.go_plan,
        read=go_lines,
    ),
    Language(
        name="java",
        title="Java",
        hidden=re.compile(r"src/test/.*"),
        test_file=re.compile(r"src/test/.*Test\.java"),
        expected=compiled.java_names,
        plan=compiled.java_plan,
        read=junit_xml,
    ),
    Language(
        name="javascript",
        title="JavaScript",
        hidden=re.compile(r".*\.(?:spec|test)\.js"),
        test_file=re.compile(r".*\.(?:spec|test)\.js"),
        expected=scripted.js_names,
        plan=scripted.js_plan,
        read=reporter_lines,
    ),
    Language(
        name="python",
        title="Python",
        hidden=re.compile(r"(?:.*/)?(?:[^/]*_test|test_[^/]*)\.py"),
        test_file=re.compile(r"(?:.*/)?(?:[^/]*_test|test_[^/]*)\.py"),
        expected=scripted.python_names,
        plan=scripted.python_plan,
        read=reporter_lines,
    ),
    Language(
        name="rust",
        title="Rust",
        hidden=re.compile(r"tests/.*"),
        test_file=re.compile(r"tests/[^/]*\.rs"),
        expected=compiled.rust_names,
        plan=compiled.rust_plan,
        read=rust_lines,
    ),
)
LANGUAGES: Mapping[str, Language] = {language.name: language for language in _LANGUAGES}
"""By the name of their folder."""
