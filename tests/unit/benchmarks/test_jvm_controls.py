"""Test methods of the JVM: found, marked, and joined by methods that must fail."""

import re

import pytest

from dgm.benchmarks.jvm_controls import (
    find_bases,
    find_cases,
    find_classes,
    find_framework,
    find_package,
    mark_files,
)

JUPITER = """\
package org.x;

import static org.junit.jupiter.api.Assertions.assertEquals;
import org.junit.jupiter.api.*;

class ParserTest {
    /* @Test void commented() {} */
    private static final String BRACES = "}}{ @Test void quoted() {}";

    @DisplayName("reads (all) { of it")
    @Test void reads() { assertEquals('{', parse("{")); }

    @ParameterizedTest(name = "{0}") @CsvSource({"a, 1", "b, 2"})
    public void each(String text, int number) {}

    @TestFactory Stream<Map<String, DynamicTest>> made() { return null; }

    @Nested class Inner {
        @Test void reads() {}
        @Test void helper() {}
        void use() { helper(); }
    }

    private char parse(String text) { return text.charAt(0); }
}
"""
OLD = """\
package org.x;
import junit.framework.TestCase;
public class OldTest extends TestCase {
    public void testReads() { assertEquals(1, 1); }
    public void testAll() { testOne(); }
    public void testOne() {}
}
"""
FOUR = """\
package org.x;
import org.junit.*;
import static org.junit.Assert.*;
import static org.assertj.core.api.Assertions.assertThat;
public class FourTest {
    @Test(expected = IllegalStateException.class) public void fails() { throw new IllegalStateException(); }
    @Override @Test public void inherited() {}
}
"""
KOTLIN = """\
package org.x

import kotlin.test.*

class `Odd name` {
    @Test
    fun `doesn't read "x"`() { assertEquals('{', "${map["{"]}"[0]) }

    @Test internal fun <T> plain() = run { }
}
"""
SPOCK = """\
package org.x
import spock.lang.Specification
class ReadSpec extends Specification {
    def "reads \\"x\\" of it"() { expect: 1 == 1 }
    def 'reads more'() { expect: true }
    def helper() { 1 }
}
"""
TESTNG = """\
import org.testng.annotations.Test;
@Test public class NgTest { @Test(groups = {"a"}) public void one() {} }
"""
WHOLE = """\
import org.testng.annotations.*;
@Test public class WholeTest {
    @BeforeMethod public void before() {}
    public void one() { Object it = new Object() { public void inner() {} }; }
    @Test(groups = "a") public void two() {}
    public int three() { return 3; }
}
class Other { public void four() {} }
"""
GROOVY = "class GTest extends GroovyTestCase { void testA() {} }\n"
INTERFACE = "import org.junit.jupiter.api.Test;\ninterface Contract {\n    @Test default void holds() {}\n}\n"


@pytest.mark.parametrize(
    ("text", "framework", "names"),
    [
        (JUPITER, "org.junit.jupiter", ["reads", "each", "made", "reads", "helper"]),
        (OLD, "junit", ["testReads", "testAll", "testOne"]),
        (FOUR, "org.junit", ["fails", "inherited"]),
        (KOTLIN, "kotlin.test", ['doesn\'t read "x"', "plain"]),
        (SPOCK, "spock", ['reads \\"x\\" of it', "reads more"]),
        (TESTNG, "org.testng", ["one"]),
        (WHOLE, "org.testng", ["one", "two"]),
        (GROOVY, "junit", ["testA"]),
        (INTERFACE, "org.junit.jupiter", ["holds"]),
        ("class Plain { void test() {} }", "", []),
    ],
)
def test_methods_are_found_by_their_framework(text, framework, names):
    assert find_framework(text) == framework
    assert [case.name for case in find_cases(text)] == names


def test_marks_leave_what_is_called_overridden_or_said():
    files = {"a/ParserTest.java": JUPITER, "OldTest.java": OLD, "FourTest.java": FOUR}
    marked = {file.name: file for file in mark_files(files, {}, "", ("dgm_1", 3, 7))}
    assert marked["a/ParserTest.java"].cases == ["each", "made", "reads"]
    assert marked["OldTest.java"].cases == ["testAll", "testReads"]
    assert marked["FourTest.java"].cases == ["fails"]
    for name, file in marked.items():
        assert len(file.text.split("\n")) == len(files[name].split("\n"))
    assert "public void testdgm_1_Reads()" in marked["OldTest.java"].text
    assert "@Test void dgm_1_reads() { assertEquals" in marked["a/ParserTest.java"].text


