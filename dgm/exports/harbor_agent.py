"""An agent that dgm evolved, as an installed agent of Harbor 0.26 or later.

dgm does not import this file but writes it into an exported package, beside ``facts.json`` and the folder ``inside``,
which goes into a task's container.
"""

import json
import shlex
import tempfile
from pathlib import Path

from harbor.agents.agent_auth_resolution import (
    ModelConnectionSpec,
    ProviderAccess,
    ResolvedModelConnection,
    require_model_api_key,
)
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.agents.options import InstalledAgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.model_api_format import ModelApiFormat
from pydantic import Field

HERE = Path(__file__).resolve().parent
FACTS = json.loads((HERE / "facts.json").read_text(encoding="utf-8"))
FOLDER = "/installed-agent/dgm"
LOG = "/logs/agent/dgm.txt"
CHAT = ModelApiFormat.OPENAI_CHAT_COMPLETIONS


class Options(InstalledAgentOptions):  # type: ignore[misc]
    """The options of ``--agent-kwarg``."""

    calls: int = Field(default=FACTS["calls"], description="Model calls that the agent may make.")
    time_limit_s: float = Field(default=FACTS["time_limit_s"], description="Wall time of the agent.")


class Agent(BaseInstalledAgent):  # type: ignore[misc]
    """The exported agent: its program runs in the task's container, with the model that Harbor's user names."""

    options_model = Options
    capabilities = AgentCapabilities(base_url=True)
    MODEL_CONNECTION = ModelConnectionSpec(
        agent_provider_access=ProviderAccess(
            api_key_candidate_names=["OPENAI_API_KEY"], base_url_candidate_names=["OPENAI_BASE_URL"]
        ),
        supported_api_formats=[CHAT],
        default_api_format_by_provider={"default": CHAT},
        base_url_overrides={
            ("anthropic", CHAT): "https://api.anthropic.com/v1",
            ("gemini", CHAT): "https://generativelanguage.googleapis.com/v1beta/openai",
        },
        inject_default_base_url=True,
    )

    @staticmethod
    def name() -> str:
        """Return the run and the number of the agent."""
        return str(FACTS["name"])

    def version(self) -> str:
        """Return the agent's commit in its run."""
        return str(FACTS["version"])

    @classmethod
    def check_model_credentials(cls, connection: ResolvedModelConnection, **_: object) -> None:
        """Refuse a model without a key, before a container starts."""
        require_model_api_key(connection, cls.name())

    async def install(self, environment: BaseEnvironment) -> None:
        """Put the agent into the container, with its packages, and check that it starts."""
        packages, npm = FACTS["requires"], FACTS["npm"]
        certificates = await environment.exec("test -e /etc/ssl/certs/ca-certificates.crt", user="root")
        needs = ["python3", "git", *(["python_pip"] if packages else []), *(["nodejs", "npm"] if npm else [])]
        needs += ["ca_certificates"] if certificates.return_code else []
        await self.ensure_system_dependencies(environment, tuple(needs))
        await environment.upload_dir(HERE / "inside", FOLDER)
        if environment.default_user is not None:
            owner = shlex.quote(str(environment.default_user))
            await self.exec_as_root(environment, f"chown -R {owner} {FOLDER}")
        if packages:
            command = ["python3", "-m", "pip", "install", "-q", "--target", f"{FOLDER}/packages", *packages]
            await self.exec_as_agent(environment, shlex.join(command))
        if npm:
            await self.exec_as_agent(environment, "npm ci --ignore-scripts --omit=dev", cwd=f"{FOLDER}/agent")
        await self.exec_as_agent(environment, f"python3 {FOLDER}/start.py --check")

    @with_prompt_template  # type: ignore[untyped-decorator]
    async def run(
        self,
        instruction: str,
        environment: BaseEnvironment,
        context: AgentContext,  # noqa: ARG002  (the agent does not count its tokens)
    ) -> None:
        """Let the agent solve a task in the container's working folder."""
        if not self.model_name:
            raise ValueError("name a model, as in --model openai/gpt-6.2-sol")
        connection, (_, model) = self.model_connection, self._parse_model_name(self.model_name)
        address = connection.execution_base_url
        if not address:
            raise ValueError(f"no address is known for {self.model_name}: give --base-url")
        limits = {"time_limit_s": self.options.time_limit_s, "calls": self.options.calls}
        job = {"problem": instruction, "model": model, **limits}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "job.json")
            file.write_text(json.dumps(job), encoding="utf-8")
            file.chmod(0o644)
            await environment.upload_file(file, f"{FOLDER}/job.json")
        root, key = address.rstrip("/").removesuffix("/v1"), connection.api_key or "none"
        env = {
            "OPENAI_BASE_URL": address.rstrip("/"),
            "OPENAI_API_KEY": key,
            "ANTHROPIC_BASE_URL": root,
            "ANTHROPIC_API_KEY": key,
            "DGM_MODEL": model,
        }
        await self.exec_as_agent(environment, f"python3 {FOLDER}/start.py 2>&1 | tee {LOG}", env=env)
