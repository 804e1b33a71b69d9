"""The program, and real model servers on loopback."""

import pytest

from tests.model.server import find_weights, serving
from tests.support.program import Program
from tests.support.warm import WarmStart

ALIAS = "smollm2-135m"


@pytest.fixture(scope="session")
def dgm(tmp_path_factory):
    """The program."""
    with WarmStart() as warm:
        yield Program(tmp_path_factory.mktemp("archive"), warm, tmp_path_factory.mktemp("started"))


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server that answers two calls at once; it may still be loading."""
    with serving(
        find_weights(), ALIAS, tmp_path_factory.mktemp("server") / "log", context=4096, slots=2
    ) as one:
        yield one
