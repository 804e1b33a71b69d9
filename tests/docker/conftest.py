"""Sandboxes of both engines for the tests, which are skipped aloud where an engine is not to be had."""

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.protocols import Completed, Sandbox, SandboxEngine, SandboxSpec
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.choose import choose

RUN = f"tests-{os.getpid()}"

Inside = Callable[..., Any]


def spec(**given: Any) -> SandboxSpec:
    """A small sandbox that carries this test session's label."""
    small = {"memory_mb": 256, "pids": 64, "disk_mb": 64, "lifetime_s": 300.0, "labels": {"dgm.run": RUN}}
    return SandboxSpec(image="python", **{**small, **given})


@functools.cache
def _engine(name: str) -> SandboxEngine | str:
    try:
        return choose(name)
    except UserError as error:
        return str(error)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.sandbox]),
        pytest.param("bubblewrap", marks=pytest.mark.sandbox),
    ],
)
def engine(request: pytest.FixtureRequest) -> SandboxEngine:
    """Each engine in turn."""
    found = _engine(request.param)
    if isinstance(found, str):
        if os.environ.get("DGM_REQUIRE_DOCKER") == "1":
            pytest.fail(f"must run with {request.param}: {found}")
        pytest.skip(f"NOT RUN with {request.param}: {found}")
    return found


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> SandboxEngine:
    """bubblewrap as an ordinary user's dgm starts it, whoever runs the tests."""
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    try:
        engine = BubblewrapEngine()
        engine.prove()
    except Infrastructure as error:
        pytest.skip(f"NOT RUN with bubblewrap: {error}")
    return engine


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all tests, so that a sandbox can outlive a test."""
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="session")
def standing(engine: SandboxEngine, runner: asyncio.Runner) -> Iterator[Sandbox]:
    """A sandbox that harmless tests share."""
    opened = engine.open(spec())
    yield runner.run(opened.__aenter__())
    runner.run(opened.__aexit__(None, None, None))


@pytest.fixture
def call(standing: Sandbox, runner: asyncio.Runner) -> Callable[..., Completed]:
    """Runs a command in the shared sandbox."""

    def call(*argv: str, timeout_s: float = 20, **more: Any) -> Completed:
        return runner.run(standing.exec(argv, timeout_s=timeout_s, **more))

    return call


@pytest.fixture
def python(call: Callable[..., Completed]) -> Callable[..., Completed]:
    """Runs a piece of Python in the shared sandbox."""
    return lambda code, **more: call("python3", "-c", code, **more)


@pytest.fixture
def inside(engine: SandboxEngine, runner: asyncio.Runner) -> Inside:
    """Gives a function that opens a fresh sandbox with the given limits and lets a coroutine work in it."""

    def work_in(work: Callable[[Sandbox], Awaitable[Any]], **limits: Any) -> Any:
        async def opened() -> Any:
            async with engine.open(spec(**limits)) as sandbox:
                return await work(sandbox)

        return runner.run(opened())

    return work_in
