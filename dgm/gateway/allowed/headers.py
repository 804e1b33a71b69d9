"""Headers of an agent's request that pass to the provider: the Anthropic protocol version and some betas.

Only betas that shape the answer pass. The table of the body decides about the body fields that such a beta enables.
"""

import re
from collections.abc import Mapping

from dgm.gateway.allowed.messages_blocks import OTHERS, SEARCHED
from dgm.gateway.allowed.servers import ACCOUNT
from dgm.gateway.allowed.walk import PROVIDER_SIDE, STORED, UNPRICED, split_words
from dgm.gateway.leaving_out import leave_out
from dgm.gateway.translation.messages_answer import NO_THREADS
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import WireProtocol

VERSION = "anthropic-version"
BETA = "anthropic-beta"
VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
"""Versions of Anthropic's protocol; the last is the one that the vendor's own client sends."""
MAX_BETAS = 50
DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")
LONG_INPUT = "context-1m"
THREADS = "message-threads"
PASSED = frozenset(
    split_words(
        "prompt-caching prompt-caching-scope extended-cache-ttl cache-diagnosis token-efficient-tools output-128k"
        " output-300k max-tokens-3-5-sonnet interleaved-thinking dev-full-thinking adaptive-thinking redact-thinking"
        " fine-grained-tool-streaming computer-use context-management compact structured-outputs effort pdfs"
        " token-counting model-context-window-exceeded thinking-token-count thinking-display-updates"
        " thinking-binding-controls task-budgets mid-conversation-tool-changes mid-conversation-output-config"
        " mid-conversation-system per-turn-control mid-conversation-system-clear-at inline-tools tool-examples"
        " advanced-tool-use claude-code tools messages search-results bash text-editor"
    )
)
"""Names of betas without their dates."""
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        split_words(
            "code-execution web-fetch web-search mcp-client mcp-tunnels mcp-servers programmatic-tool-calling"
        ),
        PROVIDER_SIDE,
    ),
    **dict.fromkeys(
        split_words("files-api skills agent-memory managed-agents dreaming ce-plugins environments"), STORED
    ),
    **dict.fromkeys((LONG_INPUT, "fast-mode"), UNPRICED),
    **dict.fromkeys(
        split_words(
            "oauth user-profiles user-profiles-billing spend-limit-reads telemetry-destinations webhooks"
            " admin-user-sign-out analytics-usage-cost experimental-claude-tag ce-user-management"
            " ce-claude-code-managed-settings"
        ),
        ACCOUNT,
    ),
    **dict.fromkeys(split_words("advisor-tool server-side-fallback fallback-credit"), OTHERS),
    "tool-search-tool": SEARCHED,
    "message-batches": "an answer is waited for",
    THREADS: "send the whole conversation",
}


def select_headers(
    headers: Mapping[str, str], protocol: WireProtocol, *, one_price: bool = True
) -> dict[str, str]:
    """Return the headers of an agent that are sent on, with lower-case names. All others are dropped.

    Unknown betas are left out: the body fields that they enable are left out too, or have passed without them.

    Args:
        headers: the agent's headers, with names in any case.
        protocol: the protocol of both agent and provider.
        one_price: whether the model has the same price for inputs of every length. Then the beta for long inputs is
            left out, because the provider refuses what is too long without it.

    Raises:
        BadRequest: a version or a beta is not offered; the message names it.
    """
    if protocol is not WireProtocol.MESSAGES:
        return {}
    given = {name.lower(): value for name, value in headers.items()}
    sent: dict[str, str] = {}
    version = given.get(VERSION, "").strip()
    if version:
        if version not in VERSIONS:
            raise BadRequest(f"the header {VERSION} must be {' or '.join(VERSIONS)}")
        sent[VERSION] = version
    betas = [beta.strip() for beta in given.get(BETA, "").split(",")]
    betas = list(dict.fromkeys(beta for beta in betas if beta))
    if len(betas) > MAX_BETAS:
        raise BadRequest(f"the header {BETA} names {len(betas)} betas; at most {MAX_BETAS} are accepted")
    betas = [beta for beta in betas if _passes(beta, one_price)]
    if betas:
        sent[BETA] = ",".join(betas)
    return sent


def _passes(beta: str, one_price: bool) -> bool:
    """Return whether a beta passes; False if it is left out.

    Raises:
        BadRequest: it is refused.
    """
    name = DATE.sub("", beta)
    if name in PASSED:
        return True
    reason = REFUSED.get(name)
    if reason is None or (name == LONG_INPUT and one_price):
        leave_out(f"the beta {beta[:60]!r}")
        return False
    code = NO_THREADS if name == THREADS else "unsupported_parameter"
    raise BadRequest(f"the beta {beta[:60]!r} is not offered here: {reason}", code)
