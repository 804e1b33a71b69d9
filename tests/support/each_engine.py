"""Engines by their names, for tests that run in each; where one is not to be had, they are skipped aloud."""

import os
import shutil

import pytest

from dgm.errors import UserError
from dgm.sandboxes.choose import choose

EVERYWHERE = "/usr/bin:/usr/local/bin"
"""Folders of programs that bubblewrap shows."""


def find_engine(name, *programs):
    """Returns an engine; bubblewrap needs some programs of this machine."""
    try:
        engine = choose(name)
    except UserError as error:
        if os.environ.get("DGM_REQUIRE_DOCKER") == "1":
            pytest.fail(f"must run with {name}: {error}")
        pytest.skip(f"NOT RUN with {name}: {error}")
    missing = [each for each in programs if not shutil.which(each, path=EVERYWHERE)]
    if name == "bubblewrap" and missing:
        pytest.skip(f"NOT RUN with bubblewrap: {missing[0]} is not installed for all")
    return engine
