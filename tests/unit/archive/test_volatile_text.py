"""What is masked in a text, under which conditions."""

from datetime import UTC, date, datetime

import pytest

from dgm.archive.volatile_text import Conditions, Masks, check_patterns, mask_text

THEN, NOW = date(2026, 11, 28), date(2026, 12, 1)
BOTH = Conditions(
    frozenset((THEN, NOW)), frozenset(("6.8.0-45-generic", "5.15.167.4-microsoft-standard-WSL2"))
)
FORMS = (
    "Today's date is {day:%Y-%m-%d}.",
    "<current_date>{day:%Y-%m-%d}</current_date>",
    "{day:%Y/%m/%d}",
    "{day:%m/%d/%Y}",
    "{day:%d/%m/%Y}",
    "{day.month}/{day.day}/{day.year}, 5:13:58 PM",
    "{day.day}.{day.month}.{day.year}",
    "Today's date: {day:%a %b %d %Y}",
    "Today's date is {day:%A, %B} {day.day}, {day.year}.",
    "{day:%B} {day.day}, {day.year}",
    "{day:%B} {day.day}, {day.year} at 5:13 PM",
    "{day.day} {day:%B %Y}",
    "{day:%a, %d %b %Y} 17:13:58 +0000",
    "{day:%a %b} {day.day:2} 17:13:58 UTC {day.year}",
    "{day:%a %b} {day:%d} {day.year} 17:13:58 GMT+0000 (Coordinated Universal Time)",
    "{day:%Y-%m-%d}T17:13:58.123Z",
    "{day:%Y-%m-%d}T17:13:58+00:00",
    "{day:%Y-%m-%d} 17:13",
    "{day:%Y-%m-%d} (%A)",
    "{day:%Y%m%d}_171358",
    "-rw-r--r-- 1 root root 12 {day:%b} {day.day:2} 17:13 notes.txt",
    '127.0.0.1 - - [{day:%d/%b/%Y}:17:13:58 +0000] "GET / HTTP/1.1"',
    "The current month is {day:%B %Y}.",
)
CLOCKS = (
    ("17:13:58", "08:01:02"),
    ("5:13:58", "11:01:02"),
    ("5:13", "11:01"),
    ("17:13", "08:01"),
    ("171358", "080102"),
)


def written(form, day):
    return form.format(day=day).replace("%A", f"{day:%A}")


@pytest.mark.parametrize("form", FORMS)
def test_the_day_of_then_and_of_now_are_the_same_in_all_forms(form):
    then, now = written(form, THEN), written(form, NOW)
    for one, other in CLOCKS:
        now = now.replace(one, other)
    assert then.partition(" ")[0] == "" or then != now
    assert Masks(BOTH).mask(then) == Masks(BOTH).mask(now)


@pytest.mark.parametrize("form", FORMS)
def test_other_days_are_facts_of_the_task(form):
    one, other = written(form, date(2024, 2, 3)), written(form, date(2025, 3, 14))
    assert Masks(BOTH).mask(one) != Masks(BOTH).mask(other)


@pytest.mark.parametrize(
    "text",
    [
        "due 2026-11-27",
        "due 12026-11-280",
        "Nov 28, 2019",
        "28 November 2019",
        "November 2019",
        "version 2026.11",
        "Nov 281",
        "1.11.28",
        "the second of May may be a Saturday",
    ],
)
def test_what_only_resembles_the_day_stays(text):
    assert Masks(BOTH).mask(text) == (text, ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("OS Version: Linux 6.8.0-45-generic", "OS Version: Linux 4.4.0"),
        ("$ uname -r\n6.8.0-45-generic\n", "$ uname -r\n5.15.167.4-microsoft-standard-WSL2\n"),
        (
            "Linux 3f2a1b4c5d6e 6.8.0-45-generic #45-Ubuntu SMP Fri Aug 30 12:02:04 UTC 2024 x86_64 GNU/Linux",
            "Linux box 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01) x86_64 GNU/Linux",
        ),
        ("Linux-6.8.0-45-generic-x86_64-with-glibc2.36", "Linux-6.1.9-18-amd64-x86_64-with-glibc2.36"),
        ("Wall time: 0.12 seconds", "Wall time: 31.5 seconds"),
        ("duration_ms: 1234", "duration_ms: 7"),
        ('"duration_ms":1234', '"duration_ms":7'),
        ("1 passed in 0.03s", "1 passed in 12.94s"),
        ("1 passed in 3s", "1 passed in 12s"),
        ("[17:13:58] start", "[08:01:02] start"),
        ("ok (2 ms)", "ok (17 ms)"),
        ("real\t0m0.003s", "real\t1m2.113s"),
        ("took 3 s", "took 11 s"),
        ("a1b2c3d (3 days ago) Fix it", "a1b2c3d (4 days ago) Fix it"),
        (
            "x-anthropic-billing-header: cc_version=2.1.332.a1b; cch=00aa1;",
            "x-anthropic-billing-header: cc_version=2.1.332.f00; cch=1;",
        ),
    ],
)
def test_kernels_and_durations_are_masked(one, other):
    assert Masks(BOTH).mask(one)[0] == Masks(BOTH).mask(other)[0]


