"""Modules that mostly wait stand between those that compute."""

from pathlib import Path

from tests.support.order import LONG, mix_modules

TESTS = Path("/tests")


def mixed(*names: str) -> list[str]:
    return [
        module.relative_to(TESTS).as_posix()
        for module in mix_modules([TESTS / name for name in names], TESTS)
    ]


def test_screens_stand_between_searches() -> None:
    given = (
        "docker/a.py",
        "e2e/a.py",
        "e2e/b.py",
        "e2e/c.py",
        "e2e/d.py",
        "tui/a.py",
        "tui/b.py",
        "unit/x/a.py",
    )
    assert mixed(*given) == [
        "docker/a.py",
        "e2e/a.py",
        "tui/a.py",
        "e2e/b.py",
        "e2e/c.py",
        "tui/b.py",
        "e2e/d.py",
        "unit/x/a.py",
    ]


def test_long_modules_come_first() -> None:
    long = LONG[0]
    assert mixed("e2e/a.py", "docker/a.py", long) == [long, "e2e/a.py", "docker/a.py"]


def test_long_modules_are_there() -> None:
    tests = Path(__file__).parents[2]
    assert [name for name in LONG if not (tests / name).is_file()] == []


def test_all_else_stays_as_it_was() -> None:
    assert mixed("tui/b.py", "unit/x/a.py", "unit/a.py") == ["tui/b.py", "unit/x/a.py", "unit/a.py"]
    assert mixed("unit/b.py", "e2e/b.py", "e2e/a.py") == ["unit/b.py", "e2e/b.py", "e2e/a.py"]


def test_modules_of_other_folders_stay_as_they_are() -> None:
    others = [Path("/elsewhere/test_b.py"), Path("/elsewhere/test_a.py")]
    assert mix_modules(others, TESTS) == others
