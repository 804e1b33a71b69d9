"""The programs that make the tables of ``docs/policies.md``."""

import json
import lzma
import sys
from dataclasses import replace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "policies"
BLOCKS = ("reported", "finals", "pair", "reserved", "cells", "offline")


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Both, writing to a folder of the test's own."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import offline
    import tables

    page = tmp_path / "policies.md"
    page.write_text("".join(f"{name}\n<!-- {name} -->\nold\n<!-- end -->\n" for name in BLOCKS))
    (tmp_path / "pictures").mkdir()
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    monkeypatch.setattr(tables, "KEPT", tmp_path / "kept.xz")
    monkeypatch.setattr(tables, "WORK", tmp_path / "work")
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "work" / "results.jsonl")
    monkeypatch.setattr(offline, "PAGE", page)
    monkeypatch.setattr(offline, "KEPT", tmp_path / "offline.jsonl")
    yield tables, offline, page
    for name in ("offline", "tables", "blocks"):
        sys.modules.pop(name, None)


def test_kept_results_are_not_performed_again_and_all_tables_are_filled_in(programs, monkeypatch, tmp_path):
    tables, _, page = programs
    few = "--policy lineage --policy hgm --family drift --family hopeless --seeds 2 --budget 12"
    monkeypatch.setattr(tables, "PARTS", [replace(part, arguments=few) for part in tables.PARTS[:3]])
    monkeypatch.setattr(sys, "argv", ["tables"])

    assert tables.main() == 0

    kept = lzma.decompress(tables.KEPT.read_bytes()).decode().splitlines()
    assert len(kept) == 8
    old = {**json.loads(kept[0]), "version": "of an older policy"}
    tables.KEPT.write_bytes(lzma.compress(("\n".join([json.dumps(old), *kept[2:]]) + "\n").encode()))
    began = f'{kept[1]}\n{{"trial": {{'
    tables.RESULTS.write_text(began)
    assert tables.main() == 0
    performed = tables.RESULTS.read_text().splitlines()
    assert performed[:-1] == [kept[1], json.dumps(old), *kept[2:]], "both kept and at hand; no half line"
    assert json.loads(performed[-1])["trial"] == old["trial"]
    again = lzma.decompress(tables.KEPT.read_bytes()).decode().splitlines()
    assert [json.loads(line)["trial"] for line in again] == [json.loads(line)["trial"] for line in kept]

    text = page.read_text()
    assert text.count("old") == 1, "all but the offline table"
    assert "| `drift` |" in text
    assert "| **mean** |" in text
    assert "| budget 200 | " in text
    whole = (tmp_path / "policy-tables.md").read_text()
    assert [line[3:] for line in whole.splitlines() if line.startswith("## ")] == [
        p.title for p in tables.PARTS
    ]
    assert whole.count("final: true score") == 1
    assert whole.count("**drift (2 seeds)**") == 2, "not of cells"
    assert (tmp_path / "pictures" / "policies.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "text", ["no block", "<!-- offline -->\nno end", "<!-- offline -->\n<!-- a -->\n<!-- end -->"]
)
def test_a_page_without_a_block_is_refused_and_left_alone(programs, text):
    _, offline, page = programs
    page.write_text(text)

    with pytest.raises(SystemExit, match="has no block <!-- offline -->"):
        offline.fill_in(page, {"offline": "new"})

    assert page.read_text() == text


def test_offline_searches_are_kept_one_by_one(programs, monkeypatch):
    _, offline, page = programs
    done, most = [], [5]

    def search(one):
        if len(done) == most[0]:
            raise KeyboardInterrupt
        done.append((one["seed"], one["policy"]))
        return {"agents": 60, "depth": 4, "tasks": 20, "seed_resolved": 7, "best_resolved": one["seed"] + 9}

    monkeypatch.setattr(offline, "search", search)
    monkeypatch.setattr(sys, "argv", ["offline", "--searches", "2"])

    with pytest.raises(KeyboardInterrupt):
        offline.main()
    assert len(offline.KEPT.read_text().splitlines()) == 5
    with offline.KEPT.open("a") as file:
        file.write('{"half')
    most[0] = 8
    assert offline.main() == 0

    assert done == [(seed, policy) for seed in (1, 2) for policy in offline.POLICIES]
    assert "| lineage | 60 | 4.0 | 10, 11 |" in page.read_text()


def test_offline_searches_are_compared_in_pairs(programs):
    _, offline, _ = programs
    resolved = {"lineage": (12, 9, 11), "hgm": (10, 9, 8), "dgm": (7,)}
    lines = [
        {"policy": policy, "seed": seed, "agents": 60, "depth": 4, "tasks": 20, "best_resolved": count}
        for policy, counts in resolved.items()
        for seed, count in enumerate(counts, 1)
    ]

    rows = offline.table(lines).splitlines()

    assert "resolved of 20" in rows[0]
    assert rows[2].startswith("| lineage | 60 | 4.0 | 12, 9, 11 | 10.7 [9.0, 11.7] | +1.7 [")
    assert rows[2].endswith("| 2, 1, 0 |")
    assert rows[3].endswith("| – | – |")
    assert len(rows) == 4, "one search is no sample"
