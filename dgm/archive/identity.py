"""Which run a row, a picture or a file is from: what every export carries, so that those of many runs can be joined."""

from dataclasses import dataclass

from dgm.archive.run import Run

UNKNOWN_POLICY = ""
"""Policy of a run that was begun before runs named theirs."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """A run as other programs know it."""

    run: str
    """Its name; of a run inside another one ``OUTER/INNER``, such as ``myrun/holdout``."""
    policy: str
    seed: int

    def __str__(self) -> str:
        return f"run {self.run}, policy {self.policy}, seed {self.seed}"

    def record(self) -> dict[str, str | int]:
        """Return the same as JSON has it."""
        return {"run": self.run, "policy": self.policy, "seed": self.seed}

    def beside_seed_agent(self) -> dict[str, str | int]:
        """Return the same for a document in which ``seed`` is the seed agent: the number is ``run_seed`` there."""
        return {"run": self.run, "policy": self.policy, "run_seed": self.seed}


def identity_of(run: Run) -> RunIdentity:
    """Return the name, the policy and the seed of a run."""
    outer = run.folder.resolve().parent
    name = f"{outer.name}/{run.name}" if (outer / "run.json").is_file() else run.name
    settings = run.settings()
    policy = settings.get("policy", {}).get("name", UNKNOWN_POLICY)
    return RunIdentity(name, str(policy), int(settings.get("seed", 0)))
