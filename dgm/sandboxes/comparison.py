"""What an agent changed in a workspace that stands in its sandbox's image: git's own comparison, inside the sandbox.

Git is the image's, its repository is the image's read-only baseline, and its settings, attributes and index are
given here: nothing that the agent left (a ``.git`` of its own, attributes, links, times) has a say. Only ignore
files are heeded, and what those hide is hidden from grading too. Whatever it costs is paid in the sandbox.
"""

from importlib.resources import files

from dgm.errors import AgentFault, Infrastructure
from dgm.protocols import Sandbox

SCRIPT = "compare.sh"
_NO_BASELINE, _CANNOT_BE_READ, _CUT_OFF = 70, 71, 72
_NO_COMMAND = (126, 127)
_PROCESSOR_S = 180.0
_TIMEOUT_S = 720.0
"""By the clock, on a machine that has other things to do."""
_SAID = 300


async def patch_of(sandbox: Sandbox, workdir: str, baseline: str, limit_bytes: int) -> bytes:
    """The patch from the image's ``baseline`` to the workdir, binary files included.

    Everything that runs in the sandbox is ended first, and it is of no use to the agent afterwards.

    Raises:
        AgentFault: stage ``patch``: it is longer than ``limit_bytes``, or the workdir cannot be read.
        Infrastructure: the sandbox failed, or the image has no such baseline.
    """
    await sandbox.halt()
    script = files("dgm.sandboxes").joinpath(SCRIPT).read_text(encoding="utf-8")
    done = await sandbox.exec(
        ["sh", "-c", script, "compare", workdir, baseline],
        timeout_s=_TIMEOUT_S,
        cwd="/",
        output_limit=limit_bytes + 1,
        processor_s=_PROCESSOR_S,
    )
    if done.truncated or len(done.output) > limit_bytes:
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
    return done.output
