"""mini-swe-agent as its package has it: its loop, its prompts, its LiteLLM model; only the approval by hand is left out."""

import json
import os
import sys
from pathlib import Path


def main(job):
    # Neither a price list nor a notice is looked for on the network.
    os.environ |= {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_GLOBAL_CONFIG_DIR": "/tmp/mini-swe-agent",
        "HF_HUB_OFFLINE": "1",
    }
    import minisweagent
    import yaml
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_model import LitellmModel

    given = yaml.safe_load((minisweagent.package_dir / "config" / "mini.yaml").read_text())
    name = f"openai/{job['model']}"
    model = LitellmModel(model_name=name, cost_tracking="ignore_errors", **given["model"])
    place = LocalEnvironment(cwd=job["workdir"], **given["environment"])
    done = DefaultAgent(model, place, **{**given["agent"], "step_limit": 12}).run(job["problem"])
    print(done["exit_status"])


if __name__ == "__main__" and "--check" not in sys.argv:
    main(json.loads(Path(sys.argv[1]).read_text()))
