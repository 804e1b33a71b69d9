"""The configuration files on the page on many machines are what they say: YAML, and a script that bash can read."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[3] / "docs" / "many-machines.md"


def blocks(language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_the_cluster_of_kuberay_is_whole():
    (text,) = blocks("yaml")
    (found,) = yaml.safe_load_all(text)
    assert (found["apiVersion"], found["kind"]) == ("ray.io/v1", "RayCluster")
    spec = found["spec"]
    (workers,) = spec["workerGroupSpecs"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    for group in (spec["headGroupSpec"], workers):
        pod = group["template"]["spec"]
        # Ray's own container is the first of its pod.
        assert pod["containers"][0]["name"].startswith("ray-")
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        mounted = {mount["name"] for each in pod["containers"] for mount in each["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
    (dockerfile,) = blocks("dockerfile")
    assert f":{spec['rayVersion']}-" in dockerfile


@pytest.mark.starts_processes
def test_bash_can_read_the_script_for_slurm():
    (text,) = blocks("bash")
    lines = text.splitlines()
    assert lines[0] == "#!/bin/bash"
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    assert all(number < first for number, line in enumerate(lines) if line.startswith("#SBATCH"))
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
