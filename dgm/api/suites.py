"""Benchmarks: listed, shown, fetched, verified and made (``dgm benchmark``)."""

import asyncio
import re
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from dgm.api.arguments import SettingValues, check_workers, use_settings
from dgm.api.running import run_session
from dgm.archive.lock import machine_name
from dgm.benchmarks import swebench_images, verification
from dgm.benchmarks.formats import FORMATS, all_formats, format_of
from dgm.benchmarks.harbor import ImportReport, import_harbor
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.opening import NoSandboxEngine, find_suite_folder, open_suite
from dgm.benchmarks.suite_editing import (
    SplitBy,
    SuitePart,
    change_splits,
    choose_splits,
    compose_suite,
    parse_conditions,
)
from dgm.benchmarks.suites import SuiteBenchmark, suite_names
from dgm.benchmarks.swebench import SwebenchBenchmark
from dgm.benchmarks.swebench_images import Fetched
from dgm.benchmarks.task_facts import list_facts, read_facts
from dgm.benchmarks.toml_table import suggestion
from dgm.benchmarks.verification import TaskVerification
from dgm.config import BenchmarksSettings, Settings
from dgm.domain import Snapshot, Split, Task, TaskId
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.plugins import find_installed
from dgm.processes import repeat_after_standstill
from dgm.protocols import Benchmark, InImage, SandboxEngine
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from dgm.sandboxes.container import strip_registry
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import resolve_addresses
from dgm.sandboxes.engine_client import convert_engine_errors, find_image
from dgm.steps import OnStep, Step, ignore
from dgm.views.suite import (
    IN_IMAGE,
    FetchView,
    HiddenView,
    ImageRow,
    ImagesToFetch,
    MadeSuiteView,
    NameForm,
    OriginView,
    PluginRow,
    SuiteListView,
    SuiteRow,
    SuiteView,
    TaskRow,
    TaskView,
    VerificationView,
)

FOLDER = ("FOLDER", "a folder with a suite.toml")
SEVERAL = ("A+B", "several of these as one")
HERE, MISSING, UNKNOWN = "here", "not here", "not known: no Docker engine answers"
IN_ENGINE = "docker:"
"""Prefix of an image that is no recipe."""
IMPORT_HOLDOUT = 1 / 3


def benchmark_list() -> SuiteListView:
    """List the shipped suites and the plug-ins, and how the others are named."""
    formats = all_formats()
    names = [*suite_names(), *(f"{each.name}:" for each in formats if each.shipped)]
    forms = [FOLDER, *(form for each in formats for form in each.forms), SEVERAL]
    return SuiteListView(
        suites=tuple(SuiteRow(**_summary(name, open_suite(name, NoSandboxEngine()))) for name in names),
        plugins=tuple(
            PluginRow(name=name, package=point.dist.name if point.dist else "?", opens=point.value)
            for name, point in find_installed("benchmarks").items()
        ),
        named=tuple(NameForm(form=form, meaning=meaning) for form, meaning in forms),
    )


def benchmark_show(
    name: str | Path, task: str | None = None, *, hidden: bool = False, settings: SettingValues | None = None
) -> SuiteView | TaskView:
    """Show a benchmark, or one of its tasks: what an agent gets, names of tests, and the origin.

    Args:
        name: A name, a folder, or several joined by +.
        task: Show this task.
        hidden: Also show the task's hidden tests and reference fix.
        settings: A setting, such as benchmarks.swebench.subset=papers-60.

    Raises:
        UserError: there is no such benchmark or task, or a task in it is wrong.
    """
    with use_settings(settings) as chosen:
        opened = open_suite(str(name), NoSandboxEngine(), chosen.benchmarks)
        if task is not None:
            return _task_view(opened, opened.task(TaskId(task)), hidden=hidden)
        if hidden:
            raise UserError("name the task whose hidden tests to show", argument="hidden")
        return _suite_view(str(name), opened)


