"""Plain-text reports of a book."""

from .money import Money


def _table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def render_trial_balance(book):
    """Return one line for each account with a balance, and the totals of both sides."""
    rows = [("account", "debit", "credit")]
    debit = credit = 0
    for name, cents in sorted(book.trial_balance().items()):
        if cents >= 0:
            debit += cents
            rows.append((name, str(Money(cents)), ""))
        else:
            credit -= cents
            rows.append((name, "", str(Money(-cents))))
    rows.append(("total", str(Money(debit)), str(Money(credit))))
    return _table(rows)


def render_statement(book, account, since=None, until=None):
    """Return an account's lines with a running balance."""
    statement = book.statement(account, since, until)
    rows = [("opening", "", str(Money(statement.opening)))]
    balance = statement.opening
    for entry in statement.entries:
        balance += entry.cents
        rows.append((f"{entry.day} {entry.memo}", str(Money(entry.cents)), str(Money(balance))))
    rows.append(("closing", "", str(Money(statement.closing))))
    return _table(rows)