def test_a_name_that_another_class_overrides_is_the_same_in_both():
    files = {"A.java": FOUR.replace("@Override ", ""), "B.java": FOUR}
    assert [file.cases for file in mark_files(files, {}, "", ("m", 0, 1))] == [["fails"], ["fails"]]


@pytest.mark.parametrize(
    ("path", "text", "methods"),
    [
        ("ParserTest.java", JUPITER, r"@org\.junit\.jupiter\.api\.Test public void mc_0_(\w)\(\)"),
        ("OldTest.java", OLD, r"public void testmc_0_(\w)\(\)"),
        ("FourTest.java", FOUR, r"@org\.junit\.Test public void mc_0_(\w)\(\)"),
        ("Odd.kt", KOTLIN, r"@kotlin\.test\.Test fun mc_0_(\w)\(\)"),
        ("ReadSpec.groovy", SPOCK, r'def "mc_0_(\w)"\(\)'),
        ("NgTest.java", TESTNG, r"@org\.testng\.annotations\.Test public void mc_0_(\w)\(\)"),
        ("Contract.java", INTERFACE, r"@org\.junit\.jupiter\.api\.Test default void mc_0_(\w)\(\)"),
    ],
)
def test_methods_that_must_fail_stand_in_the_class_of_the_first_test(path, text, methods):
    (file,) = mark_files({path: text}, {}, "", ("m", 0, 7))
    assert "".join(re.findall(methods, file.text)) == file.letters
    assert len(file.letters) >= 2
    assert {case.name for case in find_cases(file.text)} >= {
        f"m_{name}" for name in file.cases if "test" not in name
    }


def test_assertions_that_a_file_imports_are_tried_too():
    (file,) = mark_files({"FourTest.java": FOUR}, {}, "", ("m", 0, 7))
    for body in (
        "assertThat(7).isEqualTo(7 + 1);",
        "{ assertEquals(7, 7 + 1); }",
        "{ assertTrue(7 == 7 + 1); }",
    ):
        assert body in file.text


def test_a_class_is_known_by_its_package():
    assert find_classes(JUPITER) == {"org.x.ParserTest", "org.x.Inner"}
    assert find_classes("class A {}") == {"A"}
    assert find_package("\ufeff/* of */ package org . `x`\n") == "org.x"


CALLED = """\
import org.testng.annotations.Test;
public class CalledTest {
    @Test public void first() {}
    @Test(dependsOnMethods = "first") public void second() {}
    @Test public void third() {}
    @Test public void fourth() { parser.fourth(); }
    @Test public void fifth() {}
    static void main(String[] words) { new CalledTest().third(); CalledTest it = null; it.fifth(); }
}
"""


def test_names_that_others_call_or_depend_on_stay():
    (file,) = mark_files({"CalledTest.java": CALLED}, {}, "", ("m", 0, 1))
    assert file.cases == ["fourth", "second"]


@pytest.mark.parametrize(
    ("base", "text", "framework", "names"),
    [
        ("class Base extends junit.framework.TestCase {}", OLD, "junit", ["testReads", "testAll", "testOne"]),
        ("class Base extends Specification {}", SPOCK, "spock", ['reads \\"x\\" of it', "reads more"]),
    ],
)
def test_a_test_class_may_inherit_by_another(base, text, framework, names):
    text = text.replace("import junit.framework.TestCase;\n", "")
    text = text.replace("extends TestCase", "extends Base").replace("extends Specification", "extends Base")
    bases = find_bases([text, base])
    assert find_framework(text, bases) == framework
    assert [case.name for case in find_cases(text, bases)] == names


def test_methods_that_must_fail_stand_in_the_outermost_class_of_tests():
    text = "import org.junit.Test;\n"
    text += (
        "class ATest {\n  static class Tried { @Test public void x() {} }\n  @Test public void y() {}\n}\n"
    )
    (file,) = mark_files({"ATest.java": text}, {}, "", ("m", 0, 7))
    assert file.text.split("\n")[1].startswith("class ATest { @org.junit.Test public void mc_0_a()")


def test_methods_that_must_fail_are_of_the_language():
    text = "import org.junit.Test\nclass ATest {\n  @Test def reads(): Unit = {}\n}\n"
    (file,) = mark_files({"ATest.scala": text}, {}, "", ("m", 0, 7))
    assert "@org.junit.Test def mc_0_a(): Unit = { org.junit.Assert.fail() };" in file.text
