"""``dgm benchmark``: commands about the benchmarks that agents are validated on."""

import logging

import click

from dgm.cli.benchmark_edit import filter_, merge, split
from dgm.cli.benchmark_fetch import fetch
from dgm.cli.benchmark_import import import_
from dgm.cli.benchmark_look import list_, show
from dgm.cli.benchmark_mine import mine
from dgm.cli.benchmark_verify import verify


@click.group()
def benchmark() -> None:
    """List, look at, fetch, import, mine, verify and change the benchmarks that agents are validated on.

    A benchmark is named as in dgm run --benchmark; dgm benchmark list says how.
    """
    # Warnings of benchmarks on opening are part of the output of these commands.
    logging.getLogger("dgm.benchmarks").setLevel(logging.ERROR)


for command in (list_, show, fetch, import_, mine, verify, merge, filter_, split):
    benchmark.add_command(command)
