"""Subsets of instances: shipped, of one's own, drawn."""

from collections import Counter

import pytest

from dgm.benchmarks import swebench_subsets as subsets
from dgm.benchmarks.swebench_instances import Instance
from dgm.domain import Split
from dgm.errors import UserError


def made(number, repo, difficulty=""):
    name = f"{repo.replace('/', '__')}-{number}"
    return Instance(name, repo, "1.0", "c", "p", "d", "t", ("a",), (), difficulty)


@pytest.fixture
def instances():
    """Of three repositories: 60, 30 and 10, a third of each of them hard."""
    sizes = {"a/a": 60, "b/b": 30, "c/c": 10}
    every = [
        made(n, repo, "hard" if n % 3 == 0 else "easy") for repo, size in sizes.items() for n in range(size)
    ]
    return {each.id: each for each in every}


def shipped(name):
    """A shipped subset, over as many instances as it names and ten more."""
    ids = [
        line.strip().strip('",')
        for line in subsets.asset("benchmarks", "swebench", "subsets", f"{name}.toml")
        .read_text()
        .splitlines()
        if line.startswith("    ")
    ]
    every = [*ids, *(f"x__x-{n}" for n in range(10))]
    return subsets.read(name, {task: made(0, "x/x") for task in every})


def test_the_papers_search_on_sixty():
    subset = shipped("papers-60")
    repos = Counter(task.rpartition("-")[0] for task in subset.parts[Split.SEARCH])
    assert sum(repos.values()) == 60
    assert set(repos) == {"django__django", "sphinx-doc__sphinx"}
    assert len(subset.parts[Split.HOLDOUT]) == 10
    assert "jennyzzt/dgm" in subset.source


def test_a_larger_one_holds_140_out():
    subset = shipped("papers-200")
    assert [len(subset.parts[split]) for split in (Split.SEARCH, Split.HOLDOUT)] == [60, 140]


def test_every_shipped_subset_names_its_source():
    for name in subsets.names():
        assert shipped(name).source


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('search = ["a__a-1", "a__a-x"]', r"s.toml:1: unknown instance 'a__a-x' \(did you mean 'a__a-"),
        (
            'search = [\n"a__a-1",\n"zzz",\n]',
            r"s.toml:3: unknown instance 'zzz' \(the data set has 100 others\)",
        ),
        ('search = ["a__a-1", "a__a-1"]', "'a__a-1' is named twice"),
        ('search = ["a__a-1"]\nholdout = ["a__a-1"]', "s.toml:2: 'a__a-1' is in search and in holdout"),
        ('serch = ["a__a-1"]', "s.toml:1: serch: unknown key .did you mean 'search'"),
        ("search = []", "search: missing or empty"),
        ('holdout = ["a__a-1"]', "search: missing or empty"),
        ('search = "all"', "'all' is none of rest"),
        ('search = "rest"\nholdout = "rest"', "both search and holdout are 'rest'"),
        ("search = [1]", "1 is not a text"),
        ("search = [", "not valid TOML"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(tmp_path, instances, text, problem):
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=problem):
        subsets.read(str(file), instances)


def test_an_unknown_subset_is_told_with_a_suggestion(instances):
    with pytest.raises(UserError, match=r"no shipped subset and no file .did you mean 'papers-60'"):
        subsets.read("paper-60", instances)


def test_without_a_subset_all_is_searched_on(instances):
    assert subsets.everything(instances).parts == {Split.SEARCH: tuple(instances)}


def test_the_rest_is_what_no_part_names(tmp_path, instances):
    file = tmp_path / "s.toml"
    file.write_text('search = ["a__a-1"]\npromotion = ["a__a-2"]\nholdout = "rest"')
    parts = subsets.read(str(file), instances).parts
    assert len(parts[Split.HOLDOUT]) == 98
    assert not {"a__a-1", "a__a-2"} & set(parts[Split.HOLDOUT])


def test_a_drawn_subset_is_made_up_like_the_whole(instances):
    subset = subsets.draw(instances, 20, 30, seed=1)
    search, holdout = (subset.parts[split] for split in (Split.SEARCH, Split.HOLDOUT))
    assert not set(search) & set(holdout)
    assert Counter(instances[task].repo for task in search) == {"a/a": 12, "b/b": 6, "c/c": 2}
    assert Counter(instances[task].repo for task in holdout) == {"a/a": 18, "b/b": 9, "c/c": 3}
    assert 6 <= sum(instances[task].difficulty == "hard" for task in search) <= 8


def test_the_same_seed_draws_the_same_whatever_the_order(instances):
    turned = dict(reversed(instances.items()))
    assert subsets.draw(instances, 10, 10, 3) == subsets.draw(turned, 10, 10, 3)
    assert subsets.draw(instances, 10, 10, 3).parts != subsets.draw(instances, 10, 10, 4).parts


@pytest.mark.parametrize("numbers", [(0, 0), (101, 0), (60, 41), (1, -1)])
def test_more_than_there_is_cannot_be_drawn(instances, numbers):
    with pytest.raises(UserError, match="cannot draw"):
        subsets.draw(instances, *numbers)


def test_all_can_be_drawn(instances):
    parts = subsets.draw(instances, 37, 63).parts
    assert len({task for tasks in parts.values() for task in tasks}) == 100


def test_a_drawn_subset_is_read_back(tmp_path, instances):
    subset = subsets.draw(instances, 7, 5)
    file = tmp_path / "drawn.toml"
    file.write_text(subsets.text(subset))
    assert subsets.read(str(file), instances) == subset


def test_each_instance_has_one_split(instances):
    subset = subsets.draw(instances, 7, 5)
    assert {split: len(tasks) for split, tasks in subset.parts.items()} == {Split.SEARCH: 7, Split.HOLDOUT: 5}
