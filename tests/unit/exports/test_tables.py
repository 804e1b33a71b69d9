"""Exported tables, read back by pandas, add up to what the run says."""

import sys

import pandas
import pytest

from dgm.analysis.accounts import Accounts, Purpose
from dgm.archive.events import ModelCalled, TaskGraded
from dgm.archive.run import Run
from dgm.domain import Verdict
from dgm.errors import UserError
from dgm.exports import tables
from dgm.exports.tables import EVALUATIONS, SPEND, write_table
from dgm.render.safe import neutralise

pytestmark = pytest.mark.slow

READERS = {
    ".csv": lambda path: pandas.read_csv(path, keep_default_na=False, quotechar='"'),
    ".parquet": pandas.read_parquet,
}
COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "written_tokens", "reasoning_tokens")


@pytest.fixture(params=READERS)
def exported(request, run, tmp_path):
    """Writes a table of the run and reads it back."""

    def write_and_read(table):
        file = tmp_path / f"table{request.param}"
        count = write_table(run, table, file)
        frame = READERS[request.param](file)
        assert len(frame) == count
        assert list(frame.columns) == [name for name, _ in table.columns]
        return frame

    return write_and_read


@pytest.mark.starts_processes
def test_verdicts_add_up_to_the_trees_tallies(run, exported) -> None:
    frame = exported(EVALUATIONS)
    for agent in run.tree.agents:
        mine = frame[frame.agent == agent.id]
        own = run.tree.own(agent.id)
        assert ((mine.verdict == "resolved").sum(), (mine.verdict == "unresolved").sum()) == (
            own.resolved,
            own.unresolved,
        )
    assert (frame.verdict == "invalid").sum() == run.tree.invalid
    assert frame.event.is_monotonic_increasing
    assert frame.attempt.min() == 1


def test_calls_add_up_to_the_runs_spend(run, exported) -> None:
    frame = exported(SPEND)
    spend = run.tree.spend
    assert len(frame) == spend.calls
    assert frame.usd.sum() == pytest.approx(spend.usd, abs=1e-9)
    assert [frame[name].sum() for name in COUNTS] == [getattr(spend, name) for name in COUNTS]
    accounts = Accounts(run)
    for agent in run.tree.agents:
        for purpose in Purpose:
            mine = frame[(frame.agent == agent.id) & (frame.purpose == purpose.value)]
            assert mine.input_tokens.sum() == accounts.of(agent.id).of(purpose).input_tokens


def test_texts_are_neutralised_and_times_are_times(run, exported) -> None:
    frame = exported(EVALUATIONS)
    graded = [item for item in run.store.read() if isinstance(item.event, TaskGraded)]
    for row, recorded in zip(frame.itertuples(), graded, strict=True):
        done = recorded.event.outcome
        assert row.task.removeprefix("'") == neutralise(done.task)
        assert row.reason.removeprefix("'") == neutralise(done.reason)
        assert pandas.Timestamp(row.graded_at).timestamp() == pytest.approx(recorded.at, abs=1e-5)
        assert row.score == done.score
        assert Verdict(row.verdict) is done.verdict


def test_a_spreadsheet_computes_nothing_of_what_agents_wrote(hostile_folder, tmp_path) -> None:
    with Run.open(hostile_folder) as run:
        write_table(run, EVALUATIONS, tmp_path / "t.csv")
        write_table(run, EVALUATIONS, tmp_path / "t.parquet")
    reasons = READERS[".csv"](tmp_path / "t.csv").reason
    assert (reasons.str.startswith("'=HYPERLINK")).any()
    assert not reasons.str.match(r"[=+\-@\t]").any()
    assert READERS[".parquet"](tmp_path / "t.parquet").reason.str.startswith("=HYPERLINK").any()


def test_a_long_run_is_written_in_pieces(paid_folder, tmp_path, monkeypatch) -> None:
    with Run.open(paid_folder) as run:
        write_table(run, SPEND, tmp_path / "whole.csv")
        monkeypatch.setattr(tables, "PIECE", 3)
        write_table(run, SPEND, tmp_path / "pieces.csv")
        calls = [item.seq for item in run.store.read() if isinstance(item.event, ModelCalled)]
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "pieces.csv").read_bytes()
    assert READERS[".csv"](tmp_path / "pieces.csv").event.tolist() == calls


def test_what_is_appended_meanwhile_is_left_out(paid_folder, tmp_path) -> None:
    with Run.open(paid_folder) as run:
        run.tree.seq -= 5
        wanted = sum(
            isinstance(item.event, ModelCalled) for item in run.store.read() if item.seq <= run.tree.seq
        )
        assert write_table(run, SPEND, tmp_path / "t.csv") == wanted


def test_without_pyarrow_one_line_says_what_to_install(paid_folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with Run.open(paid_folder) as run:
        with pytest.raises(UserError, match=r"pip install 'dgm\[parquet\]', or name a \.csv"):
            write_table(run, SPEND, tmp_path / "t.parquet")
        write_table(run, SPEND, tmp_path / "t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("table", [EVALUATIONS, SPEND])
def test_every_row_carries_run_policy_and_seed(paid_folder, tmp_path, table) -> None:
    with Run.open(paid_folder) as run:
        write_table(run, table, tmp_path / "t.csv")
    frame = READERS[".csv"](tmp_path / "t.csv")
    assert list(frame.columns[:3]) == ["run", "policy", "seed"]
    assert frame[["run", "policy", "seed"]].drop_duplicates().values.tolist() == [["paid", "lineage", 0]]
