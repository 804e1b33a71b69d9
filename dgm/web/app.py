"""The application behind the addresses: pages and data of runs, their news, the list of runs, styles and scripts."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from json import dumps
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from dgm.errors import DgmError, UserError
from dgm.render.html.page import content_policy
from dgm.render.safe import one_line
from dgm.render.text import nearest
from dgm.web.library import Library
from dgm.web.markup import encode_part, render, static_files
from dgm.web.pages import DATA, PAGES, Data, Page
from dgm.web.shared import News, RunSource, SharedRun

QUIET_S = 15.0
"""Seconds without news after which a comment keeps the connection open, and tells whether the viewer is still there."""
PATIENCE_S = 1.0
WAITS = "x-waits"
"""Header of a request of a page's script, which waits for as long as it takes."""
MESSAGE_CELLS = 1_000
TABS = [(page.path, page.tab) for page in PAGES] + [(data.path, data.tab) for data in DATA]
Answer = Callable[[Request], Awaitable[Response]]
log = logging.getLogger(__name__)


def make_app(library: Library, patience_s: float = PATIENCE_S) -> Starlette:
    """Return the application that shows the runs of a library, without its guard.

    Args:
        library: the runs.
        patience_s: seconds after which a viewer sees that a page is being computed, or how far the run is read.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        library.close()

    routes: list[BaseRoute] = [
        Route("/", _safely(_show_runs), methods=["GET"]),
        Route("/-/static/{name}", _send_static, methods=["GET"]),
        Route("/metrics", _safely(_send_metrics), methods=["GET"]),
        Route("/{run}/live", _safely(_send_news), methods=["GET"]),
    ]
    answers = [(data.path, _DataEndpoint(data).answer) for data in DATA]
    answers += [(page.path, _PageEndpoint(page).answer) for page in PAGES]
    routes += [
        Route(f"/{{run}}/{path}".rstrip("/"), _safely(answer), methods=["GET"]) for path, answer in answers
    ]
    # A run may have the name of another page.
    routes.append(Route("/{run}/", _safely(_PageEndpoint(PAGES[0]).answer), methods=["GET"]))
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(GZipMiddleware, compresslevel=4)],
        exception_handlers={HTTPException: _show_missing},
    )
    app.router.redirect_slashes = False
    app.state.library, app.state.patience_s = library, patience_s
    return app


class _PageEndpoint:
    """Answers with a page of a run."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def answer(self, request: Request) -> Response:
        """Load the page, render it, and keep it for the next viewer."""
        page, values = self._page, _read_values(request, self._page.query)
        name = request.path_params["run"]
        base = f"/{encode_part(name)}"
        frame = {
            "base": base,
            "address": name,
            "page": page,
            "tabs": [(f"{base}/{path}".rstrip("/"), path, tab) for path, tab in TABS if tab],
            "values": values,
        }

        def make(source: RunSource) -> bytes:
            content = page.load(source, values)
            return render(page.template, {**frame, "source": source, "run": source.run, **content})

        run = await _open_run(request)
        # Quick pages do not wait for the best agent, so they differ once it is found.
        key = f"{page.path} {sorted(values.items())} {None if page.slow else run.best}"
        task = asyncio.create_task(run.compute(key, make, slow=page.slow))
        if await _takes_long(request, task):
            return _waiting_page(name, run.count_events_to_open(slow=page.slow))
        return HTMLResponse((await task)[1])


class _DataEndpoint:
    """Answers with data of a run; the header ``X-Seq`` is the number of the last event in them."""

    def __init__(self, data: Data) -> None:
        self._data = data

    async def answer(self, request: Request) -> Response:
        """Load the data, and keep them for the next viewer."""
        data, values = self._data, _read_values(request, self._data.query)
        run = await _open_run(request)
        key = f"{data.path} {sorted(values.items())} {None if data.slow else run.best}"
        seq, body = await run.compute(key, lambda source: data.load(source, values), slow=data.slow)
        headers = {"X-Seq": str(seq)}
        if data.media_type == "text/html":
            headers["Content-Security-Policy"] = f"{content_policy()}; frame-ancestors 'none'"
        return Response(body, media_type=data.media_type, headers=headers)


async def _takes_long(request: Request, task: asyncio.Task[Any]) -> bool:
    """Wait for a result, and return whether a viewer should see something else meanwhile."""
    if WAITS in request.headers:
        return False
    await asyncio.wait((task,), timeout=request.app.state.patience_s)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return not task.done()


def _waiting_page(name: str, events: int | None) -> Response:
    return HTMLResponse(render("opening.html", {"name": name, "events": events}), headers={"Refresh": "1"})


def _read_values(request: Request, names: tuple[str, ...]) -> Mapping[str, str]:
    """Return what stands in the address and the query, but only what the page knows."""
    query = {name: value for name, value in request.query_params.items() if name in names}
    parts = {name: str(value) for name, value in request.path_params.items() if name != "run"}
    return query | parts


async def _open_run(request: Request) -> SharedRun:
    library: Library = request.app.state.library
    return await library.open(request.path_params["run"])


async def _show_runs(request: Request) -> Response:
    library: Library = request.app.state.library
    task = asyncio.create_task(library.list())
    if await _takes_long(request, task):
        return _waiting_page("", None)
    view = await task
    addresses = {row.folder: f"/{encode_part(name)}" for name, row in library.named(view)}
    return HTMLResponse(render("runs.html", {"view": view, "addresses": addresses, "nearest": nearest}))


async def _send_metrics(request: Request) -> Response:
    from dgm.web.metrics import render_metrics

    library: Library = request.app.state.library
    text = render_metrics(await library.read_gauges())
    return Response(text, media_type="text/plain; version=0.0.4")


async def _send_static(request: Request) -> Response:
    entry = static_files().get(request.path_params["name"])
    if entry is None:
        raise HTTPException(404)
    # It is small, and another version of dgm may have another.
    return Response(entry[0], media_type=entry[1], headers={"Cache-Control": "no-cache"})


async def _send_news(request: Request) -> Response:
    run = await _open_run(request)
    media_type = "text/event-stream"
    if request.method == "HEAD":
        return Response(media_type=media_type)
    return StreamingResponse(stream_news(run), media_type=media_type, headers={"X-Accel-Buffering": "no"})


async def stream_news(run: SharedRun) -> AsyncIterator[str]:
    """Yield the newest facts of a run whenever they change, at most every ``FOLLOW_S``; a slow viewer misses some."""
    news: News | None = None
    while True:
        try:
            news = await asyncio.wait_for(run.next_news(news), QUIET_S)
        except TimeoutError:
            yield ": quiet\n\n"
            continue
        except DgmError as error:
            yield f"event: gone\ndata: {dumps(one_line(str(error), MESSAGE_CELLS))}\n\n"
            return
        yield f"data: {dumps(news._asdict())}\n\n"


def _safely(answer: Answer) -> Answer:
    """Return the same endpoint, which says in one line why there is no page; no traceback reaches anyone."""

    async def answer_safely(request: Request) -> Response:
        try:
            return await answer(request)
        except UserError as error:
            return _error_page(404, str(error))
        except DgmError as error:
            return _error_page(503, str(error))
        except Exception as error:  # noqa: BLE001  (a run that is not as dgm writes it must not end the server)
            log.warning("%s cannot be shown: %r", one_line(request.url.path, 200), error)
            return _error_page(500, f"this part of the run cannot be shown ({type(error).__name__})")

    return answer_safely


async def _show_missing(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _error_page(status, "there is no such page")


def _error_page(status: int, message: str) -> Response:
    return HTMLResponse(render("error.html", {"status": status, "message": message}), status)
