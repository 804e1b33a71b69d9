"""What ``lineage`` decides does not hang on the processor."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from dgm.policies.lineage.ties import leader

TRIALS = (("hopeless", 22), ("low-retention", 14))
"""Without ties they go another way where sums are made by other instructions."""
SEARCH = """
import json, sys
from dataclasses import asdict
from dgm.simulation.trial import Trial, perform

for family, seed in json.loads(sys.argv[1]):
    result = asdict(perform(Trial("lineage", family, int(seed), budget=250)))
    print(json.dumps({name: value for name, value in result.items() if name not in ("decision_ms", "processor_s")}))
"""
PLAINER = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512F AVX512_SKX"}
"""Instructions that every processor of this kind has; other kinds and other versions of numpy take no notice."""


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([0.3, 0.1 + 0.2, 0.1], 0),
        ([0.1 + 0.2, 0.3, 0.1], 0),
        ([0.1, 0.3, 0.1 + 0.2], 1),
        ([1e-30, 2e-30, 2e-30 * (1 + 1e-12)], 1),
        ([0.3, 0.3 + 1e-6], 1),
        ([-0.3, -0.1 - 0.2], 0),
        ([-1.0, 0.0, 0.0], 1),
        ([-np.inf, -2.0, -np.inf], 1),
        ([-1.0], 0),
    ],
)
def test_who_leads_by_rounding_alone_does_not_lead(values, first):
    assert leader(np.array(values)) == first


@pytest.mark.starts_processes
def test_other_instructions_lead_to_the_same_search():
    def searched(extra):
        words = [sys.executable, "-W", "ignore", "-c", SEARCH, json.dumps(TRIALS)]
        return subprocess.run(
            words, env=os.environ | extra, capture_output=True, text=True, check=True
        ).stdout.splitlines()

    found = searched({})
    assert len(found) == len(TRIALS)
    assert searched(PLAINER) == found
