"""The search loop: ask the policy, start its action, record the result; the only writer of the event log.

Up to ``workers`` actions run at once, with no barrier between them. The intent is durable before an action
starts, and its outcome before the policy is asked again. An action that is performed again keeps its id, so
that the replies it has already paid for are served from the traces.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Protocol

from dgm.analysis.budgets import (
    NO_ROOM,
    Ending,
    Goals,
    Reason,
    find_ending,
    has_evaluation_room,
    has_room_for,
)
from dgm.analysis.dead_ends import find_dead_end
from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentBorn,
    AgentNoted,
    AgentStillborn,
    ChildProposed,
    Event,
    Recorded,
    RunPaused,
    RunStopped,
    TaskGraded,
    TasksChanged,
)
from dgm.archive.live import read_stop_request
from dgm.archive.run import Run
from dgm.archive.tree import PROMOTION_EVENTS, Tree
from dgm.config import Settings
from dgm.domain import Action, ActionId, Born, Evaluate, Evaluation, Expand, Outcome, Stillborn, Verdict
from dgm.errors import Infrastructure, StoodStill, UserError
from dgm.policies.limits import fertile
from dgm.processes import StandstillWatch
from dgm.protocols import Policy

if TYPE_CHECKING:
    from dgm.gateway.server import Gateway


LONGEST_WAIT_S = 60.0


class ModelAvailability:
    """The availability of a search's models; in this class, of models that cost nothing and are always there."""

    @property
    def spent(self) -> str:
        """Why no further call can be afforded; empty if one can."""
        return ""

    @property
    def refused(self) -> str:
        """Why a provider refuses all our calls, if it never answered in this session; else empty."""
        return ""

    @property
    def halted(self) -> str:
        """Why nothing may be started until a provider answers again; empty if nothing is known to be wrong."""
        return ""

    @property
    def wait_s(self) -> float:
        """Seconds until the wait is over that a provider asked for; 0 without one."""
        return 0.0

    async def outage(self) -> str:
        """Return why a provider that failed last does not answer now; empty if all answer."""
        return ""


ALWAYS_AVAILABLE = ModelAvailability()


@dataclass(frozen=True, slots=True)
class GatewayAvailability(ModelAvailability):
    """The models of a gateway."""

    gateway: "Gateway"

    @property
    def spent(self) -> str:  # noqa: D102  (as in the base class)
        return self.gateway.ledger.exhausted

    @property
    def refused(self) -> str:  # noqa: D102  (as in the base class)
        return "" if self.gateway.caller.answered else self.gateway.caller.refused

    @property
    def halted(self) -> str:
        """A refusal of the account in mid-session, or a long wait that a provider asked for."""
        caller = self.gateway.caller
        return caller.refused or self._waits

    async def outage(self) -> str:
        """Ask the providers by a small call each, if one failed last and asked for no wait."""
        caller = self.gateway.caller
        if not caller.trouble:
            return ""
        if self._waits:
            return self._waits
        try:
            await self.gateway.check_models()
        except (Infrastructure, UserError) as error:
            return str(error)
        return ""

    @property
    def wait_s(self) -> float:  # noqa: D102  (as in the base class)
        wait = self.gateway.caller.waits
        return max(wait.until - time.time(), 0.0) if wait is not None else 0.0

    @property
    def _waits(self) -> str:
        """The wait that a provider asked for and that is not over; empty if there is none."""
        return str(self.gateway.caller.waits) if self.wait_s else ""