def benchmark_fetch(
    name: str | Path,
    *tasks: str,
    settings: SettingValues | None = None,
    confirm: Callable[[str], bool] = lambda _: True,
    on_step: OnStep = ignore,
) -> FetchView:
    """Fetch or build the images of a benchmark's tasks with Docker; go on after an interruption.

    SWE-bench images take at most benchmarks.swebench.disk_gb.

    Args:
        name: The benchmark.
        tasks: Only the images of these tasks.
        settings: A setting, such as benchmarks.swebench.disk_gb=200.
        confirm: is asked before anything is fetched, with how much there is to do.
        on_step: is called with each image.

    Raises:
        UserError: there is no such task.
        Infrastructure: no Docker engine answers.
    """
    with use_settings(settings) as chosen:
        engine, fetched, states = DockerEngine(), Fetched(), dict[str, str]()
        opened = open_suite(str(name), engine, chosen.benchmarks)
        parts = list(_divide(opened, [TaskId(task) for task in tasks]))
        before = [_count_images(part, ids, engine, chosen.benchmarks) for part, ids in parts]
        total = sum(part.here + part.missing for part in before)
        missing = [
            f"{part.benchmark}: {part.missing} of {part.here + part.missing}"
            for part in before
            if part.missing
        ]
        sizes = f", a few GB each and at most {chosen.benchmarks.swebench.disk_gb:g} GB in all"
        swebench = any(isinstance(part, SwebenchBenchmark) for part, _ in parts)
        question = f"{'; '.join(missing)} images are to be fetched or built{sizes if swebench else ''}"
        if missing and not confirm(question):
            raise UserError("nothing was fetched")

        def report(image: str, state: str) -> None:
            states[image] = state
            ended = sum(state == "ready" or state.startswith("failed") for state in states.values())
            on_step(Step("fetching images", ended, total, f"{image}: {state}"))

        for part, ids in parts:
            _fetch(part, ids, engine, chosen, fetched, report)
        return FetchView(
            before=tuple(before),
            ready=tuple(fetched.ready),
            failed=fetched.failed,
            removed=tuple(fetched.removed),
        )


def benchmark_verify(
    name: str | Path,
    *tasks: str,
    workers: int = 2,
    settings: SettingValues | None = None,
    on_step: OnStep = ignore,
) -> VerificationView:
    """Check in sandboxes that doing nothing fails and the reference fix passes.

    Exits with 1 if any task is not sound.

    Args:
        name: The benchmark.
        tasks: Only these tasks.
        workers: Parallel tasks.
        settings: A setting, such as sandbox=docker.
        on_step: is called after each task.

    Raises:
        UserError: there is no such task, or no sandbox.
        Infrastructure: the sandboxes' engine failed.
    """
    check_workers(workers)
    with use_settings(settings) as chosen:
        engine = choose(chosen.sandbox, chosen)
        opened = open_suite(str(name), engine, chosen.benchmarks, chosen.grading)
        wanted = [TaskId(task) for task in dict.fromkeys(tasks)] or [
            task.id for _, task in list_all_tasks(opened)
        ]
        if not wanted:
            raise UserError(f"benchmark {opened.name!r} has no task to verify")
        for task in wanted:
            opened.task(task)
        results = run_session(lambda: _verify_tasks(opened, engine, wanted, workers, on_step))
        problems: dict[str, tuple[str, ...]] = {
            task: tuple(result.defects) for task, result in results.items() if result.defects
        }
        return VerificationView(
            benchmark=opened.name,
            version=opened.version,
            verified=tuple(wanted),
            sound=len(wanted) - len(problems),
            problems=problems,
            left_out=tuple(verification.list_excluded_defects(opened)),
            notes={task: tuple(result.notes) for task, result in results.items() if result.notes},
            outputs={task: result.output for task, result in results.items() if result.output},
        )


