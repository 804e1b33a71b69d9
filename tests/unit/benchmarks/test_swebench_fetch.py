"""Fetching instances' images: several at once, once only, within a budget."""

import threading

import pytest

from dgm.benchmarks.swebench_images import fetch
from dgm.benchmarks.swebench_rows import Instance
from dgm.errors import Infrastructure, UserError
from tests.unit.benchmarks.test_swebench_instances import Shelf, row

GB = 1_000_000_000


def instances(count):
    return [Instance.model_validate(row(n, "a/a", image=f"a-{n}:1")) for n in range(count)]


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
    return Disk(*here, offers={each.image for each in instances(count)})


def test_each_is_pulled_once_and_reported():
    store, steps = all_offered(5), []
    first = fetch(instances(5), {}, store, workers=3, progress=lambda *step: steps.append(step))
    assert sorted(first.ready) == [each.id for each in instances(5)]
    assert {words for _, words in steps} == {"preparing", "pulling 500 of 1000 MB", "ready"}
    assert len(steps) == 15
    again = fetch(instances(5), {}, store)
    assert len(again.ready) == 5
    assert len(store.pulled) == 5


def test_an_interrupted_fetch_goes_on_where_it_was():
    store, seen = all_offered(6), []

    def stop(_instance, words):
        if words == "ready":
            seen.append(words)
            if len(seen) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(instances(6), {}, store, workers=1, progress=stop)
    assert len(fetch(instances(6), {}, store, workers=2).ready) == 6
    assert len(store.pulled) == len(set(store.pulled)) == 6


def test_several_are_under_way_at_once():
    meeting = threading.Barrier(3, timeout=20)

    class Waiting(Disk):
        def pull(self, reference, progress=None):
            meeting.wait()
            super().pull(reference, progress)

    store = Waiting(offers={each.image for each in instances(3)})
    assert len(fetch(instances(3), {}, store, workers=3).ready) == 3


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

    store = Flaky(offers={each.image for each in instances(4)})
    done = fetch(instances(4), {}, store)
    assert sorted(done.ready) == ["a__a-0", "a__a-3"]
    assert done.failed == {
        "a__a-1": "the registry hung up",
        "a__a-2": "a__a-2: no git repository at /testbed",
    }


def test_unused_images_make_room():
    store = all_offered(2, "dgm/instance:old1", "dgm/instance:old2", "somebody/else:1")
    done = fetch(instances(2), {}, store, workers=1, disk_gb=3)
    assert done.removed == ["dgm/instance:old1"]
    assert {"dgm/instance:old2", "somebody/else:1"} <= store.here


def test_fetching_stops_at_the_budget():
    store = all_offered(4)
    done = fetch(instances(4), {}, store, workers=1, disk_gb=1.5)
    assert done.ready == ["a__a-0", "a__a-1"]
    assert "take 2.0 GB, and 1.5 GB are allowed: raise benchmarks.swebench.disk_gb" in done.failed["a__a-3"]
    assert done.removed == []
