"""What holds for all tests."""

import asyncio
import gc
import inspect
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.fast import FastOnly, NoProcesses
from tests.support.order import mix_modules
from tests.support.progress import register_progress
from tests.support.sample import Sample

# A busy machine holds an example up for seconds; no test here is about how long one takes.
settings.register_profile("dgm", deadline=None)
settings.load_profile("dgm")


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory):
    """What tests agree to, or keep, is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only unit and property tests that start no process")
    parser.addoption("--progress", action="store_true", help="print how much is done and left, no letters")
    parser.addoption(
        "--sample", type=float, metavar="SHARE", help="only the modules that --sample-seed draws"
    )
    parser.addoption("--sample-seed", default="0", help="a commit, or any text")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(NoProcesses(), "no-processes")
    if config.getoption("--fast"):
        config.pluginmanager.register(FastOnly(), "fast-only")
    if (share := config.getoption("--sample")) is not None:
        config.pluginmanager.register(Sample(config.getoption("--sample-seed"), share), "sample")
    if config.getoption("--progress"):
        register_progress(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collects without the garbage collector, and leaves what was collected out of all its later work.

    All of it stays to the end, and looking at it again and again took half of the time of collecting.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), 300))
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mixes modules; the tests of each stay together and in their order."""
    modules: dict[Path, list[pytest.Item]] = {}
    for path, found in groupby(items, lambda item: item.path):
        modules.setdefault(path, []).extend(found)
    order = mix_modules(modules, Path(__file__).parent)
    if order != [*modules]:
        items[:] = [item for path in order for item in modules[path]]