@pytest.mark.parametrize(
    "text",
    [
        "Wait 30 seconds before the next try.",
        "a timeout of 500 ms",
        "Answer in 30 seconds.",
        "the log of 2024-01-01 10:00:01",
        "the log of 2024-01-01T10:00:01Z",
        "on Jan 1 2024 10:00:01",
        "total 12 of 30, 100 items",
        "numpy 1.26.4",
        "10.0.0-1-lts",
        "python 3.11.7-slim",
        "balance 10.50",
        "commit 1a2b3c4d5e6f708192a3b4c5d6e7f80912345678",
    ],
)
def test_numbers_of_a_task_stay(text):
    assert Masks(BOTH).mask(text) == (text, ())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id 6f1c2d3e-0000-4000-8000-1234567890ab.", ("6f1c2d3e-0000-4000-8000-1234567890ab",)),
        ("Chunk ID: 3fa2c1\nWall time: 0.1 s", ("Chunk ID: 3fa2c1",)),
        ('{"chunk_id":"1628bd","output":""}', ('chunk_id":"1628bd',)),
        ("agentId: a0123456789abcdef (internal)", ("a0123456789abcdef",)),
        ("running in background with ID: bw2dkq7. Output", ("background with ID: bw2dkq7",)),
        ("session_id: 0198c7d2aa", ("session_id: 0198c7d2aa",)),
        ("user id: 0198c7d2aa", ()),
    ],
)
def test_ids_are_listed(text, ids):
    assert Masks().mask(text)[1] == ids


def test_nothing_is_known_of_any_day_without_conditions():
    assert Masks().mask("on 2026-11-28 in 0.2s")[0] == "on 2026-11-28 in <duration>"


def test_a_reason_is_compared_without_any_time():
    assert mask_text("2026-11-28 17:13:58,1 ERROR after 3 s") == "<time> ERROR after <time>"


def test_conditions_are_the_days_in_utc():
    noon = datetime(2026, 11, 28, 12, tzinfo=UTC).timestamp()
    assert THEN in Conditions.at(noon).days
    assert Conditions.at(-1e300, 1e300, float("nan")) == Conditions()
    assert Conditions.at(datetime(2199, 12, 31, tzinfo=UTC).timestamp()).days
    assert Conditions.at(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) == Conditions()


def test_patterns_of_an_agent_are_masked_too():
    masks = Masks(Conditions(patterns=("ticket-[0-9]+", "nonce=\\w+")))
    assert masks.mask("ticket-17 nonce=ab\n17") == ("<volatile> <volatile>\n17", ())


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a+)+b", "repeats a group"),
        ("(?:x|xx){5}", "repeats a group"),
        ("[", "no regular expression"),
        ("a*", "any text"),
        (".+", "any text"),
        ("\\d+", "any text"),
        ("(x)\\1", "refers back"),
        ("(?=x)y", "group other than"),
        ("a+b+c+", "more than 2 repeats"),
        ("ab?c?d?e?f?", "more than 4"),
        ("ax{900}", "more than 200 times"),
        ("a" * 201, "longer than 200"),
    ],
)
def test_costly_or_empty_patterns_are_refused(pattern, reason):
    with pytest.raises(ValueError, match=reason):
        check_patterns((pattern,))


@pytest.mark.parametrize(
    "pattern", ["session-[0-9]+", "req_\\w{8,40}", "(?:run|job) [0-9a-f]{12}", "trace=[^ ]+"]
)
def test_plain_patterns_are_accepted(pattern):
    check_patterns((pattern,))


def test_too_many_patterns_are_refused():
    with pytest.raises(ValueError, match="11 patterns"):
        check_patterns(("ticket",) * 11)
