"""What a node does by itself: it ends the sandboxes of silent heads, and serves no older head after a newer one."""

import asyncio
import os

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes.ray import keeper as keepers
from dgm.sandboxes.ray.keeper import NodeKeeper
from dgm.sandboxes.ray.wire import HeadSession, decode, encode
from tests.support.local_cluster import ENGINE, PlainEngine


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    PlainEngine.left.clear()
    monkeypatch.setattr(keepers.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(keepers, "_LOOK_EVERY_S", 0.01)


def session(ident, incarnation, lease_s=30.0, has_demand=False):
    return encode(HeadSession(ident, incarnation, lease_s, 10**9, ENGINE, has_demand=has_demand))


def perform(test, withdraw=lambda: None):
    now, ended = [100.0], []

    async def go():
        keeper = NodeKeeper(lambda: ended.append(True), lambda: now[0], withdraw)
        try:
            await test(keeper, now)
        finally:
            keeper.close()

    asyncio.run(asyncio.wait_for(go(), 30))
    return ended


def test_a_silent_heads_sandboxes_end_and_a_speaking_ones_stay():
    async def test(keeper, now):
        for ident in ("silent", "speaking"):
            await keeper.begin(session(ident, 1))
            await keeper.admit(ident, f"box of {ident}", ident)
            PlainEngine.left.append({"dgm.run": ident, "dgm.session": ident})
        now[0] += 20
        decode(await keeper.renew("speaking"), str)
        now[0] += 20
        while len(PlainEngine.left) > 1:
            await asyncio.sleep(0.01)
        assert PlainEngine.left == [{"dgm.run": "speaking", "dgm.session": "speaking"}]
        for answer in (await keeper.renew("silent"), await keeper.admit("silent", "box", "r")):
            with pytest.raises(Infrastructure, match="no lease of this process"):
                decode(answer, str)

    perform(test)


def test_a_silent_heads_wish_for_room_is_withdrawn_unless_another_head_has_one():
    withdrawn = []

    async def test(keeper, now):
        for ident, lease_s in (("first", 10.0), ("second", 60.0)):
            await keeper.begin(session(ident, 1, lease_s, has_demand=True))
        for left, expected in ((1, []), (0, [True])):
            now[0] += 40
            while len(keeper._leases) > left or len(withdrawn) < len(expected):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.03)
            assert withdrawn == expected

    perform(test, lambda: withdrawn.append(True))


def test_an_older_head_is_fenced_off_and_its_sandboxes_end():
    async def test(keeper, _):
        await keeper.begin(session("old", 1))
        decode(await keeper.admit("old", "box", "run"), str)
        PlainEngine.left += [
            {"dgm.run": "run", "dgm.session": "old"},
            {"dgm.run": "another", "dgm.session": "old"},
        ]
        await keeper.begin(session("new", 2))
        decode(await keeper.admit("new", "box 2", "run"), str)
        assert PlainEngine.left == [{"dgm.run": "another", "dgm.session": "old"}]
        with pytest.raises(Infrastructure, match="a newer process of dgm works on this run"):
            decode(await keeper.admit("old", "box 3", "run"), str)
        decode(await keeper.admit("old", "box 4", "another"), str)

    perform(test)


def test_an_idle_keeper_ends_itself_and_its_folder(tmp_path):
    async def test(keeper, now):
        await keeper.begin(session("one", 1))
        await keeper.finish("one")
        await asyncio.sleep(0.05)
        assert list(tmp_path.iterdir())
        now[0] += keepers.IDLE_S + 1
        while list(tmp_path.iterdir()):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)

    assert perform(test)


def test_what_dead_keepers_left_on_disk_goes(tmp_path):
    dead, other = (tmp_path / f"dgm-node-{os.getuid()}-{pid}-x" for pid in (2**22 + 1, os.getpid()))
    for each in (dead, other):
        (each / "folders").mkdir(parents=True)

    async def test(_keeper, _):
        assert (dead.exists(), other.exists()) == (False, True)

    perform(test)
