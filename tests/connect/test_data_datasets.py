"""Exported data sets loaded by ``datasets`` without a network, in the forms that trainers expect."""

import os
from collections import Counter

import pytest

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

from dgm.api.exporting import export
from dgm.archive.run import Run
from dgm.domain import Verdict
from dgm.exports.huggingface import write_dataset
from dgm.messages import Reply
from tests.support.runs.hostile import hostile_folder
from tests.support.runs.packable import ALICE, begin
from tests.unit.exports.test_huggingface import evaluate

pytestmark = [pytest.mark.connect, pytest.mark.starts_processes]
datasets = pytest.importorskip("datasets")

__all__ = ["hostile_folder"]


@pytest.fixture
def load(tmp_path):
    def load(folder):
        names = datasets.get_dataset_config_names(str(folder))
        return {
            name: datasets.load_dataset(str(folder), name, split="train", cache_dir=str(tmp_path / "cache"))
            for name in names
        }

    return load


def test_every_configuration_is_loaded_with_its_rows(load, tmp_path):
    counts = export("example", f"hf:{tmp_path / 'data'}").counts
    assert {name: len(rows) for name, rows in load(tmp_path / "data").items()} == counts


def test_rows_have_what_trainers_expect(load, tmp_path):
    export("example", f"hf:{tmp_path / 'data'}")
    loaded = load(tmp_path / "data")
    (tool, *_), turns = loaded["sft"][0]["tools"], loaded["sft"][0]["messages"]
    assert tool["type"] == "function"
    assert isinstance(tool["function"]["parameters"], dict)
    (call,) = next(turn["tool_calls"] for turn in turns if turn["tool_calls"])
    assert isinstance(call["function"]["arguments"], dict)
    (pair,) = loaded["preferences"]
    assert [turn["role"] for turn in pair["prompt"]] == ["system", "user"]
    assert {pair[name][0]["role"] for name in ("chosen", "rejected")} == {"assistant"}
    assert pair["chosen"] != pair["rejected"]


def test_hostile_texts_are_loaded(load, hostile_folder, tmp_path):
    with Run.open(hostile_folder) as run:
        counts = write_dataset(run, None, tmp_path / "data", ALICE)
    loaded = load(tmp_path / "data")
    assert {name: len(loaded[name]) for name in loaded} == {name: n for name, n in counts.items() if n}
    assert [list(rows) for rows in loaded.values()]


def test_conversation_of_fifty_megabytes_is_loaded(load, tmp_path):
    huge = "x" * 2_000_000
    with begin(tmp_path / "run") as run:
        evaluate(run, Verdict.RESOLVED, *[Reply(f"{number}{huge}") for number in range(24)])
        write_dataset(run, None, tmp_path / "data", ALICE)
    (row,) = load(tmp_path / "data")["sft"]
    assert Counter(turn["role"] for turn in row["messages"])["assistant"] == 24
    assert sum(len(turn["content"]) for turn in row["messages"]) > 48_000_000


def test_suite_is_loaded_with_its_splits(tmp_path):
    counts = export("starter", f"hf:{tmp_path / 'suite'}").counts
    loaded = datasets.load_dataset(str(tmp_path / "suite"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(rows) for name, rows in loaded.items()} == counts
    assert loaded["search"][0]["files"][0]["encoding"] == "utf-8"
