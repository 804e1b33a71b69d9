"""One evaluation on one line."""

from dgm.domain import Evaluation, Usage
from dgm.show.safe import one_line
from dgm.show.spans import Line, Span, Tone, crop_line, make_line
from dgm.show.words import VERDICT_MARKS, VERDICT_TONES

REASON_WIDTH = 100
"""Cells of a reason where nothing bounds the line."""
TASK_WIDTH = 120


def evaluation_line(evaluation: Evaluation, usage: Usage, width: int | None = None) -> Line:
    """Return verdict, seconds, tokens, cost in USD, task and reason.

    Args:
        evaluation: the evaluation.
        usage: of its model calls, over all its tries.
        width: cells of the line, which is cut at its end. None where nothing bounds it, as in a pipe: then the
            verdict
            has no mark beside its word.
    """
    verdict = evaluation.verdict
    mark = "" if width is None else f"{VERDICT_MARKS[verdict]} "
    took = f"{evaluation.cost.seconds:6.1f} s  {usage.tokens:>9,} tokens  {usage.usd:7.4f} USD"
    again = f" (attempt {evaluation.attempt + 1})" if evaluation.attempt else ""
    shown = make_line(
        Span(f"{mark}{verdict:<10}", VERDICT_TONES[verdict]),
        Span(f" {took}  ", Tone.DIM),
        Span(one_line(evaluation.task, TASK_WIDTH), Tone.STRONG),
        f"{again}: {one_line(evaluation.reason, REASON_WIDTH)}",
    )
    return shown if width is None else crop_line(shown, width)
