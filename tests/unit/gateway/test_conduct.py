"""Requests that count against an agent, those that an honest client sends, and sockets that it leaves open."""

import asyncio

import pytest

from dgm.domain import FindingKind
from dgm.gateway import launcher
from dgm.gateway.allowed import LEFT_OUT, BadRequest, select_headers
from dgm.messages import WireProtocol
from tests.support.gateway.bench import Script, ask, chat, gateway, talking


def blamed(tmp_path, *bodies):
    """The kinds that count against an agent after some requests, and the statuses of these."""

    async def scenario():
        async with talking(gateway(tmp_path / "g", Script())) as (_, lease, http):
            statuses = [(await http.post("/chat/completions", json=body)).status_code for body in bodies]
            return statuses, [finding.kind for finding in lease.findings], [*lease.asked_models]

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"web_search_options": {"search_context_size": "low"}}, FindingKind.NETWORK),
        ({"tools": [{"type": "mcp", "server_url": "https://x.example"}]}, FindingKind.NETWORK),
        ({"fallbacks": ["gpt-9"]}, FindingKind.OTHER_MODEL),
        ({"models": ["gpt-9", "gpt-10"]}, FindingKind.OTHER_MODEL),
        ({"file_ids": ["file-1"]}, FindingKind.FOREIGN_DATA),
    ],
)
def test_what_no_client_sends_by_default_counts(tmp_path, more, kind):
    assert blamed(tmp_path, chat(**more), chat(**more))[:2] == ([400, 400], [kind])


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"unheard_of": 1}, 200),  # left out
        ({"fallbacks": []}, 200),
        ({"best_of": 3}, 400),
        ({"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "web_search"}]}, 200),
        ({"user": "me", "store": True}, 200),
    ],
)
def test_what_an_honest_client_sends_does_not_count(tmp_path, more, status):
    assert blamed(tmp_path, chat(**more))[:2] == ([status], [])


def test_a_beta_that_a_client_sends_by_itself_does_not_count():
    with pytest.raises(BadRequest) as refused:
        select_headers({"anthropic-beta": "fast-mode-2026-01-01"}, WireProtocol.MESSAGES)
    assert refused.value.kind is None


def test_another_model_counts_once_the_agent_knows_its_own(tmp_path):
    other = chat(model="frontier")
    assert blamed(tmp_path / "a", other) == ([404], [], ["frontier"])
    assert blamed(tmp_path / "b", chat(), other) == ([200, 404], [FindingKind.OTHER_MODEL], ["frontier"])


def test_what_is_left_out_is_noted_as_before(tmp_path):
    async def scenario():
        async with talking(gateway(tmp_path / "g", Script())) as (opened, lease, http):
            await ask(http, unheard_of=1)
            return [entry[3] for entry in opened._journal.refused], lease.findings

    assert asyncio.run(scenario()) == ([LEFT_OUT], {})


def test_the_launchers_list_of_sockets_counts_against_the_agent(tmp_path):
    async def scenario():
        async with talking(gateway(tmp_path / "g")) as (opened, lease, _):
            launch = {"token": lease.token, "socket": str(opened.folder / opened.socket_name)}
            await asyncio.to_thread(launcher.report_sockets, launch, [])
            assert not lease.findings
            await asyncio.to_thread(launcher.report_sockets, launch, ["0.0.0.0:4444"])
            return [(finding.kind, finding.detail) for finding in lease.findings]

    assert asyncio.run(scenario()) == [(FindingKind.SOCKET, "left listening: 0.0.0.0:4444")]


@pytest.mark.parametrize(
    ("row", "listed"),
    [
        ("0: 00000000:115C 00000000:0000 0A", ["0.0.0.0:4444"]),
        ("0: 0100007F:115C 00000000:0000 0A", []),
        ("0: 00000000:115C 00000000:0000 01", []),
        ("0: 00000000:20B9 00000000:0000 0A", []),
        ("0: 00000000000000000000000000000000:115C 0:0 0A", [":::4444"]),
        ("0: 00000000000000000000000001000000:115C 0:0 0A", []),
        ("0: 0000000000000000FFFF00000100007F:115C 0:0 0A", []),
    ],
)
def test_only_what_listens_beyond_the_loopback_is_listed(tmp_path, monkeypatch, row, listed):
    (tmp_path / "tcp").write_text(f"header\n{row}\n")
    real = launcher.Path
    monkeypatch.setattr(launcher, "Path", lambda *parts: real(tmp_path, *parts[1:]))
    assert launcher.open_sockets(8377) == listed
