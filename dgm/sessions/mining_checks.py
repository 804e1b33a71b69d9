"""Options of a mining that are wrong whatever the repository holds."""

from datetime import date
from pathlib import Path

from dgm.benchmarks.mining.writing import LEFT_FILE
from dgm.benchmarks.test_spec import is_report_pattern
from dgm.errors import UserError
from dgm.sessions.mining_options import MiningOptions


def check_counts(options: MiningOptions) -> None:
    """Refuse a mining that asks for no task.

    Raises:
        UserError: it does.
    """
    if options.history == 0 and options.bugs == 0 and not options.update:
        raise UserError("--history 0 and --bugs 0: leave nothing to mine; give one of them more")


def check_reports(options: MiningOptions) -> None:
    """Refuse patterns of reports that lie elsewhere than in the workspace.

    Raises:
        UserError: one does.
    """
    for pattern in options.report:
        if not is_report_pattern(pattern):
            raise UserError(
                f"--report {pattern!r}: expected files in the workspace or below $DGM_BUILD/, as in 'build/**/*.xml'"
            )


def check_folders(out: Path, journal: Path, *, update: bool) -> None:
    """Refuse a suite's folder that is in use, and an update of one that was not mined.

    Args:
        out: the suite's folder.
        journal: what a mining keeps to go on.
        update: whether the suite is to be there.

    Raises:
        UserError: it does not fit.
    """
    if out.exists() and not update:
        raise UserError(f"{out}: exists; name another with --out, or add what is new with --update")
    if update and not out.exists():
        raise UserError(f"{out}: missing, so there is nothing to update; mine it without --update")
    if update and not ((out / LEFT_FILE).is_file() and journal.is_file()):
        raise UserError(
            f"{out}: cannot be updated without {LEFT_FILE} in it and {journal}, as its mining left them; mine a suite "
            "of its own with --since and --out, and join the two with dgm benchmark merge"
        )


def parse_since(since: str) -> str:
    """Return the beginning of a day as git reads it; empty for an empty text.

    Raises:
        UserError: it is no day.
    """
    try:
        return f"{date.fromisoformat(since)} 00:00:00 +0000" if since else ""
    except ValueError as error:
        raise UserError(f"--since {since!r}: expected a day such as 2024-01-31") from error
