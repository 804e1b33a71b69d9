"""Subsets of instances: shipped and of one's own."""

from collections import Counter

import pytest

from dgm.benchmarks.swebench_rows import Instance, read_subset
from dgm.domain import Split
from dgm.errors import UserError
from dgm.paths import asset
from tests.unit.benchmarks.test_swebench_instances import row


@pytest.fixture
def instances():
    every = [Instance.model_validate(row(n, "a/a")) for n in range(100)]
    return {each.id: each for each in every}


def shipped(name):
    """A shipped subset, over as many instances as it names and ten more."""
    ids = [
        line.strip().strip('",')
        for line in asset("benchmarks", "swebench", "subsets", f"{name}.toml").read_text().splitlines()
        if line.startswith("    ")
    ]
    every = [*ids, *(f"x__x-{n}" for n in range(10))]
    return read_subset(name, dict.fromkeys(every, Instance.model_validate(row())))


def test_the_papers_search_on_sixty():
    parts = shipped("papers-60")
    repos = Counter(task.rpartition("-")[0] for task in parts[Split.SEARCH])
    assert sum(repos.values()) == 60
    assert set(repos) == {"django__django", "sphinx-doc__sphinx"}
    assert len(parts[Split.HOLDOUT]) == 10


def test_a_larger_one_holds_140_out():
    parts = shipped("papers-200")
    assert [len(parts[split]) for split in (Split.SEARCH, Split.HOLDOUT)] == [60, 140]


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
        read_subset(str(file), instances)


def test_an_unknown_subset_is_told_with_a_suggestion(instances):
    with pytest.raises(UserError, match=r"no shipped subset and no file .did you mean 'papers-60'"):
        read_subset("paper-60", instances)


def test_the_rest_is_what_no_part_names(tmp_path, instances):
    file = tmp_path / "s.toml"
    file.write_text('search = ["a__a-1"]\npromotion = ["a__a-2"]\nholdout = "rest"')
    parts = read_subset(str(file), instances)
    assert len(parts[Split.HOLDOUT]) == 98
    assert not {"a__a-1", "a__a-2"} & set(parts[Split.HOLDOUT])
