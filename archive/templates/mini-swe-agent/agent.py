"""mini-swe-agent on a job of dgm: its loop, prompts and model. `agent.py JOB`, or `agent.py --check`."""

import json
import os
import sys
from pathlib import Path

os.environ |= {"MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": "/tmp/mini-swe-agent"}

import litellm
import minisweagent
import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

litellm.suppress_debug_info = True
HERE = Path(__file__).parent
OWN = yaml.safe_load((HERE / "config.yaml").read_text())
PACKAGE = yaml.safe_load((minisweagent.package_dir / "config" / "mini.yaml").read_text())
ADVICE = (HERE / "prompts" / "task.md").read_text()


def settings(part):
    return {**PACKAGE.get(part, {}), **(OWN.get(part) or {})}


def work(job):
    name = f"openai/{job['model']}"
    model = LitellmModel(model_name=name, cost_tracking="ignore_errors", **settings("model"))
    place = LocalEnvironment(cwd=job["workdir"], **settings("environment"))
    known = {key: value for key, value in settings("agent").items() if key != "mode"}
    print(DefaultAgent(model, place, **known).run(f"{job['problem']}\n\n{ADVICE}")["exit_status"])


if __name__ == "__main__" and "--check" not in sys.argv:
    work(json.loads(Path(sys.argv[1]).read_text()))
