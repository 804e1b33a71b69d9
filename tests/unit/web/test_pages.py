import re
from html.parser import HTMLParser

import pytest

from dgm.archive.run import Run
from dgm.domain import Cost, Entry, Evaluate, Expand, Verdict
from dgm.messages import Message, Reply, Request, Role, ToolCall
from dgm.views.gauges import GAUGES
from dgm.views.run import RunView
from dgm.web.pages import PAGES, ROWS
from tests.support.runs.growing import TASKS, Growing
from tests.support.runs.hostile import hostile_folder  # noqa: F401  (a fixture)
from tests.support.runs.waiting import make_waiting_run
from tests.support.web import open_pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs: ``grown`` without sources has two agents, ``other`` one; and a folder that is no run."""
    folder = tmp_path_factory.mktemp("runs")
    grown = Growing(folder / "grown")
    grown.born(0, rationale="reads the failing test first")
    for task in range(4):
        grown.graded(0, task, good=task < 1)
        grown.graded(1, task, good=task < 3)
    action = grown.begin(Evaluate(0, TASKS[5]))
    request = Request((Message(Role.SYSTEM, "be brief"), Message(Role.USER, "mend it")), model="m")
    reply = Reply("I look.", (ToolCall("1", "shell", '{"command": "ls\\n-l"}'),))
    grown.record_exchange(action, 1, request, reply)
    log = grown.run.traces.put(b"all passed\n")
    grown.record_verdict(action, 0, TASKS[5], Verdict.RESOLVED, "well done", cost=Cost(traces={"log": log}))
    grown.start(1)
    grown.run.close()
    Growing(folder / "other").run.close()
    (folder / "no-run").mkdir()
    (folder / "secret.txt").write_text("a secret")
    return folder


@pytest.fixture
def client(folder):
    with open_pages(folder) as client:
        yield client


class Links(HTMLParser):
    """The addresses of a page, its texts, and what could execute in it."""

    def __init__(self, page):
        super().__init__()
        self.links, self.active, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.links += [values[name] for name in ("href", "src") if name in values]
        foreign = (
            tag in ("iframe", "object", "embed", "base", "img", "style", "meta")
            and values.get("charset") is None
        )
        foreign = foreign and values.get("name") != "viewport"
        inline = tag == "script" and not values.get("src", "").startswith("/-/static/")
        if foreign or inline or any(name == "style" or name.startswith("on") for name in values):
            self.active.append((tag, attributes))

    def handle_data(self, data):
        self.text += f"{data} "


def visit(client, start, limit=300, leave_out="/report"):
    """All pages that links lead to from one, by their addresses, but those with an end."""
    pages, waiting = {}, [start]
    while waiting and len(pages) < limit:
        address = waiting.pop(0)
        if address in pages or not address.startswith("/") or address.endswith(leave_out):
            continue
        answer = client.get(address)
        page = Links(answer.text)
        pages[address] = answer, page
        waiting += [
            link if link.startswith("/") else address.partition("?")[0] + link
            for link in page.links
            if link and not link.startswith(("#", "data:"))
        ]
    return pages


def test_all_links_lead_to_pages(client):
    pages = visit(client, "/", leave_out=("/report", "/diff", "/diff?other=0"))
    assert {
        address: answer.status_code for address, (answer, _) in pages.items() if answer.status_code != 200
    } == {}
    assert {"/", "/grown", "/other", "/grown/agents/1", "/grown/spend", "/grown/events"} <= pages.keys()


def test_the_list_names_the_runs_and_nothing_else(client):
    page = Links(client.get("/").text)
    assert [link for link in page.links if link in ("/grown", "/other", "/no-run")].sort() == [
        "/grown",
        "/other",
    ].sort()
    assert "no-run" not in page.text
    assert "secret" not in page.text


def test_the_overview_shows_what_status_prints(client, folder):
    text = " ".join(Links(client.get("/grown").text).text.split())
    with Run.open(folder / "grown") as run:
        view = RunView.load(run)
    assert f"Agent {view.best.agent}" in text
    assert "Evaluations 9 5 resolved, 0 invalid" in text
    assert "interrupted" in text
    assert "child of 1 by self-edit" in text


def test_agents_are_found_by_words_and_ordered(client):
    def agents(query):
        rows = re.findall(
            r'<td class="n"><a href="/grown/agents/(\d+)">', client.get(f"/grown/agents?{query}").text
        )
        return list(map(int, rows))

    assert agents("") == agents("sort=rate") == [1, 0]
    assert agents("sort=oldest") == [0, 1]
    assert agents("words=FAILING") == [1]
    assert agents("words=nothing+like+it") == []


def test_long_lists_come_in_parts(tmp_path):
    steps = Growing(tmp_path / "run")
    for _ in range(ROWS + 20):
        steps.born(0)
    steps.run.close()
    with open_pages(tmp_path) as client:
        first, second = (
            Links(client.get(f"/run/agents?sort=oldest&from={start}").text) for start in (0, ROWS)
        )
    assert "/run/agents/0" in first.links
    assert "?sort=oldest&from=100" in first.links
    assert "/run/agents/0" not in second.links
    assert f"/run/agents/{ROWS + 20}" in second.links


def test_an_action_shows_its_verdict_conversation_and_traces(client, folder):
    with Run.open(folder / "grown") as run:
        action = next(
            item.event.action
            for item in run.store.select("kind = 'task_graded'")
            if item.event.outcome.cost.traces
        )
    text = Links(client.get(f"/grown/actions/{action}").text).text
    for part in (
        "resolved",
        "well done",
        "be brief",
        "mend it",
        "I look.",
        "shell",
        "command: ls\n-l",
        "all passed",
    ):
        assert part in text


def test_a_task_shows_the_attempts_of_all_agents_or_of_one(client):
    task = TASKS[1].replace("/", "%2F")
    both, one = (client.get(f"/grown/{path}{task}").text for path in ("tasks/", "agents/1/tasks/"))
    assert set(re.findall(r"/grown/agents/(\d)", both)) == {"0", "1"}
    assert set(re.findall(r"/grown/agents/(\d)", one)) == {"1"}


@pytest.mark.parametrize(
    "path",
    [
        "/none",
        "/no-run",
        "/secret.txt",
        "/%2e%2e",
        "/%2e%2e/",
        "/..%2f..%2fetc%2fpasswd",
        "/grown%00",
        "/grown/..%2fother",
        "/grown+..",
        "/grown+..%2fother",
        "/grown+agents.git",
        "/grown+",
        "/+grown",
        "/-/static/..%2fapp.py",
        "/-/static/%2e%2e/app.py",
        "/-/static/app.py",
        "/grown/agents/2",
        "/grown/agents/-1",
        "/grown/agents/x",
        "/grown/agents/0/diff?other=7",
        "/grown/agents/" + "9" * 30,
        "/grown/actions/0",
        "/grown/actions/-1",
        "/grown/actions/" + "9" * 30,
        "/grown/actions/\u0663",
        "/grown/waiting/1",
        "/grown/tasks/none",
        "/grown/agents/0/tasks/none",
        "/grown/nothing",
        "/grown/agents?from=x",
        "/grown/events?before=-3",
        "/" + "a" * 10_000,
    ],
)
def test_what_is_not_there_is_one_line(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text
    assert "a secret" not in answer.text
    assert len(answer.text) < 4_000


@pytest.mark.starts_processes
def test_a_waiting_child_shows_its_change(tmp_path):
    make_waiting_run(tmp_path / "run")
    with open_pages(run=tmp_path / "run") as client:
        assert "/run/waiting/2" in Links(client.get("/run").text).links
        text = Links(client.get("/run/waiting/2").text).text
    assert "+child" in text
    assert "dgm approve run 2" in text


@pytest.mark.starts_processes
def test_the_diff_of_two_agents_is_shown(tmp_path):
    steps = Growing(tmp_path / "run", seed=False)
    steps.bear({"a.py": Entry(b"old\n")})
    steps.bear({"a.py": Entry(b"new\n")}, (0,))
    steps.run.close()
    with open_pages(tmp_path) as client:
        text, same = (Links(client.get(f"/run/agents/{path}/diff").text).text for path in ("1", "0"))
    assert "-old" in text
    assert "+new" in text
    assert "-old" not in same


@pytest.mark.starts_processes
def test_hostile_texts_stay_texts(hostile_folder):  # noqa: F811
    """No page has an active part of a stranger, and none fails."""
    with open_pages(hostile_folder.parent) as client:
        pages = visit(client, "/", 120)
    assert len(pages) > 60
    failed = {
        address: answer.status_code for address, (answer, _) in pages.items() if answer.status_code != 200
    }
    assert failed == {}
    assert [page.active for _, page in pages.values() if page.active] == []
    for answer, page in pages.values():
        assert "<script>document" not in answer.text
        assert not re.search(
            "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page.text
        )


@pytest.mark.starts_processes
def test_a_run_within_a_run_has_an_address(hostile_folder):  # noqa: F811
    with open_pages(run=hostile_folder) as client:
        address = next(link for link in Links(client.get("/").text).links if "~" in link)
        assert client.get(f"{address}+holdout").status_code == 200
        assert client.get(f"{address}+holdout+holdout").status_code == 404


def test_a_name_of_a_megabyte_is_cut(tmp_path):
    steps = Growing(tmp_path / "run")
    steps.born(0, rationale="x" * 1_000_000)
    steps.begin(Expand((1,), "y" * 10_000))
    steps.run.close()
    with open_pages(tmp_path) as client:
        sizes = {
            path: len(client.get(f"/run{path}").content)
            for path in ("", "/agents", "/agents/1", "/events?all=1")
        }
    assert max(sizes.values()) < 100_000, sizes


@pytest.mark.starts_processes
def test_the_report_has_its_own_policy(client):
    answer = client.get("/grown/report")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "script-src 'sha256-" in policy
    assert "'unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_metrics_are_the_gauges_of_all_runs(client, folder):
    lines = client.get("/metrics").text.splitlines()
    assert 'dgm_agents{run="grown"} 2.0' in lines
    assert 'dgm_evaluations{run="grown",verdict="resolved"} 5.0' in lines
    assert 'dgm_living{run="other"} 0.0' in lines
    assert {line.split()[2] for line in lines if line.startswith("# TYPE")} == {
        gauge.name for gauge in GAUGES
    }


def test_a_damaged_run_hides_no_other(tmp_path):
    Growing(tmp_path / "sound").run.close()
    Growing(tmp_path / "torn").run.close()
    (tmp_path / "torn" / "run.json").write_text("{")
    with open_pages(tmp_path) as client:
        assert "damaged" in client.get("/").text
        assert client.get("/sound").status_code == 200
        assert client.get("/torn").status_code == 503
        assert 'run="sound"' in client.get("/metrics").text


def test_a_replaced_run_is_read_anew(tmp_path):
    Growing(tmp_path / "run").run.close()
    with open_pages(tmp_path) as client:
        assert client.get("/run/agents/1").status_code == 404
        (tmp_path / "run").rename(tmp_path / "gone")
        assert client.get("/run").status_code == 404
        steps = Growing(tmp_path / "run")
        steps.born(0)
        steps.run.close()
        assert client.get("/run/agents/1").status_code == 200


def test_a_viewer_of_a_huge_run_sees_how_far_it_is_read(folder):
    with open_pages(folder, patience_s=0.0) as client:
        first = client.get("/other/spend")
        second = client.get("/other/spend", headers={"X-Waits": "1"})
    assert (first.status_code, first.headers["refresh"]) == (200, "1")
    assert (second.status_code, "refresh" in second.headers) == (200, False)


def test_every_page_of_the_navigation_has_a_name_of_its_own():
    assert len({page.tab for page in PAGES if page.tab}) == len([page for page in PAGES if page.tab])
