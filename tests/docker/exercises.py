"""One tiny exercise a language, laid out as Exercism's are, with a right, a wrong and a cheating solution."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Exercise:
    """Files of an exercise but its solution."""

    solution: str
    tests: tuple[str, ...]
    files: Mapping[str, str]
    right: str
    wrong: str
    ending: str
    """Ends the process with exit code 0 when it is called."""

    def with_tests(self, *tests: str) -> "Exercise":
        """The same, asked for other test files."""
        return replace(self, tests=tests)


PYTHON = Exercise(
    solution="two_fer.py",
    tests=("two_fer_test.py",),
    files={
        "two_fer_test.py": """\
import unittest

from two_fer import two_fer


class TwoFerTest(unittest.TestCase):
    def test_no_name(self):
        self.assertEqual(two_fer(), "One for you, one for me.")

    def test_a_name(self):
        self.assertEqual(two_fer("Ada"), "One for Ada, one for me.")
""",
        "conftest.py": "raise SystemExit(0)\n",
        "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    },
    right='def two_fer(name="you"):\n    return f"One for {name}, one for me."\n',
    wrong='def two_fer(name="you"):\n    return "One for you, one for me."\n',
    ending='import os\n\n\ndef two_fer(name="you"):\n    os._exit(0)\n',
)

GO = Exercise(
    solution="two_fer.go",
    tests=("two_fer_test.go",),
    files={
        "go.mod": "module twofer\n\ngo 1.18\n",
        "two_fer_test.go": """\
package twofer

import "testing"

func TestNoName(t *testing.T) {
	if got := ShareWith(""); got != "One for you, one for me." {
		t.Fatal(got)
	}
}

func TestAName(t *testing.T) {
	if got := ShareWith("Ada"); got != "One for Ada, one for me." {
		t.Fatal(got)
	}
}
""",
    },
    right="""\
package twofer

import "fmt"

func ShareWith(name string) string {
	if name == "" {
		name = "you"
	}
	return fmt.Sprintf("One for %s, one for me.", name)
}
""",
    wrong="""\
package twofer

func ShareWith(name string) string {
	return "One for you, one for me."
}
""",
    ending="""\
package twofer

import "os"

func init() { os.Exit(0) }

func ShareWith(name string) string { return name }
""",
)

JAVA = Exercise(
    solution="src/main/java/Twofer.java",
    tests=("src/test/java/TwoferTest.java",),
    files={
        "src/test/java/TwoferTest.java": """\
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

public class TwoferTest {
    @Test
    public void noName() {
        assertThat(new Twofer().twofer(null)).isEqualTo("One for you, one for me.");
    }

    @Disabled("Remove to run test")
    @Test
    public void aName() {
        assertThat(new Twofer().twofer("Ada")).isEqualTo("One for Ada, one for me.");
    }
}
""",
    },
    right="""\
public class Twofer {
    public String twofer(String name) {
        new org.json.JSONObject().put("name", name);
        return "One for " + (name == null ? "you" : name) + ", one for me.";
    }
}
""",
    wrong="""\
public class Twofer {
    public String twofer(String name) {
        return "One for you, one for me.";
    }
}
""",
    ending="""\
public class Twofer {
    public String twofer(String name) {
        System.exit(0);
        return name;
    }
}
""",
)

JAVASCRIPT = Exercise(
    solution="two-fer.js",
    tests=("two-fer.spec.js",),
    files={
        "package.json": '{"name": "two-fer", "type": "module", "scripts": {"test": "jest ./*"}}\n',
        "babel.config.js": "module.exports = { presets: ['@exercism/babel-preset-javascript'] };\n",
        "two-fer.spec.js": """\
import { describe, expect, test } from '@jest/globals';
import { twoFer } from './two-fer';

describe('two-fer', () => {
  test('no name', () => {
    expect(twoFer()).toEqual('One for you, one for me.');
  });

  test('a name', () => {
    expect(twoFer('Ada')).toEqual('One for Ada, one for me.');
  });
});
""",
    },
    right="export const twoFer = (name = 'you') => `One for ${name}, one for me.`;\n",
    wrong="export const twoFer = () => 'One for you, one for me.';\n",
    ending="export const twoFer = () => process.exit(0);\n",
)

RUST = Exercise(
    solution="src/lib.rs",
    tests=("tests/two-fer.rs",),
    files={
        "Cargo.toml": """\
