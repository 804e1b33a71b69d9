"""Benchmarks and subsets that are named by their paths are found again from another folder."""

import pytest

from dgm.benchmarks.opening import make_paths_absolute
from dgm.config import Settings


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "suites" / "own").mkdir(parents=True)
    (tmp_path / "suites" / "own" / "suite.toml").write_text("")
    (tmp_path / "suites" / "starter").symlink_to("own")
    (tmp_path / "exercises").mkdir()
    for name in ("rows.jsonl", "verified", "subset.toml"):
        (tmp_path / name).write_text("")
    (tmp_path / "link.jsonl").symlink_to("rows.jsonl")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(benchmark, subset=None):
    settings = make_paths_absolute(Settings(benchmark=benchmark, benchmarks={"swebench": {"subset": subset}}))
    return settings.benchmark, settings.benchmarks.swebench.subset


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("suites/own", "{}/suites/own"),
        ("swebench:rows.jsonl", "swebench:{}/rows.jsonl"),
        ("swebench:link.jsonl", "swebench:{}/link.jsonl"),
        ("polyglot:exercises", "polyglot:{}/exercises"),
        ("starter+suites/own+polyglot:./exercises", "starter+{0}/suites/own+polyglot:{0}/exercises"),
    ],
)
def test_paths_become_absolute(here, given, found):
    assert made(given)[0] == found.format(here)


@pytest.mark.parametrize(
    "name",
    ["starter", "swebench:verified", "swebench:no.jsonl", "polyglot:", "polyglot:https://example.org/a@v1", "plug-in"],
)  # fmt: skip
def test_names_stay_as_they_are(here, monkeypatch, name):
    assert made(name)[0] == name
    monkeypatch.chdir(here / "suites")
    assert made("starter")[0] == "starter"


def test_subsets_become_absolute_unless_they_are_shipped(here):
    from dgm.benchmarks.swebench_rows import subset_names as names

    shipped = names()[0]
    (here / shipped).write_text("")
    assert made("starter", "subset.toml")[1] == f"{here}/subset.toml"
    assert made("starter", shipped)[1] == shipped
    assert made("starter", "gone.toml")[1] == "gone.toml"
