"""Is a task sound: does doing nothing fail, does the reference fix pass, is no hidden test to be seen."""

from collections.abc import Mapping, Sequence

from dgm.benchmarks.grading import examine
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.domain import TaskId, Verdict
from dgm.protocols import SandboxEngine


async def verify(
    suite: SuiteBenchmark, task: TaskId, engine: SandboxEngine, labels: Mapping[str, str]
) -> Sequence[str]:
    """What is wrong with a task, in one line each; nothing where it is sound. Opens two sandboxes.

    Raises:
        UserError: a patch of the task does not apply to its repository.
        Infrastructure: a sandbox failed.
    """
    record, exam = suite.record(task), suite.exam(task)
    problems = _visible(suite, task)
    nothing = await examine(exam, b"", engine, labels)
    problems += [f"{test} passes without a fix" for test in record.fail_to_pass if test in nothing.passed]
    problems += [f"{test} fails without a fix" for test in record.pass_to_pass if test not in nothing.passed]
    reference = await suite.grade(task, suite.reference(task), labels)
    if reference.verdict is not Verdict.RESOLVED:
        problems.append(f"the reference fix is {reference.verdict}: {reference.reason} {reference.failed}")
    return problems


def _visible(suite: SuiteBenchmark, task: TaskId) -> list[str]:
    shown = suite.workspace(task)
    hidden = suite.hidden_tests(task)
    problems = [f"tests/{name} is in the workspace" for name in hidden if f"tests/{name}" in shown]
    texts = {entry.data for entry in shown.values()}
    problems += [
        f"the text of {name} is in the workspace" for name, entry in hidden.items() if entry.data in texts
    ]
    return problems