class Backoff:
    """Counts failures without a success in between; waits 1, 2, 4 … up to 60 s after each of them.

    One failed engine fails every worker at once, so only failures that start a new wait lengthen it. An action
    is abandoned when it failed ``tries`` times in this session although others succeeded meanwhile. In an outage
    no action is abandoned.
    """

    def __init__(self, failures_in_a_row: int, tries: int, clock: Callable[[], float]) -> None:
        self._limit = failures_in_a_row
        self._tries = tries
        self._clock = clock
        self._failures = 0
        self._waits = 0
        self._until = 0.0
        self._successes = 0
        self._failed: dict[ActionId, tuple[int, int]] = {}
        """Action → its failures, and the number of all successes before the first of them."""
        self.on_trial = False
        """True while a single action tests whether a pause is over."""
        self.unexplained = False
        """True if the last pause ended at once because every provider answered."""
        self.last_reason = ""
        self.last_failed: ActionId | None = None

    def record_success(self) -> None:
        """Reset the failures and the wait."""
        self._successes += 1
        self._failures = self._waits = 0
        self._until = 0.0
        self.on_trial = self.unexplained = False
        self.last_failed = None

    def record_failure(self, action: ActionId, reason: str, *, general: bool = True) -> None:
        """Record a failure that was not an agent's fault, and start a wait.

        Args:
            action: the action that failed.
            reason: why.
            general: whether other actions may fail of it, too, so that a wait helps.
        """
        failures, before = self._failed.get(action, (0, self._successes))
        self._failed[action] = (failures + 1, before)
        if not general or self.should_give_up(action):
            return
        self.last_reason, self.last_failed = reason, action
        self._failures += 1
        if self.wait_s() == 0.0:
            self._until = self._clock() + min(LONGEST_WAIT_S, 2.0**self._waits)
            self._waits += 1

    def should_give_up(self, action: ActionId) -> bool:
        """Return whether the action failed too often while others succeeded."""
        failures, before = self._failed.get(action, (0, self._successes))
        return failures >= self._tries and self._successes > before

    def wait_s(self) -> float:
        """Return the seconds until something may be started again; 0.0 when it may."""
        return max(0.0, self._until - self._clock())

    @property
    def exhausted(self) -> bool:
        """Return True if the search should pause, or stop and tell the user."""
        return self._failures >= self._limit

    def end_pause(self, *, unexplained: bool = False) -> None:
        """Let one action start at once; its failure begins a new pause.

        Args:
            unexplained: whether nothing was found wrong with the providers.
        """
        self._failures, self._waits, self._until = self._limit - 1, 0, 0.0
        self.on_trial, self.unexplained = True, unexplained


log = logging.getLogger(__name__)

LOOK_S = 0.5
"""Seconds between two looks for a request to stop."""
AT_ONCE = Ending(Reason.STOPPED, "stopped at once; nothing recorded is lost")

_NO_THREAD = "can't start new thread"


class RunLog(Protocol):
    """The loop's view of a run: its log, the tree folded from it, and the evidence of a decision."""

    @property
    def tree(self) -> Tree:
        """The run's tree, up to date with ``append``."""
        ...

    def append(self, event: Event) -> Recorded:
        """Make an event durable, then fold it into the tree."""
        ...

    def since(self, seq: int) -> Iterable[Recorded]:
        """Return the events after number ``seq``, in order."""
        ...

    def with_evidence(self, action: ActionId, what: Action, tree: Tree) -> Action:
        """Return the action with all that its operator may see; ``tree`` is the fold of the log up to the decision."""
        ...

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn | AgentStillborn | ChildProposed:
        """Return the event of a birth, or of the child's wait for a person."""
        ...

    def answered(self, now: float) -> AgentBorn | AgentStillborn | AgentNoted | None:
        """Return a person's first note, or the event of the first child that waits no longer at ``now`` (Unix time)."""
        ...


class ActionExecutor(Protocol):
    """The executor of the loop's actions."""

    async def perform(self, action: ActionId, what: Action) -> Outcome:
        """Perform an action that was started in the log.

        Raises:
            Infrastructure: it could not be performed.
        """
        ...


@dataclass(frozen=True, slots=True)
class FinishedTask:
    """The result of a worker's task, for the queue of the loop."""

    action: ActionId
    result: Outcome | Exception
    """An exception that is no ``Infrastructure`` ends the search, which raises it."""


@dataclass(frozen=True, slots=True)
class LoopHooks:
    """The callbacks, model supply, clocks and goals of a search."""

    on_event: Callable[[Recorded], None] = lambda _: None
    supply: ModelAvailability = ALWAYS_AVAILABLE
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    """Unix time, as in the log."""
    answers_s: float = 1.0
    """Interval, in seconds, between looks for a person's answer about a waiting child."""
    goals: Goals | None = None
    """The goals beside the budget; None: there are none."""
    change_tasks: Callable[[Tree], TasksChanged | None] = lambda _: None
    """Says which change of the active tasks is due before a decision."""
    open_watch: Callable[[], StandstillWatch] | None = StandstillWatch
    """Opens the watch for time in which dgm itself stood still; None: time is simulated."""


NO_HOOKS = LoopHooks()


