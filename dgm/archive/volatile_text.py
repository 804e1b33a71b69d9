"""Masks for what differs between two performances of the same work: dates, times, ids, addresses, kernel releases.

A date or a kernel release is masked only where it is one of then or now (``Conditions``): another one is a fact of the
task.
"""

import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Self

MAX_PATTERNS = 10
MAX_LENGTH = 200
MAX_REPEATS = 2
MAX_CHOICES = 4
PIECE = 500
"""Characters of a line that an agent's patterns are looked for in at once; they do not match across pieces."""
BUDGET_S = 0.5
"""Processor time that an agent's patterns may take in one job; later texts are compared without them."""

_MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
_MONTHS += ["August", "September", "October", "November", "December"]
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_LAST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
_ZONE = r"(?: ?(?:Z|UTC|GMT|[A-Z]{2,3}T)\b)?(?: ?[+-]\d\d:?\d\d\b)?(?: \([A-Z][A-Za-z ]+\))?"
_TIME = rf"(?:\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\b)?|\d\d-\d\d-\d\d|\d{{6}}){_ZONE}"
_UNIT = r" ?(?:s|ms|us|µs|ns|secs?|seconds?)\b"
_AFTER_WORD = "|".join(rf"(?<={word}\d)" for word in ("[Tt]ook ", "ime ", "ime: ", "lapsed ", "lapsed: "))
_NO_DATE = r"(?<![-/]\d\d[ T]\d)(?<!\b[12]\d\d\d[ ,]\d)"
"""Not behind a date: one of then or now is masked with its time, and the time of another one is a fact, too."""
_BILLING = "x-anthropic-billing-header:"
_FIXED = (
    (
        "id",
        (),
        r"[0-9A-Fa-f](?<![0-9A-Fa-f-].)[0-9A-Fa-f]{7}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Fa-f-])",
    ),
    ("id", (), r"a(?<=\ba)[0-9a-f]{16}\b"),
    ("id", ("ses_", "msg_", "prt_", "req_"), r"\b(?:ses|msg|prt|req)_[0-9A-Za-z]{16,40}\b"),
    ("id", ("hunk ID: ", "hunk_id"), r"[Cc]hunk(?: ID: |_id\W{1,6})[0-9a-f]{6}\b"),
    ("id", ("background with ID: ",), r"background with ID: [0-9a-z]{6,12}\b"),
    ("id", ("<task-id>",), r"<task-id>[0-9a-z]{6,12}(?=</task-id>)"),
    ("id", ("/tasks/",), r"/tasks/[0-9a-z]{6,12}(?=\.output\b)"),
    (
        "id",
        ("ession", "urn", "hread", "onversation"),
        (
            r"\b(?:[Ss]ession|[Tt]urn|[Tt]hread|[Cc]onversation)[ _-]?[Ii][Dd]\b[\"']?[:= ]{1,3}[\"']?"
            r"(?=[\w-]*\d)[\w-]{8,64}"
        ),
    ),
    ("billing", (_BILLING,), rf"{_BILLING}[^\n]*"),
    ("address", (), r"0x(?<=\b0x)[0-9a-fA-F]{4,16}\b"),
    (
        "kernel",
        ("inux", "ernel", "OS Version", "OS version", "OS Release", "OS release"),
        (
            r"\b(?:[Ll]inux|[Kk]ernel|OS [Vv]ersion|OS [Rr]elease)"
            r"(?: [\w.-]{1,64}(?= \d)|[^\n\d]{0,24}?)[ :=-]\d+\.\d+\.\d+(?:[-+~.]\w+)*(?: #\d[^\n]*)?"
        ),
    ),
    ("duration", (), rf"\d(?<![\w.]\d)(?:\d*m ?\d+|\d*)\.\d+{_UNIT}"),
    ("duration", (), rf"\d(?:{_AFTER_WORD})\d*{_UNIT}"),
    ("duration", (), r"\d(?<=\b[Ii]n \d)\d*(?:s|ms|us|µs|ns)\b"),
    ("duration", (), r"\(\d+ ?(?:s|ms|us|µs|ns)\)"),
    (
        "duration",
        ("uration", "lapsed", "atency", "all time", "all Time", "all_time"),
        r"(?:[Dd]uration|[Ee]lapsed|[Ll]atency|[Ww]all[ _][Tt]ime)\w{0,12}[\"']?[:= ]{1,3}\d+(?:\.\d+)?\b",
    ),
    ("duration", (" ago",), r"\b\d+ (?:second|minute|hour|day|week|month|year)s? ago\b"),
    ("time", (), rf"\d(?<=\b\d){_NO_DATE}\d?:\d\d:\d\d(?:[.,]\d+)?(?: ?[AaPp][Mm])?\b"),
    ("time", (), rf"\d(?:(?<=ime: \d)|(?<=ime is \d)|(?<=ime is: \d))\d?:\d\d(?: ?[AaPp][Mm])?\b{_ZONE}"),
    ("temporary", (), r"/(?:var/)?tmp/[\w.+-]+"),
    ("temporary", (), r"/dev/shm/[\w.+-]+"),
    ("pid", ("pid", "PID", "rocess"), r"\b(?:pid|PID|[Pp]rocess)[ =:#]+\d+"),
    ("pid", (), r"/proc/\d+\b"),
    ("port", ("localhost:", "127.0.0.1:"), r"\b(?:127\.0\.0\.1|localhost):\d+"),
)
"""Mask, texts of which one must occur (if any), and pattern. A pattern begins with a character, not with a boundary, or
has such texts: otherwise it is tried at each character of a conversation."""
_ANY_TIME = re.compile(rf"\b\d{{4}}-\d\d-\d\d[T ]{_TIME}|\b\d+(?:\.\d+)?{_UNIT}")
_BEFORE_DATES = ("id", "kernel")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_PLAIN = ("The quick brown fox jumps over the lazy dog.", "fix", "42")
"""Texts that no pattern of an agent may match as a whole."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is known of the compared requests: the days and machines on which they were made, and their agent."""

    days: frozenset[date] = frozenset()
    kernels: frozenset[str] = frozenset()
    """Kernel releases, such as ``6.8.0-45-generic``."""
    patterns: tuple[str, ...] = ()
    """The agent's own patterns of what is volatile, which ``check_patterns`` accepts."""
    statement: str = ""
    """The job's problem statement; an id that stands in it is a fact of the task."""

    @classmethod
    def at(cls, *moments: float, kernels: Sequence[str] = ()) -> Self:
        """Return the conditions of some Unix times: the days in UTC and in the zone of this machine.

        Times that a damaged log may hold, and that no machine had, are left out.
        """
        times = [datetime.fromtimestamp(moment, UTC) for moment in moments if 0 < moment < _LAST]
        days = {day for each in times for day in (each.date(), each.astimezone().date())}
        return cls(frozenset(days), frozenset(filter(None, kernels)))

    @classmethod
    def now(cls) -> Self:
        """Return the present conditions."""
        return cls.at(time.time(), kernels=(platform.release(),))

    def __or__(self, other: "Conditions") -> "Conditions":
        return Conditions(
            self.days | other.days,
            self.kernels | other.kernels,
            self.patterns or other.patterns,
            self.statement or other.statement,
        )


