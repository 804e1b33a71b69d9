"""Who may read, and what a browser may do with the pages: the middleware around everything that is served."""

import hmac
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response that does not set them itself."""
FOREIGN = ("cross-site", "same-site")
"""Values of ``Sec-Fetch-Site`` on requests from pages of other servers, which may only link here."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
UNKNOWN = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>dgm serve</title>
<h1>Not signed in</h1><p>Open the address that dgm serve printed; it holds the token.</p>
<p>If you came here by a link from elsewhere: <a href="">continue</a>.</p></html>"""
"""A browser sends the cookie only if the click was on a page of this server, so the page links to itself."""


class Guard:
    """Middleware that refuses writes, foreign names of a loopback server, and requests without the token."""

    def __init__(self, app: ASGIApp, *, token: str | None, hosts: Sequence[str], cookie: str) -> None:
        """Wrap an application.

        Args:
            app: what is served.
            token: what a request must know; None: nothing.
            hosts: names by which the server may be called; others are refused, so that a page of another site
                cannot have its name lead here (DNS rebinding). Empty: all.
            cookie: name of the cookie, which servers on other ports of this host must not share.
        """
        self._app, self._token, self._hosts, self._cookie = app, token, hosts, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("read only\n", 405, {"Allow": "GET, HEAD"})
        if self._hosts and _host_name(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse("unknown host; open the address that dgm serve printed\n", 421)
        if headers.get("sec-fetch-site") in FOREIGN and headers.get("sec-fetch-dest") != "document":
            return PlainTextResponse("a page of another site cannot ask for this\n", 403)
        return self._sign_in(scope, headers) if self._token is not None else None

    def _sign_in(self, scope: Scope, headers: Headers) -> Response | None:
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        offered = next((value for name, value in pairs if name == "token"), None)
        if offered is not None and self._is_token(offered):
            rest = urlencode([pair for pair in pairs if pair[0] != "token"])
            # A path that begins with two slashes would be another host.
            path = "/" + scope.get("raw_path", b"/").decode("latin-1").lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(self._cookie, offered, httponly=True, samesite="strict", path="/")
            return answer
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(value.strip()):
            return None
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        if self._cookie in cookies and self._is_token(cookies[self._cookie].value):
            return None
        return HTMLResponse(UNKNOWN, 401, {"WWW-Authenticate": "Bearer"})

    def _is_token(self, text: str) -> bool:
        token = self._token or ""
        return hmac.compare_digest(text.encode("utf-8", "replace"), token.encode())


def _host_name(host: str) -> str:
    """Return the name in a Host header, without the port; empty if it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