def benchmark_make(
    out: str | Path,
    *sources: str,
    where: Sequence[str] = (),
    holdout: float | None = None,
    promotion: float = 0.0,
    by: Literal["time", "repo", "random"] = "random",
    seed: int = 0,
    image: str | None = None,
) -> MadeSuiteView:
    """Make a suite from the tasks of others: merge, filter, split again.

    Fields of --where: id, kind, split, difficulty, repo, tag, module, license (= or !=), date, f2p, p2p,
    lines, files (< <= > >=, too).

    Args:
        out: A new folder.
        sources: Suites, or folders of tasks in the layout of Harbor or Terminal-Bench 2.
        where: Only tasks that match, such as kind=bug,history or 'f2p<5'. Repeatable; all must match.
        holdout: Share of tasks kept for reports (default: keep the splits; a third of imported tasks).
        promotion: With --holdout: share of tasks that only decide about promotions.
        by: With --holdout: hold out the newest tasks, whole libraries, or tasks of each kind.
        seed: Random seed of the split.
        image: Recipe in which imported tasks work, instead of their own images.

    Raises:
        UserError: a source is none or named twice, a condition is wrong or no task meets them, the tasks cannot be
            split so, or the folder is in use.
    """
    target = Path(out)
    if not sources:
        raise UserError("name one suite or more")
    if promotion and holdout is None:
        raise UserError("is a share beside that of holdout; give both", argument="promotion")
    if image and not image.startswith(IN_ENGINE):
        recipes.load(image)
    report = ImportReport()
    with tempfile.TemporaryDirectory(prefix="dgm-import-") as drafts:
        folders = [
            _import_tasks(Path(source), target, Path(drafts, str(number)), image, report)
            if _is_foreign(source)
            else source
            for number, source in enumerate(sources)
        ]
        parts = _filter([_open_part(str(folder)) for folder in folders], where)
        words = f" with {' and '.join(where)}" if where else ""
        described = f"tasks of {', '.join(part.suite.name for part in parts)}{words}"
        composed = compose_suite(
            parts,
            target,
            re.sub(r"[^\w.-]", "-", target.resolve().name),
            described if where or len(parts) > 1 else parts[0].suite.description,
        )
    try:
        made = SuiteBenchmark(target, NoSandboxEngine())
        if holdout is not None:
            change_splits(target, choose_splits(list_facts(made), holdout, SplitBy(by), seed, promotion))
            made = SuiteBenchmark(target, NoSandboxEngine())
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return MadeSuiteView(
        suite=target,
        version=made.version,
        tasks=_count_tasks(made),
        renamed=composed.renamed,
        repeated=tuple(composed.repeated),
        remarks=report.remarks,
        skipped=report.skipped,
    )


def _suite_view(name: str, opened: Benchmark) -> SuiteView:
    tasks = [task for _, task in list_all_tasks(opened)]
    images = Counter(task.image for task in tasks)
    states = find_image_states(list(images))
    facts = list_facts(opened) if isinstance(opened, SuiteBenchmark) else ()
    return SuiteView(
        **_summary(name, opened),
        tags=dict(Counter(tag for task in tasks for tag in task.tags).most_common()),
        images=tuple(
            ImageRow(image=image, tasks=count, state=states[image]) for image, count in images.most_common()
        ),
        left_out=tuple(verification.list_excluded_defects(opened)),
        ids={split.value: tuple(task.id for task in opened.tasks(split)) for split in Split},
        facts=tuple(map(TaskRow.of, facts)),
    )


def list_all_tasks(opened: Benchmark) -> list[tuple[Split, Task]]:
    """Return every task with its split."""
    return [(split, task) for split in Split for task in opened.tasks(split)]


def find_image_states(images: Sequence[str]) -> Mapping[str, str]:
    """Map each image, as tasks name it, to a few words on whether it can be used now."""
    try:
        tags = _list_tags()
    except DgmError:
        return dict.fromkeys(images, UNKNOWN)
    return {image: _image_state(image, tags) for image in images}


def _image_state(image: str, tags: frozenset[str]) -> str:
    if image.startswith(IN_ENGINE):
        reference = image.removeprefix(IN_ENGINE)
        tagged = reference if ":" in reference.rpartition("/")[2] else f"{reference}:latest"
        return HERE if strip_registry(tagged) in tags else MISSING
    try:
        return HERE if recipes.load(image).tag in tags else "not built yet"
    except UserError:
        return "unknown: no such recipe"


def _list_tags() -> frozenset[str]:
    """Return the tags of all images that every engine has."""
    tags = []
    for address in resolve_addresses():
        images = DockerEngine(address).client.api.images()
        tags.append(frozenset(strip_registry(tag) for image in images for tag in image["RepoTags"] or ()))
    return frozenset.intersection(*tags)


def _count_tasks(opened: Benchmark) -> dict[str, int]:
    return {split.value: len(opened.tasks(split)) for split in Split}


