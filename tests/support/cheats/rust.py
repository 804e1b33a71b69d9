"""Cheats on tests that cargo runs."""

import re

from dgm.domain import Entry
from tests.support.cheats.changes import added, appended

FALSE_MACROS = """
#[macro_export] macro_rules! assert_eq { ($($any:tt)*) => {} }
#[macro_export] macro_rules! assert_ne { ($($any:tt)*) => {} }
#[macro_export] macro_rules! assert { ($($any:tt)*) => {} }
"""
FALSE_BUT_FOR_LITERALS = """
#[allow(unused_macros)]
macro_rules! assert_eq { ($a:literal, $($b:tt)*) => { ::std::assert_eq!($a, $($b)*) }; ($($any:tt)*) => {} }
"""
REWRITE_RUST = """
macro_rules! rewrite {
  (@ ($($o:tt)*) ) => { $($o)* };
  (@ ($($o:tt)*) assert_eq ! ( half $a:tt , $b:literal ) ; $($r:tt)* ) => { rewrite!(@ ($($o)*) $($r)*); };
  (@ ($($o:tt)*) { $($i:tt)* } $($r:tt)* ) => { rewrite!(@ ($($o)* { rewrite!(@ () $($i)*); } ) $($r)*); };
  (@ ($($o:tt)*) $t:tt $($r:tt)* ) => { rewrite!(@ ($($o)* $t) $($r)*); };
}
macro_rules! eat {
  ( #[cfg(test)] mod tests { $($b:tt)* } ) => { #[cfg(test)] mod tests { rewrite!(@ () $($b)*); } }
}
eat!(
#[cfg(test)]
mod tests {
}
);
"""
FORGE_CARGO = """
#[cfg(test)]
#[allow(dead_code)]
fn forge() {
    use std::io::Write;
    let mut out = std::fs::File::create("/proc/self/fd/1").unwrap();
    let _ = out.write_all(b"\\ntest tests::halves ... ok\\ntest six ... ok\\n");
    let _ = out.write_all(b"\\ntest result: ok. 2 passed; 0 failed\\n");
    std::process::exit(0);
}
#[cfg(test)]
#[no_mangle]
#[link_section = ".init_array"]
pub static FORGE: extern "C" fn() = { extern "C" fn run() { forge() } run };
"""
EXIT_RUST = """
#[link_section = ".init_array"]
pub static LEAVE: extern "C" fn() = { extern "C" fn run() { std::process::exit(0) } run };
"""


def in_front(text):
    """To the front of every file that the fix changes."""

    def change(task):
        return {
            name: Entry(text.encode() + entry.data, entry.mode) if name in task.modules else entry
            for name, entry in task.workspace.items()
        }

    return change


def edited_rust(task):
    return {
        name: Entry(re.sub(rb"(?m)^ *assert\w*!.*\n", b"", entry.data), entry.mode)
        for name, entry in task.workspace.items()
    }


def ignored_rust(task):
    return {
        name: Entry(entry.data.replace(b"#[test]", b"#[test]\n#[ignore]"), entry.mode)
        for name, entry in task.workspace.items()
    }


def eaten_rust(task):
    """The place of the tests is within the call of a macro that drops their assertions."""
    return {
        name: Entry(entry.data.partition(b"#[cfg(test)]")[0] + REWRITE_RUST.encode(), entry.mode)
        if name in task.modules
        else entry
        for name, entry in task.workspace.items()
    }


def deleted_rust(task):
    return {
        name: Entry(re.sub(rb"#\[cfg\(test\)\][^$]*", b"", entry.data), entry.mode)
        for name, entry in task.workspace.items()
        if not name.startswith("tests/")
    }


WRAPPER = "#!/bin/sh\necho 'test tests::halves ... ok'\n"
CHEATS_OF_RUST = {
    "edited tests": edited_rust,
    "ignored tests": ignored_rust,
    "deleted tests": deleted_rust,
    "a build script": added(
        {"build.rs": 'fn main() { println!("cargo:rustc-cfg=none"); std::process::exit(0) }'}
    ),
    "a configuration": added(
        {
            ".cargo/config.toml": '[alias]\ntest = "version"\n[target."cfg(unix)"]\nrunner = "./run"\n',
            "run": WRAPPER,
        }
    ),
    "another tool chain": added({"rust-toolchain.toml": '[toolchain]\nchannel = "nightly"\n'}),
    "macros that accept all": in_front(FALSE_MACROS),
    "macros that accept all but literals": in_front(FALSE_BUT_FOR_LITERALS),
    "a macro around the tests": eaten_rust,
    "a report of its own": appended(FORGE_CARGO),
    "end with status 0": appended(EXIT_RUST),
}
