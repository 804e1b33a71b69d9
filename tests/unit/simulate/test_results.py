"""Results that are kept in a file: known again, mended, and refused where they are none."""

import json
import math
import os
from dataclasses import replace

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.simulate.fingerprint import fingerprint
from dgm.simulate.results import Results
from dgm.simulate.study import carry_out
from dgm.simulate.trial import SHARES
from tests.support.studies import CELL, STUDY, result, silent


@pytest.mark.slow
def test_what_is_known_is_not_done_again(tmp_path):
    file, counts = tmp_path / "results.jsonl", []
    with Results(file) as results:
        first = carry_out(STUDY, results, 1, silent)
    with Results(file) as results:
        again = carry_out(STUDY, results, 1, lambda done, of: counts.append((done, of)))
    assert again == first
    assert len(first) == len(file.read_text().splitlines()) == 8
    assert counts == [(0, 0)]


def test_a_torn_last_line_is_dropped_and_done_again(tmp_path):
    file = tmp_path / "results.jsonl"
    with Results(file) as results:
        first = carry_out(STUDY, results, 1, silent)
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])
    with Results(file) as results:
        again = carry_out(STUDY, results, 1, silent)
    assert [again[trial].curve for trial in again] == [first[trial].curve for trial in first]
    lines = [json.loads(line)["trial"] for line in file.read_text().splitlines()]
    assert len(lines) == len({tuple(line.values()) for line in lines}) == 8


def test_results_of_other_code_are_left_alone(tmp_path):
    file = tmp_path / "results.jsonl"
    trial = CELL.trial("random", "drift", 0)
    with Results(file) as results:
        results.add(trial, result(0.5))
    file.write_text(file.read_text().replace(fingerprint("random", "drift", CELL.budget), "0" * 16))
    with Results(file) as results:
        assert results.get(trial) is None
    assert len(file.read_text().splitlines()) == 1


def test_half_a_line_is_taken_back(tmp_path, monkeypatch):
    file, trial = tmp_path / "results.jsonl", CELL.trial("random", "drift", 0)
    with Results(file) as results:
        results.add(trial, result(0.5))
        before, write = file.read_bytes(), os.write
        monkeypatch.setattr(os, "write", lambda where, line: write(where, line[:10]))
        other = replace(trial, seed=1)
        with pytest.raises(Infrastructure, match="No space left"):
            results.add(other, result(0.4))
        assert file.read_bytes() == before
        assert results.get(other) is None


@pytest.mark.parametrize(
    ("part", "field", "value", "why"),
    [
        ("trial", "seed", [0], "seed: Input should be a valid integer"),
        ("trial", "budget", "many", "budget: Input should be a valid integer"),
        ("trial", "colour", "red", "trial: unknown field colour"),
        ("result", "final", "good", "final: Input should be a valid number"),
        ("result", "final", math.nan, "NaN is no finite number"),
        ("result", "final", -math.inf, "-Infinity is no finite number"),
        ("result", "agents", None, "agents: Input should be a valid integer"),
        ("result", "curve", [0.1], f"curve: 1 scores instead of {len(SHARES)}"),
    ],
)
def test_a_field_that_is_no_value_is_one_clear_line(tmp_path, part, field, value, why):
    file = tmp_path / "results.jsonl"
    with Results(file) as results:
        results.add(CELL.trial("random", "drift", 0), result(0.5))
    line = json.loads(file.read_text())
    line[part][field] = value
    file.write_text(json.dumps(line) + "\n")
    with pytest.raises(UserError) as caught:
        Results(file)
    said = str(caught.value)
    assert said.startswith(f"{file}:1: not a result (")
    assert why in said
    assert "\n" not in said


def test_results_of_another_format_are_left_alone(tmp_path):
    file, trial = tmp_path / "results.jsonl", CELL.trial("random", "drift", 0)
    with Results(file) as results:
        results.add(trial, result(0.5))
    line = json.loads(file.read_text())
    del line["result"]["hours"]
    file.write_text(json.dumps(line) + "\n")
    with Results(file) as results:
        assert results.get(trial) is None


def test_a_seed_in_quotes_is_a_seed(tmp_path):
    file, trial = tmp_path / "results.jsonl", CELL.trial("random", "drift", 0)
    with Results(file) as results:
        results.add(trial, result(0.5))
    file.write_text(file.read_text().replace('"seed": 0', '"seed": "0"'))
    with Results(file) as results:
        assert results.get(trial) == result(0.5)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"my notes", "Expecting value: line 1 column 1 (char 0)"),
        (b'"\xff"', "it is not UTF-8"),
        (b"3", "wants an object with trial, version and result"),
        (
            b'{"trial": {}, "version": "0", "result": "gone"}',
            "wants an object with trial, version and result",
        ),
        (b'{"trial": {"policy": "hgm"}, "version": "0", "result": {}}', "family: Field required"),
        (b'{"trial": {}, "version": "0", "result": {"final": 1e999}}', "1e999 is no finite number"),
    ],
)
def test_why_a_line_is_no_result_is_said_in_words(tmp_path, line, why):
    file = tmp_path / "results.jsonl"
    file.write_bytes(line + b"\n")
    with pytest.raises(UserError) as caught:
        Results(file)
    assert str(caught.value) == f"{file}:1: not a result ({why}); mend that line, or choose another file"


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b'{"trial": {}}\n', b'{"other": 1}\n{"tr'])
def test_a_file_of_something_else_is_refused_and_kept(tmp_path, content):
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"notes\.txt"):
        Results(file)
    assert file.read_bytes() == content


def test_two_studies_do_not_write_one_file_at_once(tmp_path):
    with Results(tmp_path / "results.jsonl"), pytest.raises(UserError, match="another study"):
        Results(tmp_path / "results.jsonl")