def _summary(name: str, opened: Benchmark) -> dict[str, Any]:
    kind, colon, location = name.partition(":")
    shipped = format_of(kind).shipped if colon and not location and kind in FORMATS else ""
    description = opened.description if isinstance(opened, SuiteBenchmark) else shipped
    return {
        "name": name,
        "description": description,
        "tasks": _count_tasks(opened),
        "version": opened.version,
    }


def _task_view(opened: Benchmark, task: Task, *, hidden: bool) -> TaskView:
    workspace = _read_workspace(opened, task)
    files = {} if isinstance(workspace, InImage) else workspace
    return TaskView(
        task=task.id,
        benchmark=task.benchmark,
        image=task.image,
        workdir=task.workdir,
        timeout_s=task.timeout_s,
        tags=task.tags,
        prompt=task.prompt,
        workspace=IN_IMAGE if isinstance(workspace, InImage) else tuple(files),
        workspace_bytes=sum(len(entry.data) for entry in files.values()),
        origin=_origin_view(opened, task.id) if isinstance(opened, SuiteBenchmark) else None,
        hidden=_hidden_view(opened, task.id) if hidden else None,
    )


def _read_workspace(opened: Benchmark, task: Task) -> Snapshot | InImage:
    """Return the content of the task's workdir; do not fetch an image for it."""
    try:
        return opened.workspace(task.id)
    except DgmError:
        if not task.image.startswith(IN_ENGINE):
            raise
        return InImage()


def _origin_view(suite: SuiteBenchmark, task: TaskId) -> OriginView:
    facts = read_facts(suite, task)
    return OriginView(
        split=facts.split.value,
        kind=facts.kind,
        difficulty=facts.difficulty,
        changes=facts.changes,
        fail_to_pass=facts.fail_to_pass,
        pass_to_pass=facts.pass_to_pass,
        provenance=facts.provenance,
        checksum=suite.checksum(task),
    )


def _hidden_view(opened: Benchmark, task: TaskId) -> HiddenView:
    if not isinstance(opened, SuiteBenchmark):
        raise UserError(f"benchmark {opened.name!r}: only suites that are folders show their hidden tests")
    try:
        solution = opened.reference(task).decode("utf-8", "replace")
    except UserError:
        solution = ""
    tests = {name: entry.data.decode("utf-8", "replace") for name, entry in opened.hidden_tests(task).items()}
    return HiddenView(tests=tests, solution=solution)


