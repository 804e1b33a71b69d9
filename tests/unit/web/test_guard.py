import pytest

from dgm.web.guard import HEADERS
from tests.support.runs.growing import Growing
from tests.support.web import open_pages

TOKEN = "t0ken-of-43-characters-that-nobody-can-guess"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    Growing(folder / "run").run.close()
    return folder


@pytest.fixture
def client(folder):
    with open_pages(folder) as client:
        yield client


@pytest.fixture
def guarded(folder):
    with open_pages(folder, token=TOKEN) as client:
        yield client


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/run",
        "/run/agents",
        "/nothing",
        "/metrics",
        "/-/static/live.js",
        "/-/static/none",
        "/run/data/none",
    ],
)
def test_every_answer_has_the_headers_that_keep_a_browser_in_check(client, path):
    answer = client.get(path)
    expected = {name: value for name, value in HEADERS.items() if name != "Cache-Control"}
    assert {name: answer.headers[name] for name in expected} == expected


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/run", "/run/live", "/-/static/live.js", "/metrics"])
def test_all_but_reading_is_refused(client, method, path):
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_a_body(client):
    answers = [client.head(path) for path in ("/run", "/run/live")]
    assert [(answer.status_code, answer.content) for answer in answers] == [(200, b"")] * 2


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[", "localhost@evil.example"]
)
def test_a_loopback_server_is_not_reached_by_another_name(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8421", "LOCALHOST", "[::1]:8421"])
def test_a_loopback_server_is_reached_by_its_own_names(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/run", "/run/live", "/metrics", "/-/static/live.js", "/nothing"])
@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("", {}),
        ("?token=", {}),
        ("?token=wrong", {}),
        (f"?token={TOKEN}x", {}),
        (f"?Token={TOKEN}", {}),
        ("?token=%ff%00", {}),
        ("", {"Authorization": "Bearer wrong"}),
        ("", {"Authorization": f"Basic {TOKEN}"}),
        ("", {"Authorization": "Bearer"}),
        ("", {"Authorization": b"Bearer \xff\xfe"}),
        ("", {"Cookie": "dgm_1=wrong"}),
        ("", {"Cookie": f"dgm_2={TOKEN}"}),
        ("", {"Cookie": ";;=\x01"}),
    ],
)
def test_nothing_is_served_without_the_token(guarded, path, query, headers):
    answer = guarded.get(path + query, headers=headers)
    assert answer.status_code == 401
    assert b"run" not in answer.content.lower()


def test_the_token_in_an_address_becomes_a_cookie_and_leaves_the_address(guarded):
    answer = guarded.get(f"/run/agents?sort=rate&token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/run/agents?sort=rate")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"dgm_1={TOKEN};")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert guarded.get("/run/agents").status_code == 200


@pytest.mark.parametrize("path", ["//evil.example", "//evil.example/%2e%2e", "/\\evil.example"])
def test_the_redirect_never_leads_to_another_host(guarded, path):
    answer = guarded.get(f"http://127.0.0.1{path}?token={TOKEN}")
    assert answer.headers["location"].startswith("/")
    assert not answer.headers["location"].startswith(("//", "/\\"))


def test_a_program_gives_the_token_in_a_header(guarded):
    assert guarded.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_can_link_here_and_ask_for_nothing_else(client, site):
    def ask(destination):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": destination}
        return client.get("/run", headers=headers).status_code

    assert ask("document") == 200
    assert {ask(destination) for destination in ("empty", "script", "image", "iframe", "style")} == {403}
