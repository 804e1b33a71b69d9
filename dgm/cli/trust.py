"""``dgm trust``: say yes to what a stranger's suite, run or settings would do on this machine."""

import sys

import click

from dgm.show.safe import one_line

LINE_CHARS = 1_000


@click.command()
@click.argument("name", metavar="SUITE|RUN|FILE")
@click.option(
    "--network", is_flag=True, help="Let the suite's Dockerfiles use a network while they are built."
)
def trust(name: str, network: bool) -> None:
    """Agree to what another person's SUITE, RUN or FILE would do on this machine; look at it first.

    A suite: Docker builds the Dockerfiles of its tasks, which run programs of its author. A run, or a file of settings
    or of a sweep: model calls go to the addresses, with the variables of keys and at the prices that its settings name.
    The yes holds for what is there now; what changes is asked about again.
    """
    from dgm.api.trusting import trust as approve

    words = approve(name, network=network)
    for subject in words:
        sys.stdout.write(f"agreed: {one_line(subject, LINE_CHARS)}\n")
    if not words:
        sys.stdout.write("nothing of it needs a yes\n")
