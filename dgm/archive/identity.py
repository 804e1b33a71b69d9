"""The identity of a run, carried by every export so that rows, pictures and files of many runs can be joined."""

from dataclasses import dataclass

from dgm.archive.run import Run

UNKNOWN_POLICY = ""
"""Policy of a run that was started before runs recorded theirs."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The identity of a run for other programs."""

    run: str
    """The run's name; for a run inside another one ``OUTER/INNER``, such as ``myrun/holdout``."""
    policy: str
    seed: int

    def __str__(self) -> str:
        return f"run {self.run}, policy {self.policy}, seed {self.seed}"

    def record(self) -> dict[str, str | int]:
        """Return the identity in its JSON form."""
        return {"run": self.run, "policy": self.policy, "seed": self.seed}

    def beside_seed_agent(self) -> dict[str, str | int]:
        """Return the JSON form for a document in which ``seed`` is the seed agent; the number is named ``run_seed``."""
        return {"run": self.run, "policy": self.policy, "run_seed": self.seed}


def identity_of(run: Run) -> RunIdentity:
    """Return the name, the policy and the seed of a run."""
    outer = run.folder.resolve().parent
    name = f"{outer.name}/{run.name}" if (outer / "run.json").is_file() else run.name
    settings = run.settings()
    policy = settings.get("policy", {}).get("name", UNKNOWN_POLICY)
    return RunIdentity(name, str(policy), int(settings.get("seed", 0)))
