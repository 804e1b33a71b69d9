"""Read many lines, and report what is wrong with some of them."""

import logging
from dataclasses import dataclass, field

from .errors import RecordError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Problem:
    """Why a line gave no record."""

    line: int
    message: str

    def __str__(self):
        return f"line {self.line}: {self.message}"


@dataclass
class Report:
    """The records that were read, and the problems of the other lines."""

    records: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    skipped: int = 0

    def noted(self):
        """Return the records that have notes."""
        return [record for record in self.records if record.notes]

    def summary(self):
        """Return a short text for people."""
        notes = sum(len(record.notes) for record in self.records)
        parts = [f"{len(self.records)} read", f"{len(self.problems)} faulty", f"{self.skipped} skipped", f"{notes} notes"]
        return ", ".join(parts)


def read(lines, layout, rules=(), comment=b"#"):
    """Read lines of bytes; blank lines and comments are skipped.

    Args:
        lines: An open binary file, or any lines.
        layout: The layout of the lines.
        rules: Functions that take a record and return a complaint, or ``None``.
        comment: What the lines that are not records begin with.
    """
    report = Report()
    for number, data in enumerate(lines, 1):
        if not data.strip() or data.startswith(comment):
            report.skipped += 1
            continue
        try:
            record = layout.parse(data, number)
        except RecordError as error:
            report.problems.append(Problem(number, str(error)))
            log.info("line %d: %s", number, error)
            continue
        complaints = [complaint for complaint in (rule(record) for rule in rules) if complaint is not None]
        if complaints:
            report.problems.extend(Problem(number, complaint) for complaint in complaints)
        else:
            report.records.append(record)
    log.info("%s", report.summary())
    return report