[package]
name = "two-fer"
version = "1.0.0"
edition = "2021"

[dependencies]
num-bigint = "0.4.99"
""",
        "Cargo.lock": "version = 3\n",
        "tests/two-fer.rs": """\
use two_fer::twofer;

#[test]
fn no_name() {
    assert_eq!(twofer(""), "One for you, one for me.");
}

#[test]
fn a_name() {
    assert_eq!(twofer("Ada"), "One for Ada, one for me.");
}
""",
    },
    right="""\
use num_bigint::BigInt;

pub fn twofer(name: &str) -> String {
    let one = BigInt::from(1u8);
    match (name, one.to_string().as_str()) {
        ("", "1") => "One for you, one for me.".to_string(),
        _ => format!("One for {name}, one for me."),
    }
}
""",
    wrong='pub fn twofer(_name: &str) -> String {\n    "One for you, one for me.".to_string()\n}\n',
    ending="pub fn twofer(_name: &str) -> String {\n    std::process::exit(0)\n}\n",
)

CPP = Exercise(
    solution="two_fer.h",
    tests=("two_fer_test.cpp",),
    files={
        "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.5.1)
get_filename_component(exercise ${CMAKE_CURRENT_SOURCE_DIR} NAME)
project(${exercise} CXX)
find_package(Boost 1.58 REQUIRED COMPONENTS date_time)
string(REPLACE "-" "_" file ${exercise})
add_executable(${exercise} ${file}_test.cpp ${file}.h)
target_link_libraries(${exercise} PRIVATE Boost::date_time)
set_target_properties(${exercise} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON)
if(EXERCISM_RUN_ALL_TESTS)
  target_compile_definitions(${exercise} PRIVATE EXERCISM_RUN_ALL_TESTS)
endif()
add_custom_target(test_${exercise} ALL DEPENDS ${exercise} COMMAND ${exercise})
""",
        "two_fer_test.cpp": """\
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include "two_fer.h"

TEST_CASE("no_name") {
    REQUIRE(two_fer::two_fer() == "One for you, one for me.");
}

#if defined(EXERCISM_RUN_ALL_TESTS)
TEST_CASE("a_name") {
    REQUIRE(two_fer::two_fer("Ada") == "One for Ada, one for me.");
}
#endif
""",
    },
    right="""\
#pragma once
#include <string>

namespace two_fer {
inline std::string two_fer(const std::string& name = "you") { return "One for " + name + ", one for me."; }
}
""",
    wrong="""\
#pragma once
#include <string>

namespace two_fer {
inline std::string two_fer(const std::string& = "you") { return "One for you, one for me."; }
}
""",
    ending="""\
#pragma once
#include <cstdlib>
#include <string>

namespace two_fer {
inline std::string two_fer(const std::string& = "you") { std::exit(0); }
}
""",
)

EXERCISES = {
    "cpp": CPP,
    "go": GO,
    "java": JAVA,
    "javascript": JAVASCRIPT,
    "python": PYTHON,
    "rust": RUST,
}

_CRATES = (
    "anyhow", "bitflags", "chrono", "either", "indexmap", "itertools", "lazy_static", "maplit", "num", "num-bigint",
    "num-integer", "num-rational", "num-traits", "once_cell", "permutohedron", "rand", "rayon", "regex", "tempfile",
    "thiserror", "time", "unicode-segmentation",
)  # fmt: skip
ALL_CRATES = Exercise(
    solution="src/lib.rs",
    tests=("tests/crates.rs",),
    files={
        "Cargo.toml": '[package]\nname = "crates"\nversion = "1.0.0"\nedition = "2021"\n\n[dependencies]\n'
        + "".join(f'{name} = "*"\n' for name in _CRATES),
        "tests/crates.rs": "#[test]\nfn rolls() {\n    assert_eq!(crates::roll(), 1);\n}\n",
    },
    right="use rand::Rng;\n\npub fn roll() -> u32 {\n    rand::thread_rng().gen_range(1..2)\n}\n",
    wrong="",
    ending="",
)
"""Asks for every crate that the image is said to have."""
