"""Makes ``docs/providers.md`` from the table that says whose fault a refusal is (``dgm/models/faults.toml``)."""

from pathlib import Path

from dgm.archive.durable import write_durably
from dgm.models.fault_table import FaultRow, RefusalMeaning, read_fault_rows

PAGE = Path(__file__).parent.parent / "providers.md"
HEAD = """\
# When a provider refuses

Whatever a provider answers that is no answer is judged by one table, for all protocols. The first row that fits
decides: status, codes and the time that the provider names come before words. Only what is the agent's own request may
reach a verdict.

A refusal is read in whatever form it comes: JSON objects and lists, `detail` lists of validators, JSON within a string
of a proxy, plain text, a page. Words of the agent that a provider repeats are no words about an account.

This page is made by `docs/providers/make_page.py`; what is tried again and how often is in `docs/model-faults.md`.
"""
ABILITIES = "Asked again with the change. It is remembered for the run, once a model; `dgm status` shows it."
UNABLE = "The agent is told: left out, it would make another answer. That is not the agent's fault."
TITLES = {
    RefusalMeaning.ABILITY: ("What a model does not take", ABILITIES),
    RefusalMeaning.ACCOUNT: ("Account and configuration", "A person has to act. Nothing is graded."),
    RefusalMeaning.SINGLE: (
        "A single request refused",
        "The agent is told; others go on. That is not the agent's fault.",
    ),
    RefusalMeaning.PASSING: ("What passes", "Waited for and asked again."),
    RefusalMeaning.SAMPLED: ("The model's own malformed output", "Another sample may do."),
    RefusalMeaning.UNABLE: ("What a model cannot do", UNABLE),
    RefusalMeaning.ASKED: ("The agent's own request", "The only kind that may reach a verdict."),
}


def main() -> None:
    """Writes the page."""
    write_durably(PAGE, page().encode())


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for meaning, (title, said) in TITLES.items():
        lines = [line(row) for row in read_fault_rows() if row.meaning is meaning]
        table = [
            "| kind | what is seen | what happens | what the person reads |",
            "|---|---|---|---|",
            *lines,
        ]
        parts.append(f"## {title}\n\n{said}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def line(row: FaultRow) -> str:
    """Return a row of the page."""
    seen = f"{row.seen} The hint: {row.hint}." if row.hint else row.seen
    return f"| `{row.id}` | {seen} | {row.happens} | {row.reads} |"


if __name__ == "__main__":
    main()