async def _verify_tasks(
    opened: Benchmark, engine: SandboxEngine, tasks: Sequence[TaskId], workers: int, on_step: OnStep
) -> Mapping[TaskId, TaskVerification]:
    """Grade tasks without a change, which has to fail, and with their reference fix, which has to pass."""
    labels = {"dgm.run": f"verify-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    slots = asyncio.Semaphore(workers)
    done = unsound = 0
    on_step(Step("verifying tasks", 0, len(tasks)))

    async def verify(task: TaskId) -> TaskVerification:
        nonlocal done, unsound
        async with slots:
            try:
                result = await repeat_after_standstill(
                    lambda: verification.verify_with_notes(opened, task, labels),
                    lambda result: bool(result.defects),
                )
            except Infrastructure as error:
                result = TaskVerification([f"could not be verified: {error}"])
            except UserError as error:
                result = TaskVerification([str(error)])
        done += 1
        unsound += bool(result.defects)
        on_step(Step("verifying tasks", done, len(tasks), f"{unsound} not sound" if unsound else ""))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            running = {task: group.create_task(verify(task)) for task in tasks}
    finally:
        await engine.reap(labels)
    return {task: result.result() for task, result in running.items()}


def _is_foreign(source: str) -> bool:
    """Return whether a source holds tasks of another program."""
    return find_suite_folder(source) is None and Path(source).is_dir()


def _import_tasks(source: Path, target: Path, draft: Path, image: str | None, report: ImportReport) -> Path:
    """Write tasks of another program as a suite, add the outcome to the report, and return the suite's folder."""
    if target.resolve().is_relative_to(source.resolve()):
        raise UserError(f"{target}: lies in the folder that is imported; give another one")
    folder = draft / source.resolve().name
    done = import_harbor(source, folder, image or "", IMPORT_HOLDOUT)
    report.remarks |= done.remarks
    report.skipped |= done.skipped
    return folder


def _open_part(name: str) -> SuitePart:
    folder = find_suite_folder(name)
    if folder is None:
        hint = suggestion(name, suite_names())
        raise UserError(f"{name}: no folder of tasks, and no shipped suite{hint}")
    suite = SuiteBenchmark(folder, NoSandboxEngine())
    return SuitePart(folder, suite, sorted(task.id for _, task in list_all_tasks(suite)))


def _filter(parts: Sequence[SuitePart], where: Sequence[str]) -> Sequence[SuitePart]:
    if len({part.folder.resolve() for part in parts}) < len(parts):
        raise UserError("a suite is named twice")
    if not where:
        return parts
    holds = parse_conditions(where)
    chosen = [
        replace(part, tasks=[facts.id for facts in list_facts(part.suite) if holds(facts)]) for part in parts
    ]
    if not any(part.tasks for part in chosen):
        count = sum(len(part.tasks) for part in parts)
        raise UserError(f"none of {count} tasks has {' and '.join(where)}")
    return [part for part in chosen if part.tasks]


def _divide(opened: Benchmark, tasks: Sequence[TaskId]) -> Iterator[tuple[Benchmark, Sequence[TaskId]]]:
    """Yield the parts of a benchmark with the tasks that are chosen; without any, all of them."""
    chosen = list(tasks) or [task.id for _, task in list_all_tasks(opened)]
    for task in chosen:
        opened.task(task)
    if not isinstance(opened, MixedBenchmark):
        yield opened, chosen
        return
    wanted: dict[str, list[TaskId]] = {}
    for task in chosen:
        part, _, inner = task.partition("/")
        wanted.setdefault(part, []).append(TaskId(inner))
    for part, ids in wanted.items():
        yield from _divide(opened.parts[part], ids)


def _count_images(
    opened: Benchmark, tasks: Sequence[TaskId], engine: DockerEngine, settings: BenchmarksSettings
) -> ImagesToFetch:
    if isinstance(opened, SwebenchBenchmark):
        store, images = swebench_images.store_of(engine), settings.swebench.images
        tags = [swebench_images.tag_of(opened.instance(task), images) for task in tasks]
        here = [store.has(tag) for tag in tags]
    else:
        here = [state == HERE for state in find_image_states(list(_users(opened, tasks))).values()]
    return ImagesToFetch(benchmark=opened.name, here=sum(here), missing=len(here) - sum(here))


def _users(opened: Benchmark, tasks: Sequence[TaskId]) -> Mapping[str, TaskId]:
    """Return each image with a task that uses it."""
    return {task.image: task.id for task in map(opened.task, tasks)}


def _fetch(
    opened: Benchmark,
    tasks: Sequence[TaskId],
    engine: DockerEngine,
    settings: Settings,
    fetched: Fetched,
    report: Callable[[str, str], None],
) -> None:
    """Fetch the images of a part that are missing, and add the outcome to ``fetched``."""
    if isinstance(opened, SwebenchBenchmark):
        swebench = settings.benchmarks.swebench
        done = swebench_images.fetch(
            [opened.instance(task) for task in tasks],
            swebench.images,
            swebench_images.store_of(engine),
            workers=settings.workers,
            disk_gb=swebench.disk_gb,
            progress=report,
        )
        fetched.ready += done.ready
        fetched.failed |= done.failed
        fetched.removed += done.removed
        return
    users = _users(opened, tasks)
    for image, state in find_image_states(list(users)).items():
        try:
            if state != HERE:
                report(image, "building")
                _build_image(opened, image, users[image], engine)
        except DgmError as error:
            fetched.failed[image] = str(error)
            report(image, "failed")
        else:
            fetched.ready.append(image)
            report(image, "ready")


def _build_image(opened: Benchmark, image: str, task: TaskId, engine: DockerEngine) -> None:
    if not image.startswith(IN_ENGINE):
        engine.build(image)
        return
    # Asking for the workspace makes the image.
    opened.workspace(task)
    reference = image.removeprefix(IN_ENGINE)
    with convert_engine_errors("look for an image"):
        present = find_image(engine.client, reference)
    if present is None:
        raise UserError(f"{reference} is not here: pull or build it")
