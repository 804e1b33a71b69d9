"""Where the sandboxes of two performances of one action may be."""

from dgm.sandboxes.performances import PerformancePlaces

FIRST = {"dgm.run": "r", "dgm.action": "7", "dgm.performance": "1"}
SECOND = {**FIRST, "dgm.performance": "2"}


def test_a_second_performance_is_kept_from_the_nodes_of_the_first_while_it_is_there():
    places = PerformancePlaces()
    with places.hold(FIRST, "a"):
        assert set(places.keep_apart(SECOND, ["c"], ["a", "b", "c"])) == {"a", "c"}
        assert list(places.keep_apart(FIRST, ["c"], ["a", "b", "c"])) == ["c"]
        assert list(places.keep_apart({**SECOND, "dgm.action": "8"}, ["c"], ["a", "b", "c"])) == ["c"]
        assert list(places.keep_apart({}, ["c"], ["a", "b", "c"])) == ["c"]
    assert list(places.keep_apart(SECOND, ["c"], ["a", "b", "c"])) == ["c"]


def test_the_first_performances_node_is_better_than_none():
    places = PerformancePlaces()
    with places.hold(FIRST, "a"):
        assert list(places.keep_apart(SECOND, ["b"], ["a", "b"])) == ["b"]
