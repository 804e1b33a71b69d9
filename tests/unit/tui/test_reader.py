"""The thread that reads a run for the browser."""

import asyncio
from pathlib import Path

import pytest

from dgm.analysis.agents import best_of
from dgm.errors import Infrastructure, UserError
from dgm.tui.reader import BackgroundReader, ReaderClosed
from tests.support.runs.growing import Growing


def test_rows_are_sent_when_they_change(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")
    growing.born(0)

    async def read() -> None:
        reader = BackgroundReader(tmp_path / "run")
        await reader.open()
        news = await reader.follow()
        assert [row.agent for row in news.rows] == [0, 1]
        assert (news.state, news.living, news.agents, news.newest) == ("running", True, 2, 1)
        assert (await reader.follow()).rows == []
        growing.graded(1, 0, good=True)
        news = await reader.follow()
        assert [(row.agent, row.own.n, row.clade.n) for row in news.rows] == [(0, 0, 1), (1, 1, 1)]
        assert (news.newest, news.evaluations) == (1, 1)
        growing.start(1)
        assert [(row.agent, row.state) for row in (await reader.follow()).rows] == [(1, "expanding")]
        assert await reader.find_best() == best_of(growing.run)
        assert (await reader.view()).evaluations.resolved == 1
        reader.close()

    asyncio.run(read())
    growing.run.close()


def test_questions_are_answered_in_their_order_and_cancelled_ones_never(tmp_path: Path) -> None:
    Growing(tmp_path / "run").run.close()

    async def read() -> list[int]:
        asked: list[int] = []
        reader = BackgroundReader(tmp_path / "run")
        await reader.open()
        questions = [asyncio.ensure_future(reader.ask(lambda _, n=n: asked.append(n))) for n in range(4)]
        questions[2].cancel()
        await asyncio.gather(*questions, return_exceptions=True)
        reader.close()
        return asked

    assert asyncio.run(read()) == [0, 1, 3]


def test_an_error_is_raised_where_the_question_was_asked(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "run")

    async def read() -> None:
        reader = BackgroundReader(tmp_path / "run")
        with pytest.raises(ReaderClosed):
            await reader.ask(lambda run: run.name)
        await reader.open()
        with pytest.raises(ZeroDivisionError):
            await reader.ask(lambda _: 1 // 0)
        (tmp_path / "run" / "run.db").rename(tmp_path / "elsewhere")
        with pytest.raises(Infrastructure, match="removed"):
            await reader.follow()
        reader.close()
        missing = BackgroundReader(tmp_path / "nothing")
        with pytest.raises(UserError):
            await missing.open()
        missing.close()

    asyncio.run(read())
    growing.run.close()
