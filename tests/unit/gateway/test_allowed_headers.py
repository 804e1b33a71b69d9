"""Headers that pass to a provider, and betas that are refused by name."""

import pytest

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest
from dgm.messages import WireProtocol
from dgm.wires.messages import NO_THREADS

CLAUDE_CODE = (
    "claude-code-20250219,interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14,"
    "context-management-2025-06-27,prompt-caching-scope-2026-01-05,effort-2025-11-24"
)


def passed(**given):
    named = {name.replace("_", "-"): value for name, value in given.items()}
    return allowed.select_headers(named, WireProtocol.MESSAGES)


def test_version_and_betas_pass_and_nothing_else():
    sent = passed(
        Anthropic_Version="2023-06-01",
        anthropic_beta=CLAUDE_CODE,
        authorization="Bearer x",
        x_api_key="k",
        anthropic_user_profile_id="u",
        host="gateway",
        x_stainless_lang="python",
    )
    assert sent == {"anthropic-version": "2023-06-01", "anthropic-beta": CLAUDE_CODE}


@pytest.mark.parametrize("protocol", [WireProtocol.CHAT, WireProtocol.RESPONSES])
def test_other_protocols_have_no_headers_that_pass(protocol):
    given = {
        "OpenAI-Beta": "assistants=v2",
        "OpenAI-Organization": "o",
        "anthropic-beta": "files-api-2025-04-14",
    }
    assert allowed.select_headers(given, protocol) == {}


@pytest.mark.parametrize(
    "beta",
    [
        "prompt-caching-2024-07-31",
        "extended-cache-ttl-2025-04-11",
        "token-efficient-tools-2025-02-19",
        "output-128k-2025-02-19",
        "max-tokens-3-5-sonnet-2024-07-15",
        "computer-use-2025-11-24",
        "structured-outputs-2025-11-13",
        "search-results-2025-06-09",
        "task-budgets-2026-03-13",
    ],
)
def test_beta_that_shapes_the_answer_passes(beta):
    assert passed(anthropic_beta=beta) == {"anthropic-beta": beta}


@pytest.mark.parametrize(
    ("beta", "words"),
    [
        ("code-execution-2025-05-22", "no tools of a provider"),
        ("web-fetch-2025-09-10", "no tools of a provider"),
        ("mcp-client-2025-11-20", "no tools of a provider"),
        ("files-api-2025-04-14", "not reachable"),
        ("skills-2025-10-02", "not reachable"),
        ("message-batches-2024-09-24", "is waited for"),
        ("fast-mode-2026-02-01", "price"),
        ("user-profiles-2026-09-04", "account"),
        ("oauth-2025-04-20", "account"),
        ("server-side-fallback-2026-07-01", "another model"),
    ],
)
def test_beta_that_does_more_is_refused_by_name(beta, words):
    with pytest.raises(BadRequest) as caught:
        passed(anthropic_beta=f"prompt-caching-2024-07-31,{beta}")
    assert words in str(caught.value)
    assert repr(beta) in str(caught.value)
    assert str(caught.value).isprintable()


def test_threads_are_refused_in_the_code_that_the_vendors_client_looks_for():
    with pytest.raises(BadRequest) as caught:
        passed(anthropic_beta="message-threads-2026-08-12")
    assert caught.value.code == NO_THREADS


def test_unknown_version_is_refused():
    with pytest.raises(BadRequest, match="2023-06-01"):
        passed(anthropic_version="2031-01-01")


def test_a_thousand_betas_are_refused():
    with pytest.raises(BadRequest, match="at most"):
        passed(anthropic_beta=",".join(f"pdfs-2024-09-{number}" for number in range(1000)))
