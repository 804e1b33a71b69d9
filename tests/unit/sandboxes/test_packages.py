"""For which Python and platform an agent's packages are installed."""

from dgm.sandboxes.packages import SandboxPython


def test_wheels_are_for_the_sandbox_and_not_for_this_machine():
    tags = SandboxPython("3.11", "aarch64", "glibc", "2.36").platforms
    assert tags[0] == "manylinux_2_36_aarch64"
    assert "manylinux_2_17_aarch64" in tags
    assert "manylinux2014_aarch64" in tags
    assert all(tag.endswith("_aarch64") for tag in tags)


def test_another_c_library_has_wheels_of_its_own():
    tags = SandboxPython("3.11", "x86_64", "musl", "1.2.4").platforms
    assert tags == ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64", "musllinux_1_0_x86_64", "linux_x86_64"]


def test_an_unknown_c_library_takes_none_that_need_one():
    assert SandboxPython("3.11", "x86_64").platforms == ["linux_x86_64"]