class Search:
    """One session of a run, from the first start or a resume to its end."""

    def __init__(
        self,
        controller: RunLog,
        policy: Policy,
        worker: ActionExecutor,
        settings: Settings,
        around: LoopHooks = NO_HOOKS,
    ) -> None:
        self._controller = controller
        self._on_event = around.on_event
        self._policy = policy
        self._worker = worker
        self._settings = settings
        self._retry = Backoff(settings.limits.failures_in_a_row, settings.limits.tries, around.clock)
        self._supply = around.supply
        self._now, self._answers_s = around.now, around.answers_s
        self._goals, self._change_tasks = around.goals, around.change_tasks
        self._watch = around.open_watch() if around.open_watch else None
        self._last_at = around.now()
        """Time of the last event, in Unix seconds."""
        self._running: dict[ActionId, asyncio.Task[None]] = {}
        self._finished: asyncio.Queue[FinishedTask | None] = asyncio.Queue()
        self._stop: Ending | None = None
        self._observed = 0
        self._no_budget_for_expansion = False
        """Whether the policy's last wish was an expansion that the budget has no room for."""

    @property
    def running(self) -> int:
        """Actions under way."""
        return len(self._running)

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop is not None

    def ask_to_stop(self, message: str) -> None:
        """Start nothing new from now on; actions under way end and are recorded."""
        if self._stop is None:
            self._stop = Ending(Reason.STOPPED, message)
            self._finished.put_nowait(None)

    async def go(self) -> Ending:
        """Search until a budget is spent, nothing is left, or a stop is asked for.

        An exception of an action or of ``on_event`` ends the actions under way, and is raised as it is.
        """
        for action in list(self._controller.tree.pending):
            self._append(ActionLost(action, "the process that performed it ended"))
        try:
            async with self._watch or nullcontext():
                over = await self._search()
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)
        if over.reason is not Reason.PROMOTION:
            self._append(RunStopped(over.reason.value))
        return over

    async def _search(self) -> Ending:
        while True:
            wait_s = self._retry.wait_s()
            self._record_answers()
            over = self._start_actions()
            if over is None and self._paused and not self._running:
                over = await self._pause()
                if over is None:
                    continue
            if over is not None and not self._running:
                return over
            # If no wait holds an action back, only a finished action can change anything.
            held_back = wait_s > 0.0 and len(self._running) < self._slots and not over
            waits = [max(wait_s, 0.05)] if held_back else []
            await self._wait_for_results(
                min([*waits, self._answers_s] if self._children_wait else waits, default=None)
            )

    @property
    def _paused(self) -> bool:
        """Whether nothing new may start until a provider answers again, or a person is told."""
        return self._retry.exhausted or bool(self._supply.halted)

    @property
    def _slots(self) -> int:
        return 1 if self._retry.on_trial else self._settings.workers

    def _start_actions(self) -> Ending | None:
        """Start every action that may start; return the session's end if none may any more."""
        while len(self._running) < self._slots:
            over = self._find_ending()
            if over is not None:
                return over
            if self._paused or self._retry.wait_s() > 0.0:
                return None
            chosen = self._choose()
            if chosen is None:
                return None if self._running or self._children_wait else self._ending_without_action()
            self._start(*chosen)
        return None

    def _ending_without_action(self) -> Ending:
        if self._no_budget_for_expansion:
            return Ending(Reason.GOAL, NO_ROOM.format(budget=self._controller.tree.budget))
        tree = self._controller.tree
        if max(tree.untried_count) > 0:
            return Ending(Reason.NOTHING_LEFT, f"the policy {self._policy.name} names nothing more to do")
        childless = "" if fertile(tree).any() else ", and none may have a child any more"
        return Ending(Reason.NOTHING_LEFT, f"every agent has tried every task{childless}")

    def _find_ending(self) -> Ending | None:
        if self._stop is not None:
            return self._stop
        if self._supply.refused:
            return Ending(Reason.REFUSED, self._supply.refused)
        tree = self._controller.tree
        reached = self._goals.ending(tree) if self._goals is not None else None
        return (
            reached
            or self._check_dead_end(tree)
            or find_ending(tree, self._supply.spent)
            or self._check_time_limit()
        )

    def _check_dead_end(self, tree: Tree) -> Ending | None:
        stuck = find_dead_end(tree, self._settings.limits.stillborn_in_a_row)
        if stuck is None:
            return None
        return Ending(Reason.CANNOT_GO_ON, f"{stuck.message}; what may help: {stuck.may_help}")

    def _check_time_limit(self) -> Ending | None:
        """Return the ending if the time limit passes while children wait; no event tells the time meanwhile."""
        tree = self._controller.tree
        limit = tree.budget.seconds
        if (
            not self._children_wait
            or limit is None
            or tree.wall_seconds + self._now() - self._last_at < limit
        ):
            return None
        return Ending(
            Reason.LIMIT, f"the budget is spent: {limit:,.0f} seconds are over, and children still wait"
        )

    @property
    def _children_wait(self) -> bool:
        return bool(self._controller.tree.waiting)

    def _record_answers(self) -> None:
        """Record people's notes, the answers about waiting children, and the children whose time is over."""
        while (event := self._controller.answered(self._now())) is not None:
            self._append(event)

    async def _pause(self) -> Ending | None:
        """Wait until the models' provider answers again; return the session's end if the provider is not the cause.

        A provider that answers may have been away until now: one more action shows whether it was the cause.
        """
        reason = self._supply.halted or await self._find_outage()
        if self._stop is not None:
            return self._stop
        if not reason:
            if self._retry.unexplained:
                last = self._retry.last_reason
                return Ending(Reason.OUTAGE, f"too many failures in a row, the last: {last}")
            self._retry.end_pause(unexplained=True)
            return None
        self._append(RunPaused(reason))
        left_s = self._supply.wait_s or self._settings.limits.pause_s
        while reason:
            self._record_answers()
            wait_s = min(left_s, self._answers_s) if self._children_wait else left_s
            try:
                await asyncio.wait_for(self._finished.get(), wait_s)
            except TimeoutError:
                left_s -= wait_s
            if left_s <= 0.0:
                reason = await self._find_outage()
                left_s = self._supply.wait_s or self._settings.limits.pause_s
            over = self._find_ending()
            if over is not None:
                return over
        self._retry.end_pause()
        return None

    async def _find_outage(self) -> str:
        """Return why a provider does not answer now; return early if a stop is asked for."""
        asking = asyncio.create_task(self._supply.outage())
        stopping = asyncio.create_task(self._finished.get())
        try:
            await asyncio.wait((asking, stopping), return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else "a stop is asked for"
        finally:
            for task in (asking, stopping):
                task.cancel()
            await asyncio.gather(asking, stopping, return_exceptions=True)

    def _choose(self) -> tuple[ActionId, Action, bool] | None:
        tree = self._controller.tree
        again = list(tree.to_redo().items())
        # Another action goes before the one that has just failed: this tells one action's trouble from a
        # general one.
        fresh = [(action, what) for action, what in again if action != self._retry.last_failed]
        if fresh:
            return *fresh[0], True
        action = tree.next_action
        wanted, self._no_budget_for_expansion = None, False
        if has_evaluation_room(tree):
            # A task that was put back may be drawn at once, in the place of another one.
            while (change := self._change_tasks(tree)) is not None:
                self._append(change)
            self._show_events()
            wanted = self._policy.next(tree, decision_stream(self._settings.seed, action))
            if wanted is not None:
                validate_action(self._policy.name, tree, wanted)
            self._no_budget_for_expansion = wanted is not None and not has_room_for(tree, wanted)
        if wanted is None or self._no_budget_for_expansion:
            return (*again[0], True) if again else None
        return action, self._controller.with_evidence(action, wanted, tree), False

    def _start(self, action: ActionId, what: Action, again: bool) -> None:
        self._append(ActionStarted(action, what, again))
        began = self._watch.beat() if self._watch else 0.0

        async def perform() -> None:
            try:
                result: Outcome | Exception = await self._worker.perform(action, what)
            except Exception as error:  # noqa: BLE001  (``_record`` raises it where the search is awaited)
                result = error
                if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
                    result = Infrastructure(f"the machine's limit on processes is reached: {error}")
            if self._watch and not _is_success(result):
                # Whatever ended badly across a standstill is no agent's fault.
                result = self._watch.find_standstill(began) or result
            self._finished.put_nowait(FinishedTask(action, result))

        self._running[action] = asyncio.create_task(perform(), name=f"action-{action}")

    async def _wait_for_results(self, wait_s: float | None) -> None:
        """Record the finished actions; wait for the first one, at most ``wait_s`` seconds."""
        try:
            finished = await asyncio.wait_for(self._finished.get(), wait_s)
        except TimeoutError:
            return
        while True:
            if finished is not None:
                del self._running[finished.action]
                self._record(finished)
            if self._finished.empty():
                return
            finished = self._finished.get_nowait()

    def _record(self, finished: FinishedTask) -> None:
        action = finished.action
        match finished.result:
            case Infrastructure() as error:
                self._append(ActionLost(action, str(error)))
            case Evaluation() as evaluation:
                again = self._controller.tree.times_withdrawn(action)
                self._append(TaskGraded(action, evaluation, again))
            case Born() as born:
                self._append(self._controller.birth(action, born))
            case Stillborn() as stillborn:
                self._append(AgentStillborn(action, stillborn))
            case error:
                raise error
        failure = _failure_reason(finished.result)
        if failure is None:
            self._retry.record_success()
            return
        self._retry.record_failure(action, failure, general=not isinstance(finished.result, StoodStill))
        if self._retry.should_give_up(action):
            log.warning("action %d failed too often and is abandoned: %s", action, failure)
            self._append(ActionLost(action, f"given up: {failure}", final=True))
        else:
            # The last line of the session reports its cause; do not warn of it twice.
            ends = self._supply.spent or self._supply.refused or self._supply.halted
            level = logging.INFO if ends else logging.WARNING
            log.log(level, "action %d failed and will be performed again: %s", action, failure)

    def _append(self, event: Event) -> None:
        recorded = self._controller.append(event)
        self._last_at = recorded.at
        if self._goals is not None:
            self._goals.passed(self._controller.tree)
        self._on_event(recorded)

    def _show_events(self) -> None:
        """Show the policy the events since its last look, in the order of the log; nothing of promotion is shown."""
        if self._policy.keeps_state:
            for recorded in self._controller.since(self._observed):
                if not isinstance(recorded.event, PROMOTION_EVENTS):
                    self._policy.observe(recorded)
                self._observed = recorded.seq


def _is_success(result: Outcome | Exception) -> bool:
    match result:
        case Born() | Evaluation(verdict=Verdict.RESOLVED):
            return True
        case _:
            return False


def _failure_reason(result: Outcome | Exception) -> str | None:
    match result:
        case Infrastructure():
            return str(result)
        case Evaluation(verdict=Verdict.INVALID, reason=reason):
            return reason
        case _:
            return None


def decision_stream(seed: int, action: ActionId) -> Random:
    """Return the random stream of the decision that starts ``action``, derived from the seed and never stored."""
    return Random(f"{seed}/{action}")


def validate_action(policy: str, tree: Tree, wanted: object) -> None:
    """Make sure that a policy's answer is valid in the tree, before any of it is recorded.

    A plug-in can answer anything, and a recorded answer is performed again at each resume.

    Raises:
        UserError: it is no action, names an agent or a task that does not exist, names no parent, or starts a
            tried task as a first attempt.
    """
    match wanted:
        case Expand(parents):
            fault = "" if parents else "a child without a parent"
            agents = parents
        case Evaluate(agent, task, attempt):
            fault, agents = "", (agent,)
            if task not in tree.active:
                why = "is not active now" if task in tree.tasks else "the benchmark does not have"
                fault = f"the task '{task}', which {why}"
            elif attempt == 0 and 0 <= agent < len(tree.agents) and task in tree.tried(agent):
                fault = f"task {task} of agent {agent} again"
        case _:
            fault, agents = f"{wanted!r}, which is no Expand, no Evaluate and not None", ()
    for agent in agents:
        if not 0 <= agent < len(tree.agents):
            fault = f"agent {agent}, and there are the agents 0 to {len(tree.agents) - 1}"
            break
    if fault:
        raise UserError(
            f"policy '{policy}' asks for {fault}; a plug-in's fault, for dgm's own policies never do"
        )


async def perform_until_stopped(
    run: Run, opening: AbstractAsyncContextManager[Search], begins: Callable[[Search], None] = lambda _: None
) -> Ending:
    """Open a search and perform it; end it gracefully on a first request, and at once on a second one.

    Before the search begins nothing is under way, so that a first request ends the work at once.

    Args:
        run: open to write.
        opening: opens the search.
        begins: is called with the search when it begins.
    """
    searches: list[Search] = []

    async def work() -> Ending:
        async with opening as search:
            searches.append(search)
            begins(search)
            return await search.go()

    working = asyncio.create_task(work(), name="work")
    try:
        while not (await asyncio.wait({working}, timeout=LOOK_S))[0]:
            now = read_stop_request(run.folder)
            if now is None:
                continue
            if now or not searches:
                working.cancel()
                break
            for search in searches:
                if not search.stopping:
                    log.warning("asked to stop: waiting for what is under way (%d)", search.running)
                search.ask_to_stop("stopped as asked")
        else:
            return await working
    finally:
        working.cancel()
        await asyncio.wait({working})
    if not working.cancelled():
        return working.result()
    run.append(RunStopped(AT_ONCE.reason.value))
    return AT_ONCE
