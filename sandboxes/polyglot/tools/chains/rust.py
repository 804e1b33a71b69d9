"""Rust: ``cargo test --offline`` with Debian's crates in place of the registry's."""

import re
from pathlib import Path

from exercise import Exercise, Outcome, need

_CRATES = Path("/usr/share/cargo/registry")
_RESULT = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; \d+ ignored; \d+ measured; \d+ filtered out",
    re.MULTILINE,
)
_REQUIREMENT = re.compile(r"""^(\s*[\w-]+\s*=\s*(?:\{.*\bversion\s*=\s*)?")[~^]?(\d+)\.(\d+)[\d.]*(".*)$""")
_SECTION = re.compile(r"^\s*\[([^\]]*)\]")


def test(exercise: Exercise) -> Outcome:
    """Runs the test files one after another; they share what was compiled."""
    need("cargo", "rustc")
    # A lock file would ask for the very versions that its author had.
    (exercise.folder / "Cargo.lock").unlink(missing_ok=True)
    manifest = exercise.folder / "Cargo.toml"
    if manifest.exists():
        manifest.write_text(relaxed(manifest.read_text(encoding="utf-8")), encoding="utf-8")
    total = Outcome()
    for name in exercise.tests:
        if Path(name).parent == Path("tests") and name.endswith(".rs"):
            total += _one(exercise, Path(name).stem)
    return total


def _one(exercise: Exercise, name: str) -> Outcome:
    environment = {
        "CARGO_HOME": str(exercise.scratch / "cargo"),
        "CARGO_TARGET_DIR": str(exercise.scratch / "target"),
        "CARGO_TERM_COLOR": "never",
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    crates = []
    if _CRATES.is_dir():
        crates = ["--config", 'source.crates-io.replace-with="debian"']
        crates += ["--config", f'source.debian.directory="{_CRATES}"']
    command = ["cargo", "test", "--offline", *crates, "--test", name]
    code, _ = exercise.run([*command, "--no-run"], environment)
    if code:
        return Outcome(built=False)
    code, said = exercise.run(command, environment)
    results = _RESULT.findall(said)
    passed, failed = (int(number) for number in results[-1]) if results else (0, 0)
    return Outcome(passed, max(failed, 1)) if code else Outcome(passed)


def relaxed(manifest: str) -> str:
    """The manifest with each crate asked for by its series alone: ``0.4.6`` becomes ``0.4``, ``1.8.2`` ``1``.

    Debian's crate is often of the series but not as new, and exercises seldom need the newest of it.
    """
    section, lines = "", []
    for line in manifest.splitlines():
        if found := _SECTION.match(line):
            section = found.group(1)
        if section.endswith("dependencies"):
            line = _REQUIREMENT.sub(_series, line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _series(found: "re.Match[str]") -> str:
    before, major, minor, after = found.groups()
    return f"{before}{major}.{minor}{after}" if major == "0" else f"{before}{major}{after}"
