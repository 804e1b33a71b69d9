"""A mining before its first sandbox: options, the language, candidates of an update, work in threads."""

import asyncio
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.api.mining import benchmark_mine
from dgm.benchmarks.languages import Language
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.journal import HEAD, MiningJournal
from dgm.benchmarks.mining.scan import Candidate
from dgm.benchmarks.mining.session import (
    MiningOptions,
    count_files,
    divide_candidates,
    find_language,
    parse_since,
    run_in_thread,
    spread_candidates,
    task_id,
)
from dgm.config import MiningSettings
from dgm.domain import Entry
from dgm.errors import UserError
from dgm.processes import GivenUp, check_given_up
from tests.support.small_history import make_history

SITE = {"app.py": "", "test_app.py": "", "static/a.js": "", "static/b.js": ""}


def options(out="out", bugs=None, **settings):
    return MiningOptions(Path("repo"), Path(out), bugs=bugs, settings=MiningSettings(**settings))


def open_history(folder, files):
    return History(make_history(folder / "repo", (("begin", files),)))


def candidates(*commits):
    return [
        (number, Candidate(Unit(commit, "", 0, "", ()), ("a.py",), ("test_a.py",)))
        for number, commit in enumerate(commits)
    ]


@pytest.mark.parametrize("files", [(), ("suite/mined.jsonl",), ("suite.mining/journal.jsonl",)])
def test_a_suite_that_was_not_mined_is_never_replaced(tmp_path, files):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite.mining").mkdir()
    for name in files:
        (tmp_path / name).touch()
    update = replace(options(tmp_path / "suite"), update=True)
    with pytest.raises(UserError, match=r"cannot be updated without mined\.jsonl"):
        update.check()
    (update.out / "mined.jsonl").touch()
    update.journal.touch()
    update.check()


def test_a_folder_must_be_there_for_an_update_and_for_that_only(tmp_path):
    with pytest.raises(UserError, match="exists; name another"):
        options(tmp_path).check()
    with pytest.raises(UserError, match="nothing to update"):
        replace(options(tmp_path / "none"), update=True).check()


def test_a_mining_of_no_task_is_refused(tmp_path):
    nothing = replace(options(tmp_path / "suite", bugs=0), history=0)
    with pytest.raises(UserError, match="nothing to mine"):
        nothing.check()
    for more in ({"history": 1}, {"bugs": None}, {"bugs": 1}):
        replace(nothing, **more).check()


@pytest.mark.parametrize("out", [".", "..", "/", "suite"])
def test_every_folder_has_one_for_the_mining_beside_it(out):
    work = options(out).work
    assert work.name.endswith(".mining") and work != Path(out)


def test_a_day_begins_at_midnight_and_nothing_else_is_a_day():
    assert parse_since("2024-01-31") == "2024-01-31 00:00:00 +0000"
    assert parse_since("") == ""
    with pytest.raises(UserError, match=r"mining\.since: .*expected a day"):
        parse_since("2024-02-31")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_usd": 1.0}, "^max_usd: "),
        ({"max_usd": float("nan"), "model": "offline"}, "^max_usd"),
        ({"history": -1}, "^history: "),
        ({"settings": {"mining.sinse": "2024-01-31"}}, "did you mean 'mining.since'"),
        ({"settings": {"mining": {"holdout": 2}}}, "^mining.holdout: 2"),
        ({"settings": {"limits": {"check_s": -1}}}, "^limits.check_s: -1"),
        ({"settings": ["workers"]}, "expected KEY=VALUE"),
        ({"settings": {"mining.since": "yesterday"}}, "^mining.since: 'yesterday'"),
        ({"settings": ["mining.image=python"]}, "^mining.image: 'python'"),
        ({"settings": {"workers": 0}}, "workers = 0"),
        ({"settings": {"mining.reports": ["/etc/*.xml"]}}, "^mining.reports: "),
    ],
)
def test_wrong_arguments_are_refused_before_anything_begins(tmp_path, arguments, message):
    with pytest.raises(UserError, match=message):
        benchmark_mine(tmp_path / "repo", out=tmp_path / "suite", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_mining_that_an_earlier_version_began_goes_on(tmp_path):
    former = {"repository": "r", "--setup": "make", "--statement-model": "", "seed": 0}
    with closing(MiningJournal(tmp_path / "journal.jsonl", former)) as journal:
        journal.put("unit a", 1)
    now = {"repository": "r", "setup": "make", "model": "", "seed": 0}
    with closing(MiningJournal(tmp_path / "journal.jsonl", now)) as journal:
        assert (journal.get("unit a"), journal.get(HEAD)) == (1, former)
    with pytest.raises(UserError, match="begun with another setup;"):
        MiningJournal(tmp_path / "journal.jsonl", now | {"setup": "other"})


def test_files_are_counted_by_language():
    counts = count_files({name: Entry(b"") for name in (*SITE, "lib/x.go")})
    assert {language: count for language, count in counts.items() if any(count)} == {
        Language.PYTHON: (1, 1),
        Language.JAVASCRIPT: (0, 2),
        Language.GO: (0, 1),
    }


@pytest.mark.starts_processes
def test_the_language_of_the_tests_is_mined_unless_another_is_asked_for(tmp_path):
    history = open_history(tmp_path, SITE)
    assert find_language(history, options()) is Language.PYTHON
    assert find_language(history, options(language="javascript")) is Language.JAVASCRIPT


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("files", "more", "message"),
    [
        ({"a.php": ""}, {}, "repo: no code in python or javascript or go or rust or jvm or cpp at"),
        ({"a.js": ""}, {"language": "python"}, "repo: no code in python at"),
        ({"a.go": ""}, {"reports": ("*.xml",)}, r"mining\.reports: is for cpp and jvm, and this is go"),
        ({"a.go": ""}, {"bugs": 3}, "bugs: faults are put into Python only, and this is go"),
    ],
)
def test_what_cannot_be_mined_is_refused(tmp_path, files, more, message):
    with pytest.raises(UserError, match=message):
        find_language(open_history(tmp_path, files), options(**more))


def test_all_candidates_are_new_where_no_suite_is():
    found = candidates("e", "d", "c")
    assert divide_candidates(found, {}) == (found, [], [])


def test_only_what_is_newer_than_every_task_is_added():
    before = {task_id("history", "d"), task_id("history", "b"), "bug-1"}
    parts = divide_candidates(candidates("e", "d", "c", "b", "a"), before)
    assert [[one.unit.commit for _, one in part] for part in parts] == [["e"], ["d", "b"], ["c", "a"]]


def test_candidates_are_spread_over_the_history_and_its_modules():
    found = [
        (number, Candidate(Unit(str(number), "", 0, "", ()), (module,), ("test_a.py",)))
        for number, module in enumerate("aaaabaab")
    ]
    order = [number for number, _ in spread_candidates(found, 2)]
    assert order[:2] == [0, 4]
    assert sorted(order) == list(range(8))
    assert [number for number, _ in spread_candidates(found, 99)] == list(range(8))
    assert spread_candidates([], 5) == []


def test_a_result_and_an_error_come_back_from_a_thread():
    assert asyncio.run(run_in_thread(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_in_thread(divmod, 7, 0))


def test_a_cancelled_task_ends_its_work():
    begun, ended = threading.Event(), []

    def work():
        begun.set()
        try:
            while True:
                check_given_up()
                time.sleep(0.005)
        except GivenUp:
            ended.append(True)
            raise

    async def cancel():
        task = asyncio.create_task(run_in_thread(work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert ended == [True]
