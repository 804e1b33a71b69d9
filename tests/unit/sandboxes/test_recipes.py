"""Recipes and tar streams: what of sandboxes needs none."""

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault, UserError
from dgm.sandboxes import recipes, transfer
from dgm.sandboxes.bubblewrap import find_host_files
from dgm.sandboxes.confined import Output


def recipe(tmp_path, text, name="mine"):
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "sandbox.toml").write_text(text)
    (folder / "Dockerfile").write_text("FROM x\n")
    return recipes.load(name, tmp_path)


def test_shipped_recipes_load():
    assert "python" in recipes.names()
    assert all(recipes.load(name).user >= 1000 for name in recipes.names())


def test_a_recipes_limits_become_a_specification(tmp_path):
    spec = recipe(tmp_path, "cpus = 2\nmemory_mb = 99\npids = 7\ndisk_mb = 5").spec(
        {"dgm.run": "r"}, lifetime_s=9
    )
    assert (spec.image, spec.cpus, spec.memory_mb, spec.pids, spec.disk_mb) == ("mine", 2.0, 99, 7, 5)
    assert (spec.labels, spec.lifetime_s) == ({"dgm.run": "r"}, 9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memroy_mb = 1", "unknown key 'memroy_mb' (did you mean 'memory_mb'?)"),
        ("pids = 0", "pids = 0: Input should be greater than 0"),
        ("pids = 1.5", "pids = 1.5: Input should be a valid integer"),
        ("cpus = true", "cpus = True: Input should be a valid number"),
        ("user = 0", "user = 0: Input should be greater than or equal to 1000"),
        ("user = 33", "user = 33: Input should be greater"),
        ("bubblewrap = 1", "bubblewrap = 1: Input should be a valid dictionary"),
        ("[bubblewrap]\ncommands = 'git'", "bubblewrap.commands = 'git': Input should be a valid list"),
        ("[bubblewrap]\nfile = []", "unknown key 'bubblewrap.file' (did you mean 'files'?)"),
        (
            "[bubblewrap]\nfiles = ['etc/java']",
            "bubblewrap.files.0 = 'etc/java': String should match pattern",
        ),
        ("cpus = ", "not valid TOML"),
    ],
)
def test_mistakes_in_a_recipe_are_named(tmp_path, text, said):
    with pytest.raises(UserError) as caught:
        recipe(tmp_path, text)
    assert said in str(caught.value)
    assert "sandbox.toml" in str(caught.value)


def test_an_unknown_recipe_gets_a_suggestion():
    with pytest.raises(UserError, match="did you mean 'python'"):
        recipes.load("pyton")


def test_any_change_in_the_folder_changes_the_tag(tmp_path):
    before = recipe(tmp_path, "cpus = 1").tag
    (tmp_path / "mine" / "Dockerfile").write_text("FROM y\n")
    assert recipes.load("mine", tmp_path).tag != before


def test_a_snapshot_survives_its_tar_stream():
    files = {"a/b\n\udcff": Entry(b"x", 0o100755), "l": Entry(b"../out", 0o120000), "e": Entry(b"")}
    assert transfer.unpack(transfer.pack(files), 1000) == files


def test_a_stream_beyond_its_limit_is_the_agents_fault():
    stream = transfer.pack({"a": Entry(bytes(600)), "b": Entry(bytes(600))})
    with pytest.raises(AgentFault):
        transfer.unpack(stream, 1000)


@pytest.mark.parametrize(
    "damage", [lambda s: b"timeout: a warning\n" + s, lambda s: s[:1024], lambda s: b"no tar"]
)
def test_what_is_no_whole_tar_stream_is_refused(damage):
    stream = transfer.pack({"a": Entry(b"x"), "b": Entry(b"y")})
    with pytest.raises(AgentFault, match="not a whole tar stream"):
        transfer.unpack(damage(stream), 1000)


def test_output_keeps_its_first_bytes():
    output = Output(5)
    for chunk in (b"123", b"45", b"", b"6"):
        output.add(chunk)
    assert (bytes(output.kept), output.truncated) == (b"12345", True)


def standing_on(tmp_path, name, *bases):
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / "sandbox.toml").write_text("")
    (folder / "Dockerfile").write_text("".join(f"FROM {base} AS some\nCOPY a b\n" for base in bases))
    return folder


def test_a_change_below_changes_the_tag_above(tmp_path):
    low = standing_on(tmp_path, "low", "debian:some")
    standing_on(tmp_path, "high", "dgm/low")
    before = recipes.load("high", tmp_path).tag
    (low / "file").write_text("new")
    assert recipes.load("high", tmp_path).tag != before


def test_tools_are_those_of_the_recipe_below(tmp_path):
    low = standing_on(tmp_path, "low", "debian:some")
    standing_on(tmp_path, "high", "dgm/low")
    assert recipes.load("high", tmp_path).shown == ()
    (low / "tools").mkdir()
    (shown,) = recipes.load("high", tmp_path).shown
    assert (shown.source, shown.target) == (low / "tools", "/opt/dgm/tools")


@pytest.mark.parametrize(
    ("bases", "said"),
    [
        (["dgm/hihg"], "unknown sandbox image 'hihg' for .*high/Dockerfile: .*did you mean 'high'"),
        (["dgm/high"], "recipes stand on each other: high → high"),
        ([], "expected a line 'FROM image'"),
    ],
)
def test_mistakes_in_what_a_recipe_stands_on_are_named(tmp_path, bases, said):
    standing_on(tmp_path, "high", *bases)
    with pytest.raises(UserError, match=said):
        recipes.load("high", tmp_path)


def test_a_recipe_without_a_dockerfile_is_a_mistake(tmp_path):
    (standing_on(tmp_path, "mine") / "Dockerfile").unlink()
    with pytest.raises(UserError, match="mine/Dockerfile: cannot be read"):
        recipes.load("mine", tmp_path)


def test_host_files_beside_usr_are_shown_by_bubblewrap(tmp_path):
    (tmp_path / "java-99").mkdir()
    needs = recipe(
        tmp_path, f"[bubblewrap]\ncommands = ['sh']\nfiles = ['{tmp_path}/java-*', '/usr/bin/env']"
    )
    assert [(mount.source, mount.target) for mount in find_host_files(needs)] == [
        (tmp_path / "java-99", str(tmp_path / "java-99"))
    ]


def test_all_that_a_host_lacks_is_named_at_once(tmp_path):
    needs = recipe(tmp_path, "[bubblewrap]\ncommands = ['sh', 'no-such']\nfiles = ['/no/such/*.jar']")
    with pytest.raises(
        UserError, match=r"this host lacks no-such, /no/such/\*\.jar: install them, or start Docker"
    ):
        find_host_files(needs)
