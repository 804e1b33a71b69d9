"""Which steps of a history may become tasks."""

import pytest

from dgm.benchmarks.languages import Language
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.scan import Candidate, meaning, scan
from dgm.errors import UserError
from tests.support.small_history import STEPS, make_history

pytestmark = pytest.mark.starts_processes


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return History(make_history(tmp_path_factory.mktemp("history") / "repo"))


def test_units_are_the_newest_first_with_their_changes(history):
    units = history.units()
    assert [unit.title for unit in units] == [message for message, _ in reversed(STEPS)]
    assert [change.path for change in units[1].changes] == ["sums/__init__.py", "tests/test_twice.py"]
    assert (units[0].day, units[-1].parent) == ("2023-11-20", "")


def test_units_of_a_date_on(history):
    assert len(history.units("2023-11-18 00:00")) == 3


def test_every_step_that_is_left_out_has_its_reason(history):
    found = list(scan(history, history.units(), Language.PYTHON))
    told = {one.unit.title: "candidate" if isinstance(one, Candidate) else one.reason for one in found}
    assert told == {
        "Explain": "the code changes in comments, docstrings or annotations only",
        "Double, and do not triple (#12)": "candidate",
        "Add a function that triples": "changes no test",
        "Say what it is": "changes neither code nor tests",
        "Release 1.3": "a version of the project",
        "Halve by two": "candidate",
        "begin": "the first commit",
    }


def test_files_of_a_commit(history):
    files = history.files(history.units()[-1].commit)
    assert sorted(files) == sorted(STEPS[0][1])
    assert files["sums/__init__.py"].data == STEPS[0][1]["sums/__init__.py"].encode()


def test_meaning_leaves_out_docstrings_and_annotations():
    assert meaning(b'def f(a: int) -> int:\n    """Say."""\n    return a\n') == meaning(
        b"def f(a):\n    return a\n"
    )
    assert meaning(b"def f(a):\n    return a\n") != meaning(b"def f(a):\n    return -a\n")


def test_what_is_no_repository_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="no git repository; name one"):
            History(folder)


@pytest.mark.parametrize(("time", "day"), [(0, "1970-01-01"), (10**15, "2100-01-01")])
def test_a_commit_has_a_day_whatever_time_it_claims(time, day):
    assert Unit("1" * 40, "", time, "Late", ()).day == day
