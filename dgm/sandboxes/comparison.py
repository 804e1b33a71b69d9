"""The agent's changes of a workspace in its sandbox's image: git's own comparison, inside the sandbox.

The image provides git, and its read-only baseline is the repository. Settings, attributes and index are given here, so
that the agent's leftovers (a ``.git`` of its own, attributes, links, times) have no effect. Only ignore files are
respected; files that they hide are hidden from grading too. The sandbox's limits bear the cost.
"""

import re
from collections.abc import Sequence
from importlib.resources import files

from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Sandbox

SCRIPT = "compare.sh"
_NO_BASELINE, _CANNOT_BE_READ, _CUT_OFF = 70, 71, 72
_NO_COMMAND = (126, 127)
_PROCESSOR_S = 60.0
"""Processor seconds of each process; all of them together end well before the clock does."""
_TIMEOUT_S = 720.0
"""Maximum wall time in seconds; it allows for a busy machine."""
_SAID = 300
_NOTES_BYTES = 4000
_LEFT_OUT = re.compile(rb"# left out (\d+) ([^\n]*)\n")


async def patch_of(
    sandbox: Sandbox, workdir: str, baseline: str, limit_bytes: int, patterns: Sequence[str] = ()
) -> tuple[bytes, dict[str, int]]:
    """Return the patch from the image's ``baseline`` to the workdir, and the files too large for it with their bytes.

    The patch includes binary files. All processes in the sandbox are ended first, and the sandbox is of no use to the
    agent afterwards.

    Args:
        sandbox: the sandbox in which the agent worked.
        workdir: the folder that is compared.
        baseline: the repository that it is compared with.
        limit_bytes: of the patch; if new files would exceed it, the largest are left out first.
        patterns: new files to leave out, as in ``.gitignore``, beside those that the folder itself ignores.

    Raises:
        AgentFault: stage ``patch``: it is longer than ``limit_bytes``, or the workdir cannot be read.
        Infrastructure: the sandbox failed, or the image has no such baseline.
    """
    await sandbox.halt()
    script = files("dgm.sandboxes").joinpath(SCRIPT).read_text(encoding="utf-8")
    done = await sandbox.exec(
        ["sh", "-c", script, "compare", workdir, baseline, str(limit_bytes)],
        timeout_s=_TIMEOUT_S,
        cwd="/",
        stdin="".join(f"{pattern}\n" for pattern in patterns).encode(),
        output_limit=limit_bytes + _NOTES_BYTES + 1,
        processor_s=_PROCESSOR_S,
    )
    patch, left_out = _split_notes(done.output)
    if done.truncated or len(patch) > limit_bytes:
        raise AgentFault("patch", f"the patch has more than {limit_bytes} bytes, which are allowed")
    if done.timed_out and not done.out_of_processor:
        raise Infrastructure(f"comparing {workdir} with {baseline} took more than {_TIMEOUT_S:.0f} s")
    if done.out_of_processor or done.out_of_memory:
        ran_out = "processor time" if done.out_of_processor else "memory"
        raise AgentFault("patch", f"what is left in {workdir} cannot be compared: git ran out of {ran_out}")
    if done.exit_code == _CUT_OFF:
        raise AgentFault("patch", f"what is left in {workdir} cannot be compared: git failed on the way")
    said = done.output.decode("utf-8", "replace").strip()[:_SAID] or f"exit {done.exit_code}"
    if done.exit_code == _CANNOT_BE_READ:
        raise AgentFault("patch", f"what is left in {workdir} cannot be compared: {said}")
    if done.exit_code == _NO_BASELINE or done.exit_code in _NO_COMMAND:
        raise Infrastructure(f"the image's repository {baseline} cannot be used: {said}")
    if done.exit_code:
        raise Infrastructure(f"git cannot compare {workdir} with {baseline}: {said}")
    return patch, left_out


def _split_notes(output: bytes) -> tuple[bytes, dict[str, int]]:
    left_out: dict[str, int] = {}
    while found := _LEFT_OUT.match(output):
        left_out[found[2].decode("utf-8", "replace")] = int(found[1])
        output = output[found.end() :]
    return output, left_out
