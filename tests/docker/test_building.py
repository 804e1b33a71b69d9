"""What a build knows of this machine and what it brings back, in each engine."""

import asyncio
import os

import pytest

from dgm.domain import Entry
from dgm.protocols import BuildError
from dgm.sandboxes.building import SandboxBuilder
from tests.support.each_engine import find_engine
from tests.support.index_server import IndexServer

SECRET = "of-this-machine"
LOOK = """
env; id; find / -xdev -name '*canary*' 2>/dev/null; cat /proc/*/environ 2>/dev/null
cat {home}/canary {home}/.netrc; python3 -c "
import urllib.request
try:
    urllib.request.urlopen('http://127.0.0.1:{port}/canary')
except OSError as error:
    print(error)
"
"""


@pytest.mark.sandbox
@pytest.mark.starts_processes
@pytest.mark.parametrize("engine", [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"])
@pytest.mark.parametrize("public", [False, True])
def test_a_build_knows_nothing_of_this_machine_and_brings_back_a_folder(
    tmp_path, monkeypatch, engine, public
):
    for number in range(20):
        monkeypatch.setenv(f"PROVIDER_{number}_API_KEY", SECRET)
    for name in ("canary", ".netrc"):
        (tmp_path / name).write_text(SECRET)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fill = "cat ../given/f; mkdir -p ../packages/a; cd ../packages; echo 1 > a/x; ln -s x a/y; ln -s /etc z"

    async def build(port):
        builder = SandboxBuilder(find_engine(engine), {"dgm.run": f"tests-{os.getpid()}"}, "python")
        async with builder.open(public=public) as room:
            await room.put({"f": Entry(b"given\n")}, "given")
            look = LOOK.format(home=tmp_path, port=port)
            looked = await room.run(["sh", "-c", look], name="x", timeout_s=120)
            filled = await room.run(["sh", "-c", fill], name="x", timeout_s=60)
            await room.fetch("packages", tmp_path / "result")
            with pytest.raises(BuildError, match="cannot be read back"):
                await room.fetch("gone", tmp_path / "gone")
            return looked, filled

    with IndexServer().serving() as server:
        looked, filled = asyncio.run(build(server.port))
    assert SECRET not in looked.output
    assert "403" in looked.output
    assert f"127.0.0.1:{server.port}, which is no package index: refused" in looked.refused
    assert server.asked == []
    assert (filled.exit_code, filled.output) == (0, "given\n")
    assert sorted(path.name for path in (tmp_path / "result").rglob("*")) == ["a", "x", "y"]


@pytest.mark.docker
@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_where_uv_of_this_machine_does_not_run_there_is_one_by_pip(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)

    async def build():
        builder = SandboxBuilder(find_engine("docker"), {"dgm.run": f"tests-{os.getpid()}"}, "python")
        builder.tools = ()
        async with builder.open() as room:
            return await room.run(["uv"], name="x", timeout_s=120)

    with IndexServer().serving() as index:
        index.add_wheel("uv", program="#!/bin/sh\necho 4.2\n")
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        assert asyncio.run(build()).output == "4.2\n"
