"""What a task's Dockerfile may fetch while it is built without a network."""

import pytest

from dgm.errors import UserError
from dgm.sandboxes.task_images import refuse_addresses


@pytest.mark.parametrize(
    "line",
    [
        "ADD https://example.org/x /x",
        "  add --chown=1:1 http://127.0.0.1:2375/x /x",
        "ADD \\\n https://example.org/x /x",
        "ADD `\n https://example.org/x /x",
        "ARG X=https\nADD $X /x",
        'ADD ["\\u0068ttp\\u003a//x", "/x"]',
        "ADD git@example.org:x.git /x",
        "ONBUILD ADD https://example.org/x /x",
    ],
)
def test_an_added_address_is_refused(line):
    with pytest.raises(UserError, match=r"fetches an address .*dgm trust SUITE --network$") as told:
        refuse_addresses(f"FROM dgm/python\n{line}\n")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("line", ["ADD a.tar /x", "COPY x y", "RUN echo https://x", "# ADD https://x /x"])
def test_all_else_is_built(line):
    refuse_addresses(f"FROM dgm/python\n{line}\n")
