"""``dgm show RUN AGENT --transcript TASK``: show the whole record of one evaluation, as ``dgm browse`` does."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dgm.archive.run import Run
from dgm.cli.output import emit_json
from dgm.domain import ActionId, Evaluation
from dgm.errors import DgmError
from dgm.show.attempts import transcript_record
from dgm.show.spans import Line
from dgm.show.terminal import write_lines

if TYPE_CHECKING:
    from dgm.tui.bodies import Body


def show_transcript(run: Run, action: ActionId, evaluation: Evaluation, *, as_json: bool) -> None:
    """Print one evaluation: in the pager if a terminal is too small for it, as plain text in a pipe.

    Raises:
        DgmError: with ``as_json``, a model call cannot be read.
    """
    if as_json:
        emit_json(transcript_record(run, action, evaluation))
        return
    from dgm.tui.tabs.evaluations import evaluation_body

    body = evaluation_body(run.traces, action, evaluation, run.tree.spend_of(action))
    if sys.stdout.isatty():
        _show_on_terminal(body)
        return
    for text in body.text():
        sys.stdout.write(text + "\n")


def _show_on_terminal(body: "Body") -> None:
    size = shutil.get_terminal_size()
    body.reflow(size.columns)
    if len(body) >= size.lines and os.environ.get("TERM") != "dumb":
        from dgm.tui.pager import show_in_pager

        try:
            show_in_pager("\n".join(body.text()))
        except DgmError as error:
            sys.stderr.write(f"{error}; the text follows without a pager\n")
        else:
            return
    write_lines(_body_lines(body, size.columns))


def _body_lines(body: "Body", width: int) -> Sequence[Line]:
    return [body.line(number, width) for number in range(len(body))]
