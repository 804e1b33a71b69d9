"""Fetching instances' images: several at once, once only, within a budget."""

import threading

import pytest

from dgm.benchmarks.swebench_fetch import Stage, estimate, fetch
from dgm.benchmarks.swebench_images import published, tag_of
from dgm.benchmarks.swebench_instances import Instance
from dgm.errors import Infrastructure, UserError
from tests.unit.benchmarks.test_swebench_instances import Shelf

GB = 1_000_000_000


def instances(count):
    return [Instance(f"a__a-{n}", "a/a", "1", "c", "p", "d", "t", ("x",), ()) for n in range(count)]


class Disk(Shelf):
    """A store whose every image takes a gigabyte."""

    def __init__(self, *here, **more):
        super().__init__(*here, **more)
        self.collected = []

    def pull(self, reference, progress=None):
        progress(GB // 2, GB)
        super().pull(reference)

    def disk_bytes(self):
        return GB * sum(each.startswith("dgm/instance") for each in self.here)

    def collect(self, limit_bytes, spared=()):
        for each in sorted(self.here):
            if self.disk_bytes() > limit_bytes and each.startswith("dgm/instance") and each not in spared:
                self.here.remove(each)
                self.collected.append(each)
        return self.collected[:]


def all_offered(count, *here):
    return Disk(*here, offers={published(each.id) for each in instances(count)})


def test_each_is_pulled_once_and_told_of():
    store, steps = all_offered(5), []
    first = fetch(instances(5), {}, store, at_once=3, report=steps.append)
    assert sorted(first.ready) == [each.id for each in instances(5)]
    assert {step.stage for step in steps} == {Stage.PULLING, Stage.PREPARING, Stage.READY}
    assert [(step.came, step.size) for step in steps if step.stage is Stage.PULLING] == [(GB // 2, GB)] * 5
    again = fetch(instances(5), {}, store)
    assert len(again.ready) == 5
    assert len(store.pulled) == 5


def test_an_interrupted_fetch_goes_on_where_it_was():
    store, seen = all_offered(6), []

    def stop(step):
        if step.stage is Stage.READY:
            seen.append(step)
            if len(seen) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(instances(6), {}, store, at_once=1, report=stop)
    assert len(store.pulled) < 6
    assert len(fetch(instances(6), {}, store, at_once=2).ready) == 6
    assert len(store.pulled) == len(set(store.pulled)) == 6


def test_several_are_under_way_at_once():
    meeting = threading.Barrier(3, timeout=20)

    class Waiting(Disk):
        def pull(self, reference, progress=None):
            meeting.wait()
            super().pull(reference, progress)

    store = Waiting(offers={published(each.id) for each in instances(3)})
    assert len(fetch(instances(3), {}, store, at_once=3).ready) == 3


def test_one_that_fails_does_not_stop_the_others():
    class Flaky(Disk):
        def pull(self, reference, progress=None):
            if "a-1" in reference:
                raise Infrastructure("the registry hung up")
            super().pull(reference, progress)

        def prepare(self, reference, tag):
            if "a-2" in reference:
                raise UserError("no git repository at /testbed")
            return super().prepare(reference, tag)

    store = Flaky(offers={published(each.id) for each in instances(4)})
    done = fetch(instances(4), {}, store)
    assert sorted(done.ready) == ["a__a-0", "a__a-3"]
    assert done.failed == {"a__a-1": "the registry hung up", "a__a-2": "no git repository at /testbed"}


def test_unused_images_make_room():
    store = all_offered(2, "dgm/instance:old1", "dgm/instance:old2", "somebody/else:1")
    done = fetch(instances(2), {}, store, at_once=1, disk_gb=3)
    assert done.removed == ["dgm/instance:old1"]
    assert {"dgm/instance:old2", "somebody/else:1"} <= store.here


def test_fetching_stops_at_the_budget():
    store = all_offered(4)
    done = fetch(instances(4), {}, store, at_once=1, disk_gb=1.5)
    assert done.ready == ["a__a-0", "a__a-1"]
    assert "take 2.0 GB, and 1.5 GB are allowed: raise benchmarks.swebench.disk_gb" in done.failed["a__a-3"]
    assert done.removed == []


@pytest.mark.starts_processes
def test_without_a_registry_the_reason_names_all_ways():
    done = fetch(instances(1), {}, Disk())
    said = done.failed["a__a-0"]
    assert all(word in said for word in ("no registry offers", "is not here", "benchmarks.swebench.images"))


def test_the_estimate_counts_what_is_missing():
    few = instances(4)
    store = all_offered(4, tag_of(few[0], {}), published(few[1].id))
    told = estimate(few, {}, store)
    assert (told.here, told.missing) == (1, 3)
    assert store.pulled == []