UNKNOWN = Conditions()
"""Conditions under which no date and no bare kernel release is masked."""


@dataclass(frozen=True, slots=True)
class _Mask:
    """A compiled pattern; it is looked for in lines with one of the needles, or everywhere if there are none."""

    name: str
    needles: Sequence[str]
    pattern: re.Pattern[str]

    def replace(self, text: str, ids: list[str], statement: str) -> str:
        """Return the text with the mask, and add the ids that it replaces; those of the statement stay."""

        def replace_match(match: re.Match[str]) -> str:
            if self.name == "id":
                if match[0] in statement:
                    return match[0]
                ids.append(match[0])
            return f"<{self.name}>"

        if not self.needles:
            return self.pattern.sub(replace_match, text)
        if not self._may_match(text):
            return text
        lines = text.split("\n")
        return "\n".join(
            self.pattern.sub(replace_match, line) if self._may_match(line) else line for line in lines
        )

    def _may_match(self, text: str) -> bool:
        return any(needle in text for needle in self.needles)


class Masks:
    """The masks of one job."""

    def __init__(self, conditions: Conditions = UNKNOWN) -> None:
        """Compile the masks for what is known of then and now."""
        self._masks = _compile_masks(conditions.days, conditions.kernels)
        self._statement = conditions.statement
        further = "|".join(f"(?:{each})" for each in conditions.patterns)
        self._further = re.compile(further) if further else None
        self._left_s = BUDGET_S

    def mask(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return the masked text, and the ids that were masked in it, in order."""
        ids: list[str] = []
        if self._further is not None:
            text = self._mask_further(text, self._further)
        for mask in self._masks:
            text = mask.replace(text, ids, self._statement)
        return text, tuple(ids)

    def _mask_further(self, text: str, pattern: re.Pattern[str]) -> str:
        masked = []
        for line in text.splitlines(keepends=True):
            for start in range(0, len(line), PIECE):
                piece = line[start : start + PIECE]
                if self._left_s > 0:
                    began = time.thread_time()
                    piece = pattern.sub("<volatile>", piece)
                    self._left_s -= time.thread_time() - began
                masked.append(piece)
        return "".join(masked)


def mask_text(text: str) -> str:
    """Return a text about results, such as a reason, without times and what no two performances share."""
    return Masks().mask(_ANY_TIME.sub("<time>", text))[0]


def check_patterns(patterns: Sequence[str]) -> None:
    """Check an agent's patterns.

    Raises:
        ValueError: they are too many, or one is invalid, costly or masks any text; the message names it.
    """
    if len(patterns) > MAX_PATTERNS:
        raise ValueError(f"{len(patterns)} patterns; at most {MAX_PATTERNS} are possible")
    for pattern in patterns:
        fault = _find_fault(pattern)
        if fault:
            raise ValueError(f"{pattern[:MAX_LENGTH]!r} {fault}")


def _find_fault(pattern: str) -> str:
    if len(pattern) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    if re.search(r"\\[1-9]", pattern):
        return "refers back to a group"
    skeleton = _TOKEN.sub("x", pattern)
    if re.search(r"\(\?(?!:)", skeleton):
        return "has a group other than (...) and (?:...)"
    if re.search(r"\)(?:[*+]|\{)", skeleton):
        return "repeats a group"
    if any(
        int(number) > MAX_LENGTH
        for number in re.findall(r"\d+", " ".join(re.findall(r"\{[\d,]+\}", skeleton)))
    ):
        return f"repeats more than {MAX_LENGTH} times"
    if len(re.findall(r"[*+]|\{\d*,\d*\}", skeleton)) > MAX_REPEATS:
        return f"has more than {MAX_REPEATS} repeats of a varying length"
    if len(re.findall(r"(?<!\()\?|\|", skeleton)) > MAX_CHOICES:
        return f"has more than {MAX_CHOICES} of ? and |"
    if compiled.match("") or compiled.search("\n") or any(map(compiled.fullmatch, _PLAIN)):
        return "matches any text"
    return ""


@lru_cache(maxsize=64)
def _compile_masks(known_days: frozenset[date], kernels: frozenset[str]) -> Sequence[_Mask]:
    days = sorted(known_days)
    fixed = [_Mask(name, needles, re.compile(pattern)) for name, needles, pattern in _FIXED]
    return [
        *(mask for mask in fixed if mask.name in _BEFORE_DATES),
        *(
            _Mask("kernel", (each,), re.compile(rf"(?<![\w.]){re.escape(each)}(?![\w-])"))
            for each in sorted(kernels, key=len, reverse=True)
            if "-" in each
        ),
        *(_Mask("date", _date_needles(day), re.compile(_date_pattern(day))) for day in days),
        *(
            _Mask("month", (str(year),), re.compile(_month_pattern(year, month)))
            for year, month in sorted({(day.year, day.month) for day in days})
        ),
        *(mask for mask in fixed if mask.name not in _BEFORE_DATES),
    ]


def _date_needles(day: date) -> Sequence[str]:
    short = f"{day.year % 100:02}"
    return (
        str(day.year),
        _MONTHS[day.month - 1][:3],
        f"/{short}",
        f"-{short}",
        f".{short}",
        "oday is ",
        "oday: ",
    )


def _date_pattern(day: date) -> str:
    """Return a pattern for all written forms of a day, with the weekday and the time beside it."""
    year, month, number = day.year, f"0?{day.month}", f"0?{day.day}"
    weekday, name = (
        rf"(?:{each}|{each[:3]})\b" for each in (_WEEKDAYS[day.weekday()], _MONTHS[day.month - 1])
    )
    ordinal = rf"{number}(?:st|nd|rd|th)?(?!\d)"
    short = f"(?:{year}|{year % 100:02})"
    other_year = r"(?!,? \d{4}\b)"
    clock_year = rf"(?:,? {_TIME} {year}\b|,? {year}\b|{other_year})"
    forms = (
        rf"(?:\b{weekday}\.?,? )?\b{name}\.? {{1,2}}{ordinal}{clock_year}",
        rf"(?:\b{weekday}\.?,? )?(?:the )?\b{ordinal}(?: of)?[ /-]{name}\.?(?:,?[ /-]{year}\b|{other_year})",
        rf"(?<!\d){year}[-/._]{month}[-/._]{number}(?!\d)",
        rf"(?<!\d){year}年{month}月{number}日",
        rf"(?<!\d){day:%Y%m%d}(?!\d)",
        rf"(?<![\d/.-])(?:{month}/{number}|{number}/{month}|{month}-{number}|{number}-{month}|{number}\.{month})[-/.]{short}(?!\d)",
        rf"\b[Tt]oday(?: is|:) {weekday}\b",
    )
    before = r"(?:\b\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?(?: UTC)?,?(?: on)? )?"
    after = rf"(?:,? \(?{weekday}\)?)?(?:(?:,? (?:at )?|[T:_-]){_TIME})?"
    return f"{before}(?:{'|'.join(forms)}){after}"


def _month_pattern(year: int, month: int) -> str:
    name = _MONTHS[month - 1]
    return rf"\b(?:{name}|{name[:3]})\.?,? {year}\b|(?<!\d){year}-{month:02}(?![\d-])"
