"""Issues about an agent, written from a comparison with quoted relatives.

Changes of a better relative come first.
"""

import re
from collections.abc import Mapping

from dgm.messages import Request
from dgm.offline import diagnosing, quoted
from dgm.offline.catalogue import CATALOGUE
from dgm.offline.edits.kind import Kind

_RELATIVE = re.compile(r"agent (\d+): (?:what was changed and why|the change)")


def answer(request: Request) -> str:
    """Return the issue as JSON after a sentence of prose; a pure function of the request."""
    text = quoted.question(request)
    parts = quoted.parse_parts(text)
    ideas = find_lacking_ideas(parts)
    if not ideas:
        return diagnosing.issue(text, parts, "failed: the agent's ")
    kind = quoted.draw_kind({kind: kind.weight for kind in ideas}, text)
    return quoted.write_issue(
        f"A relative (agent {ideas[kind]}) solves what this agent does not; it differs in what was changed in it.",
        "The agent lacks what a relative has that solves more.",
        kind,
    )


def find_lacking_ideas(parts: Mapping[str, str]) -> dict[Kind, str]:
    """Return ideas of relatives that the agent's source lacks, each with the relative's number.

    An idea is recognised by its catalogue rationale, quoted in the relative's part.
    """
    found: dict[Kind, str] = {}
    for title, told in parts.items():
        relative = _RELATIVE.fullmatch(title)
        if relative:
            said = " ".join(told.split())
            found |= {kind: relative[1] for kind in CATALOGUE if kind.rationale in said and kind not in found}
    lacking = quoted.find_applicable(found, quoted.source(parts))
    return {kind: found[kind] for kind in lacking}
