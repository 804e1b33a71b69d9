"""Several Docker engines as one: who gets a sandbox, and what becomes of an engine that fails."""

import asyncio
import contextlib

import pytest

from dgm.domain import Entry
from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes import recipes
from dgm.sandboxes.engine_address import parse_address
from dgm.sandboxes.engine_group import LONGEST_REST_S, REST_S, EngineGroup
from tests.support.fake_engines import FakeEngine, connect_to

DOCKERFILE = {"Dockerfile": Entry(b"FROM dgm/python\n")}
SPEC = SandboxSpec("python", {"dgm.run": "r1"})


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def group_of(clock=None, **engines):
    addresses = [parse_address(f"ssh://{name}", "--engine") for name in engines]
    return EngineGroup(addresses, connect_to(engines), clock or Clock())


def state_of(group, name):
    return next(node for node in group.nodes() if node.name == f"ssh://{name}")


async def fail_in_a_sandbox(group, why, switched_off=None):
    async with group.open(SPEC):
        if switched_off is not None:
            switched_off.is_away = True
        raise Infrastructure(why)


async def open_many(group, count, stack):
    for _ in range(count):
        await stack.enter_async_context(group.open(SPEC))


def test_sandboxes_go_where_most_places_are_free():
    async def go():
        small, large = FakeEngine(cpus=2), FakeEngine(cpus=6)
        group = group_of(a=small, b=large)
        async with contextlib.AsyncExitStack() as stack:
            await open_many(group, 4, stack)
            assert (small.opened, large.opened) == (0, 4)
            await open_many(group, 4, stack)
            assert (small.opened, large.opened) == (2, 6)
            # All places are taken: the least loaded one has one more.
            await open_many(group, 4, stack)
            assert (small.opened, large.opened) == (3, 9)
            assert [node.busy for node in group.nodes()] == [3, 9]
        assert [node.busy for node in group.nodes()] == [0, 0]

    asyncio.run(go())


def test_places_are_counted_in_processors_of_the_sandbox():
    async def go():
        group = group_of(a=FakeEngine(cpus=4), b=FakeEngine(cpus=3))
        large = SandboxSpec("python", cpus=2.0)
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(group.open(large))
            assert [node.busy for node in group.nodes()] == [2, 1]

    asyncio.run(go())


def test_an_engine_that_fails_is_left_alone_and_tried_again():
    async def go():
        clock, a, b = Clock(), FakeEngine(cpus=8), FakeEngine(cpus=1)
        group = group_of(clock, a=a, b=b)
        a.is_away = True
        with pytest.raises(Infrastructure, match="no sandbox on the engine ssh://a: no answer"):
            async with group.open(SPEC):
                pass
        async with group.open(SPEC):
            assert (a.opened, b.opened) == (0, 1)
        assert state_of(group, "a").problem == "no answer"
        a.is_away = False
        clock.now = REST_S - 1
        async with group.open(SPEC):
            assert b.opened == 2
        clock.now = REST_S
        async with group.open(SPEC):
            assert a.opened == 1
        assert (state_of(group, "a").problem, state_of(group, "a").failures) == ("", 1)

    asyncio.run(go())


def test_an_engine_that_stays_away_is_tried_more_and_more_rarely():
    async def go():
        clock, a, b = Clock(), FakeEngine(is_away=True), FakeEngine()
        group = group_of(clock, a=a, b=b)
        for _ in range(8):
            clock.now += LONGEST_REST_S
            async with group.open(SPEC):
                pass
        assert state_of(group, "a").failures == 9
        clock.now += LONGEST_REST_S - 1
        async with group.open(SPEC):
            pass
        assert state_of(group, "a").failures == 9

    asyncio.run(go())


