"""What doctor says of a machine's sandboxes."""

from dgm.sandboxes.probes import DiagnosisRow, is_fit


def rows(**failed):
    checks = ("engine", "confined", "forks bounded", "memory bounded")
    return [
        DiagnosisRow(f"{engine}: {check}", check not in failed.get(engine, ()), "")
        for engine in ("docker", "bubblewrap")
        for check in checks
    ]


def test_a_machine_is_fit_by_the_rows_of_the_engine_that_would_be_chosen():
    found = rows(docker=["forks bounded"])
    assert not is_fit(found, "docker", unbounded=False)
    assert is_fit(found, "bubblewrap", unbounded=False)
    assert not is_fit([], "docker", unbounded=False)


def test_only_missing_bounds_can_be_accepted():
    assert is_fit(rows(docker=["forks bounded", "memory bounded"]), "docker", unbounded=True)
    assert not is_fit(rows(docker=["confined"]), "docker", unbounded=True)
