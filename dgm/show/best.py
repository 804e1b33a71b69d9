"""The recommended agent in words: the meaning of ★, and the lower bound beside it."""

from dgm.analysis.best import BestAgent, rate_best
from dgm.archive.tree import Tree
from dgm.domain import AgentId, Tally
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, make_line
from dgm.show.words import BEST, given_up_text, interval_text, tally_text
from dgm.stats import lower_bound

BOUND_MEANS = "99 % sure that its rate is higher"
RECOMMENDED = "recommended by the policy"
STAR_MEANS = f"{RECOMMENDED}; lower bound: {BOUND_MEANS}"
HIGHEST = "highest so far"
"""The plain top score, which is never called best: luck counts in it."""


def bound_text(tally: Tally) -> str:
    """Return ``lower bound 0.18``, as ``--until-score`` takes it; a dash where nothing was evaluated."""
    return f"lower bound {lower_bound(tally):.2f}" if tally.n else "lower bound –"


def best_text(best: BestAgent) -> str:
    """Return ``agent 7: 8/21 38% 21–59%, lower bound 0.18``, and the tasks that were given up."""
    given_up = given_up_text(best.given_up)
    told = f"agent {best.agent}: {_tally_and_interval(best.own)}, {bound_text(best.own)}"
    return f"{told}, {given_up}" if given_up else told


def best_lines(tree: Tree, best: BestAgent) -> list[Line]:
    """Return the lines about the best agent for below a tree.

    They give its bound, the aim it was made for, and the meaning of both.
    """
    said = one_line(tree.agents[best.agent].rationale, 60)
    return [
        make_line(Span(f"{BEST} best  ", Tone.MARK), best_text(best), f"  {said}" if said else ""),
        make_line(Span(f"  {STAR_MEANS}", Tone.DIM)),
    ]


def highest_text(tree: Tree, best: BestAgent) -> str:
    """Return the agent with the highest plain rate, and why it is not the best; empty where it is the best itself.

    Ties go to the agent with more verdicts, then to the older one.
    """
    tallies = [tree.own(agent.id) for agent in tree.agents]
    rated = [number for number, tally in enumerate(tallies) if tally.n]
    if not rated:
        return ""
    top = max(rated, key=lambda number: (tallies[number].rate, tallies[number].n, -number))
    if top == best.agent or tallies[top].rate <= best.own.rate:
        return ""
    return f"{best_text(rate_best(tree, AgentId(top)))}; not recommended"


def _tally_and_interval(tally: Tally) -> str:
    return f"{tally_text(tally)} {interval_text(tally)}".rstrip()
