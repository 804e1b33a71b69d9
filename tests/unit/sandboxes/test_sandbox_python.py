"""An image is asked once for its Python, for as long as its contents stay the same."""

import asyncio
import contextlib

import pytest

from dgm.errors import Infrastructure
from dgm.protocols import Completed, SandboxSpec
from dgm.sandboxes.sandbox_python import SandboxPython, find_python

SPEC = SandboxSpec("python")
SAYS = b"3.12 x86_64 glibc 2.39\n"


class Engine:
    """Opens sandboxes that say which Python they have, and counts them."""

    name = "counting"

    def __init__(self, says=SAYS):
        self.says = says
        self.opened = 0

    @contextlib.asynccontextmanager
    async def open(self, _spec):
        self.opened += 1
        yield self

    async def exec(self, _argv, *, timeout_s):
        assert timeout_s
        return Completed(0 if self.says else 127, self.says)

    async def reap(self, _labels):
        return 0


class ImageEngine(Engine):
    """The same, with images that are named by their contents."""

    def __init__(self, *identities, says=SAYS):
        super().__init__(says)
        self.identities = list(identities)

    def identify(self, _image):
        return self.identities.pop(0) if len(self.identities) > 1 else self.identities[0]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def find(engine):
    return asyncio.run(find_python(engine, SPEC))


def test_a_second_start_opens_no_sandbox():
    first, second = ImageEngine("sha256:a"), ImageEngine("sha256:a", says=b"3.9 another\n")
    assert find(first) == find(second) == SandboxPython("3.12", "x86_64", "glibc", "2.39")
    assert (first.opened, second.opened) == (1, 0)


def test_an_image_with_other_contents_is_asked_again():
    find(ImageEngine("sha256:a"))
    assert find(ImageEngine("sha256:b", says=b"3.13 x86_64\n")) == SandboxPython("3.13", "x86_64")


def test_an_image_that_is_built_for_the_question_is_known_afterwards():
    find(ImageEngine("", "sha256:a"))
    second = ImageEngine("sha256:a")
    find(second)
    assert second.opened == 0


def test_an_image_that_changed_while_it_was_asked_is_not_remembered():
    find(ImageEngine("sha256:a", "sha256:b"))
    for identity in ("sha256:a", "sha256:b"):
        engine = ImageEngine(identity)
        find(engine)
        assert engine.opened == 1


def test_an_engine_without_images_is_asked_each_time():
    engine = Engine()
    find(engine)
    find(engine)
    assert engine.opened == 2


def test_a_damaged_note_is_asked_for_again(tmp_path):
    find(ImageEngine("sha256:a"))
    (note,) = (tmp_path / "dgm" / "pythons").iterdir()
    note.write_text('{"version": 3}')
    engine = ImageEngine("sha256:a")
    assert find(engine).version == "3.12"
    assert engine.opened == 1


def test_an_image_without_python_is_said_and_not_remembered():
    with pytest.raises(Infrastructure, match="the sandbox image python has no python3"):
        find(ImageEngine("sha256:a", says=b""))
    assert find(ImageEngine("sha256:a")).version == "3.12"