def test_a_failure_in_an_open_sandbox_is_the_engines_only_if_it_does_not_answer():
    async def go():
        a, b = FakeEngine(cpus=8), FakeEngine()
        group = group_of(a=a, b=b)
        with pytest.raises(Infrastructure, match=r"^the provider$"):
            await fail_in_a_sandbox(group, "the provider")
        assert state_of(group, "a").failures == 0
        with pytest.raises(Infrastructure, match=r"^the stream$"):
            await fail_in_a_sandbox(group, "the stream", a)
        assert state_of(group, "a").failures == 1
        async with group.open(SPEC):
            assert b.opened == 1

    asyncio.run(go())


def test_what_an_engine_kept_is_removed_when_it_answers_again():
    async def go():
        clock, a = Clock(), FakeEngine(cpus=8)
        group = group_of(clock, a=a, b=FakeEngine())
        with pytest.raises(Infrastructure, match=r"^the stream$"):
            await fail_in_a_sandbox(group, "the stream", a)
        assert len(a.left) == 1
        other = {"dgm.run": "r2"}
        a.left.append(other)
        assert await group.reap({"dgm.run": "r3"}) == 0
        a.left.append({"dgm.run": "r3"})
        a.is_away, clock.now = False, REST_S
        async with group.open(SPEC):
            assert a.left == [other]

    asyncio.run(go())


def test_where_none_answers_all_are_asked_before_an_action_fails():
    async def go():
        a, b = FakeEngine(), FakeEngine()
        group = group_of(a=a, b=b)
        a.is_away = b.is_away = True
        for _ in range(2):
            with pytest.raises(Infrastructure, match="no sandbox on the engine"):
                async with group.open(SPEC):
                    pass
        with pytest.raises(Infrastructure, match="none of the engines answers: ssh://a: no answer; ssh://b"):
            async with group.open(SPEC):
                pass
        b.is_away = False
        async with group.open(SPEC):
            assert b.opened == 1

    asyncio.run(go())


def test_a_search_does_not_begin_where_no_engine_answers():
    with pytest.raises(UserError, match=r"^no Docker sandbox: .* ssh://a: no answer; ssh://b: no answer$"):
        group_of(a=FakeEngine(is_away=True), b=FakeEngine(is_away=True))


def test_a_recipe_is_built_once_on_each_engine():
    async def go():
        a, b = FakeEngine(), FakeEngine()
        b.images.add(recipes.load("python").tag)
        group = group_of(a=a, b=b)
        async with contextlib.AsyncExitStack() as stack:
            await open_many(group, 4, stack)
        assert (a.builds, b.builds) == (["python"], ["python"])
        assert [node.images for node in group.nodes()] == [1, 0]

    asyncio.run(go())


def test_a_tasks_image_is_made_once_on_each_engine_that_a_sandbox_needs_it_on():
    async def go():
        a, b = FakeEngine(cpus=1), FakeEngine(cpus=8)
        group = group_of(a=a, b=b)
        group.task_images.build(DOCKERFILE, "dgm/task:1", network=False)
        group.task_images.hold("dgm/task:1", "/app", "dgm/task-workspace:1")
        for _ in range(2):
            async with group.open(SandboxSpec("docker:dgm/task-workspace:1")):
                assert (a.builds, b.builds) == ([], ["dgm/task:1", "dgm/task-workspace:1"])

    asyncio.run(go())


def test_an_agents_own_image_is_made_where_its_sandboxes_are():
    async def go():
        a, b = FakeEngine(cpus=1), FakeEngine(cpus=8)
        group = group_of(a=a, b=b)
        tag = group.task_images.build_agent("Dockerfile", {})
        async with group.open(SandboxSpec("python", runtime=f"docker:{tag}")):
            assert (a.builds, b.builds) == ([tag], ["python", tag])

    asyncio.run(go())


def test_an_image_that_cannot_be_made_is_an_error_that_names_the_engine():
    async def go():
        group = group_of(a=FakeEngine(), b=FakeEngine())
        group.task_images.hold("own:1", "/app", "dgm/task-workspace:1")
        async with group.open(SandboxSpec("docker:dgm/task-workspace:1")):
            pass

    with pytest.raises(UserError, match=r"^ssh://a: no image own:1 here, and no registry offers it"):
        asyncio.run(go())
