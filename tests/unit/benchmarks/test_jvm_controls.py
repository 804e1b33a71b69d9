"""Test methods of the JVM: found, and joined by one that must fail."""

import pytest

from dgm.benchmarks.jvm_controls import (
    add_controls,
    find_bases,
    find_cases,
    find_classes,
    find_framework,
    find_package,
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


def test_a_class_is_known_by_its_package():
    assert find_classes(JUPITER) == {"org.x.ParserTest", "org.x.Inner"}
    assert find_classes("class A {}") == {"A"}
    assert find_package("\ufeff/* of */ package org . `x`\n") == "org.x"


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


@pytest.mark.parametrize(
    ("path", "text", "method"),
    [
        ("ParserTest.java", JUPITER, "@org.junit.jupiter.api.Test public void mc_0() { "),
        ("OldTest.java", OLD, " public void testmc_0() { assertEquals(7, 7 + 1); };"),
        (
            "FourTest.java",
            FOUR,
            "@org.junit.Test public void mc_0() { org.junit.Assert.assertEquals(7, 7 + 1); };",
        ),
        ("Odd.kt", KOTLIN, "@kotlin.test.Test fun mc_0() { kotlin.test.assertEquals(7, 7 + 1) };"),
        ("ReadSpec.groovy", SPOCK, 'def "mc_0"() { expect: assert 7 == 7 + 1 };'),
        ("NgTest.java", TESTNG, "@org.testng.annotations.Test public void mc_0() { "),
        ("Contract.java", INTERFACE, "@org.junit.jupiter.api.Test default void mc_0() { "),
        (
            "ATest.scala",
            "import org.junit.Test\nclass ATest {\n  @Test def reads(): Unit = {}\n}\n",
            "@org.junit.Test def mc_0(): Unit = { org.junit.Assert.assertEquals(7, 7 + 1) };",
        ),
    ],
)
def test_a_method_that_must_fail_stands_in_the_outermost_class_of_tests(path, text, method):
    ((name, laid),) = add_controls({path: text}, ("m", 0, 7))
    assert name == path
    assert laid.count(method) == 1
    assert len(laid.split("\n")) == len(text.split("\n"))
