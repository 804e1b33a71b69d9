import json

import pytest

from dgm.exports.scrub import LocalIdentity, MatchGrade, Scrubber

NOBODY = LocalIdentity("/root", "root", "build", "/work")


def scrubber(surroundings: LocalIdentity = NOBODY, folders=("/data/runs/first",)) -> Scrubber:
    return Scrubber(surroundings.patterns(folders))


def person(**changes: object) -> LocalIdentity:
    known = {"home": "/home/alice", "user": "alice", "host": "atlas-7", "folder": "/home/alice/src"}
    return LocalIdentity(**(known | changes))


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghijklmnop1234",
        "sk-ant-api03-abcdefghijklmnop",
        "ghp_" + "a" * 36,
        "AKIA" + "A" * 16,
        "-----BEGIN RSA PRIVATE KEY-----\\nabc\\n-----END RSA PRIVATE KEY-----",
    ],
)
@pytest.mark.parametrize("around", ["{}", 'key="{}"', "first\\n{}\\nlast", '"\\\\u001b{}"', "key={} x"])
def test_what_looks_like_a_key_is_replaced(key: str, around: str) -> None:
    assert scrubber().clean(around.format(key).encode()) == around.format("<key>").encode()


@pytest.mark.parametrize(
    "text",
    ["a task-abcdefghijklmnopqrstuvwxyz", "disk-0123456789abcdefghij", "sk-short", "risk-averse-and-so-on-x"],
)
def test_words_that_only_end_like_a_key_are_left_alone(text: str) -> None:
    assert scrubber().clean(text.encode()) == text.encode()


def test_secrets_of_the_environment_are_taken_by_the_ends_of_their_names() -> None:
    environment = {
        "HOME": "/home/alice",
        "OPENAI_API_KEY": "value-of-key",
        "my_token": "value-of-token",
        "DB_PASSWORD": "value-of-password",
        "X_SECRET": "value-of-secret",
        "USE_TOKEN": "1",
        "KEYBOARD": "value-of-nothing",
    }
    assert LocalIdentity.here(environment).secrets == (
        "value-of-key",
        "value-of-password",
        "value-of-secret",
        "value-of-token",
    )


@pytest.mark.parametrize("depth", range(3))
def test_a_secret_is_found_in_json_inside_json(depth: int) -> None:
    secret = 'pass"wörd\\1'
    text = f"is {secret} here"
    for _ in range(depth):
        text = json.dumps(text)
    clean = scrubber(person(secrets=(secret,))).clean(text.encode()).decode()
    for _ in range(depth):
        clean = json.loads(clean)
    assert clean == "is <key> here"


def test_the_longest_path_wins() -> None:
    clean = scrubber(person(), ["/home/alice/src/archive/one"]).clean
    assert clean(b"/home/alice/src/archive/one/run.json") == b"<run>/run.json"
    assert clean(b"/home/alice/src/x /home/alice/y /home/alice") == b"<folder>/x <home>/y <home>"
    assert clean(b"/home/alicea /mnt/home/alice.") == b"/home/alicea /mnt<home>."


def test_a_home_that_every_machine_has_is_no_ground_to_refuse_an_agent() -> None:
    everybody = scrubber()
    assert (
        everybody.clean(b"at /root/x, /chroot/root and a\\n/root")
        == b"at <home>/x, /chroot/root and a\\n<home>"
    )
    assert everybody.first(b"ls /root/x", MatchGrade.PERSONAL) is None


def test_everyday_words_are_left_alone() -> None:
    text = b"root builds /work/repo and /srv/root/build with build on vm"
    assert scrubber().clean(text) == text
    assert scrubber(person(host="vm")).clean(text) == text


def test_a_host_is_found_by_its_name_or_its_place() -> None:
    assert scrubber(person()).clean(b"on atlas-7: x\\natlas-7") == b"on <host>: x\\n<host>"
    assert scrubber(person(host="atlas")).clean(b"x@atlas http://atlas:80/ the atlas") == (
        b"x@<host> http://<host>:80/ the atlas"
    )
    assert scrubber(person(host="n1.lab.example")).clean(b"n1.lab.example") == b"<host>"


def test_credentials_in_addresses_are_replaced() -> None:
    assert scrubber().clean(b"https://bob:pw@example.org/v1") == b"https://<key>@example.org/v1"
    assert scrubber().clean(b'f"http://{user}:{word}@{host}/"') == b'f"http://{user}:{word}@{host}/"'
    assert scrubber().clean(b"http://example.org:80/a@b") == b"http://example.org:80/a@b"


def test_places_are_counted_by_placeholder() -> None:
    counting = scrubber(person(secrets=("hush-hush",)))
    counting.clean(b"hush-hush and hush-hush at /home/alice")
    assert counting.replaced == {"<key>": 2, "<home>": 1}
