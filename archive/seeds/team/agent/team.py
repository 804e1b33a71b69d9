"""An orchestrator and its team: it says what comes next, and a bandit chooses who of a role does it."""

import math
import re
from typing import NamedTuple

from agent import prompts
from agent.tools import BASH, EDIT, work
from agent.workspace import Workspace

MOST_TURNS, MOST_REPORT = 12, 3000
STEPS = {"localise": 8, "edit": 24, "check": 8}
EXPLORATION = 0.5


Report = NamedTuple("Report", [("role", str), ("member", str), ("text", str)])


class Bandit:
    """UCB1 for each role: the mean reward of a member, and a bonus for one that was seldom chosen."""

    def __init__(self, members):
        self.counts = {(role, name): [0, 0.0] for role in members for name in members[role]}

    def choose(self, role):
        """Return the name of the member to work; untried ones first, in their order."""
        arms = {name: counts for (of, name), counts in self.counts.items() if of == role}
        total = sum(pulls for pulls, _ in arms.values())

        def bound(name):
            pulls, reward = arms[name]
            return reward / pulls + EXPLORATION * math.sqrt(math.log(total) / pulls) if pulls else math.inf

        return max(arms, key=bound)

    def reward(self, role, name, amount):
        self.counts[role, name][0] += 1
        self.counts[role, name][1] += amount


def read_order(text, default):
    """Return the role that the orchestrator names, and what it says to it."""
    order = re.match(r"\W*(localise|edit|check|done)\b\W*(.*)", text, re.I | re.S)
    return (order[1].lower(), order[2].strip()) if order else (default, "")


def usual_order(reports, passed):
    """Return what comes next where the orchestrator does not say it."""
    last = reports[-1].role if reports else ""
    return {"": "localise", "localise": "edit", "edit": "check"}.get(last) or ("done" if passed else "edit")


def read_verdict(text):
    """Return whether a check passed; None if its report does not say."""
    verdicts = re.findall(r"VERDICT\W{0,4}(PASS|FAIL)\b", text, re.I)
    return verdicts[-1].upper() == "PASS" if verdicts else None


def helped(report, diff):
    """Return the share of changed files that a localising report names."""
    paths = re.findall(r"^diff --git a/(\S+)", diff, re.M)
    return sum(path in report or path.rpartition("/")[2] in report for path in paths) / max(1, len(paths))


def solve(job, model):
    """Work on a job; True if the orchestrator ended it."""
    workspace = Workspace(job["workdir"])
    team = Team(job, model, workspace)
    try:
        return team.run()
    finally:
        if team.best:
            workspace.restore(team.best)
        workspace.close()


class Team:
    def __init__(self, job, model, workspace):
        self.job, self.model, self.workspace = job, model, workspace
        self.bandit, self.reports = Bandit(prompts.MEMBERS), []
        self.best, self.best_reward, self.passed = "", 0.0, False

    def run(self):
        before, _ = self.workspace.test(self.model.left_s())
        for _ in range(MOST_TURNS):
            role, instruction = read_order(self.ask(), usual_order(self.reports, self.passed))
            if role == "done":
                self.best = self.best if self.passed else ""
                return True
            report, name = self.send(role, instruction)
            state, (score, _) = self.workspace.save(), self.workspace.test(self.model.left_s())
            if role == "check":
                self.credit(report, name, score)
            unhelpful = role == "check" and not self.passed and score <= before
            if unhelpful or (role == "edit" and score < before):
                self.undo(role, name)
            elif role == "edit" and not self.best:
                self.best = state
        return False

    def undo(self, role, name):
        """Take a change back that did not help, and let the next editor know it."""
        text = "This did not help and was taken back:\n" + self.workspace.diff(self.workspace.save())
        self.reports.append(Report("undone", "", text))
        self.workspace.restore(self.workspace.start)
        if role == "edit":
            self.bandit.reward(role, name, 0.0)

    def ask(self):
        """Ask the orchestrator what comes next."""
        text = prompts.first_message(self.job) + "\n\n" + self.board()
        messages = [{"role": "system", "content": prompts.ORCHESTRATE}, {"role": "user", "content": text}]
        return self.model.ask(messages)["content"]

    def board(self):
        """Return what the team knows: the change and the last reports."""
        rows = ["=== The change so far ===\n" + (self.workspace.diff(self.workspace.save()) or "none")]
        rows += ["=== Report: %s ===\n%s" % (report.role, report.text) for report in self.reports[-3:]]
        return "\n\n".join(rows)

    def send(self, role, instruction):
        """Let a member of a role work; return its report and its name."""
        name, state = self.bandit.choose(role), self.workspace.save()
        print("%s: %s" % (role, name))
        briefing = self.board() if self.reports else ""
        guidance = [prompts.ROLES[role], prompts.MEMBERS[role][name], instruction, briefing]
        system = prompts.system(self.job.get("kind"), "\n\n".join(text for text in guidance if text))
        messages = [{"role": "system", "content": system}]
        messages.append({"role": "user", "content": prompts.first_message(self.job)})
        tools = (BASH, EDIT) if role == "edit" else (BASH,)
        try:
            work(self.model, messages, self.job["workdir"], STEPS[role], tools)
        finally:
            if role != "edit":
                self.workspace.restore(state)
        said = [message["content"] for message in messages[2:] if message["role"] == "assistant"]
        self.reports.append(Report(role, name, "\n".join(text for text in said[-3:] if text)[-MOST_REPORT:]))
        return self.reports[-1].text, name

    def credit(self, report, checker, score):
        """Reward those who worked since the last check: tests and verdict for the editor, use for the others."""
        verdict = read_verdict(report)
        reward = score if verdict is None else (score + verdict) / 2
        self.passed = score == 1 and verdict is not False
        self.bandit.reward("check", checker, verdict is not None and verdict == (score == 1))
        diff = self.workspace.diff(self.workspace.save())
        ends = [at for at, last in enumerate(self.reports[:-1]) if last.role in ("check", "undone")]
        for role, name, text in self.reports[ends[-1] + 1 if ends else 0 : -1]:
            self.bandit.reward(role, name, reward if role == "edit" else helped(text, diff))
        if diff and reward >= self.best_reward:
            self.best, self.best_reward = self.workspace.save(), reward
