"""Runs that are exported: a small one that was paid for, and one in which every text is hostile."""

import pytest

from dgm.archive.run import Run
from tests.support.runs.hostile import hostile_folder
from tests.support.runs.paid import small

__all__ = ["hostile_folder"]


@pytest.fixture(scope="module")
def paid_folder(tmp_path_factory):
    """The folder of a run of three agents, the last a crossover, with 20 calls; closed."""
    made = small(tmp_path_factory.mktemp("paid") / "paid")
    made.run.close()
    return made.run.folder


@pytest.fixture(params=["paid_folder", "hostile_folder"])
def run(request):
    """Each of the two, open to read."""
    with Run.open(request.getfixturevalue(request.param)) as opened:
        yield opened
