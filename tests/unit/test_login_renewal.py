"""The tokens of a login that end: renewed once, kept, and nothing of an issuer's is spent where they cannot be kept."""

import fcntl
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import jwt
import pytest

from netboot.client import CannotTellError, FailedError, contexts, renewal
from netboot.client.contexts import Context, Contexts, Login
from netboot.oidc.issuer import Client, Granted

ENDED = Login(issuer="https://login.example", client_id="cli", token="old", expires_ms=0, refresh_token="first")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    contexts.change(lambda _: Contexts(contexts=(Context(name="fra", server="https://fra.example", login=ENDED),)))
    return contexts.file()


class Issuer:
    """In place of one that takes each refresh token once."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.asked, self._meanwhile = list[str](), meanwhile
        self.token_of_now = jwt.encode({"exp": time.time() + 600}, "k" * 32)

    def token(self, client: Client, grant: Mapping[str, str]) -> Granted:
        self.asked.append(grant["refresh_token"])
        self._meanwhile()
        return Granted(self.token_of_now, "", f"after {grant['refresh_token']}")


def kept() -> Login:
    login = contexts.read().contexts[0].login
    assert login is not None
    return login


@contextmanager
def no_room() -> Iterator[Callable[[], None]]:
    """A disk on which no file can have a byte, from when what this gives is called."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_token_that_ended_is_renewed_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer()
    monkeypatch.setattr(renewal, "issuer_of", lambda _: issuer)
    for _ in range(2):
        assert renewal.token("fra", kept()) == issuer.token_of_now
    assert (issuer.asked, kept().refresh_token) == (["first"], "after first")
    assert [path.name for path in contexts.file().parent.iterdir()] == ["contexts.json"]


def test_where_nothing_can_be_written_the_issuer_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = Issuer()
    monkeypatch.setattr(renewal, "issuer_of", lambda _: issuer)
    with no_room() as full:
        full()
        with pytest.raises(FailedError) as refused:
            renewal.token("fra", ENDED)
    assert refused.value.message == f"cannot write {contexts.file().parent}/.contexts.json.trial: File too large"
    assert (issuer.asked, kept().refresh_token) == ([], "first")
    assert renewal.token("fra", ENDED) == issuer.token_of_now, "with room, the login is as good as before"


def test_what_cannot_be_kept_after_all_still_opens_things_this_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with no_room() as full:
        issuer = Issuer(full)
        monkeypatch.setattr(renewal, "issuer_of", lambda _: issuer)
        assert renewal.token("fra", ENDED) == issuer.token_of_now
    assert caplog.messages == [
        f"the login of context fra is renewed and not kept: cannot write {contexts.file()}: File too large"
    ]


def test_another_command_that_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "WAITED_SECONDS", 0.1)
    descriptor = os.open(contexts.file().parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(CannotTellError) as said:
            renewal.token("fra", ENDED)
    finally:
        os.close(descriptor)
    assert said.value.message == f"another netboot is at {contexts.file()}, and does not end"
    assert contexts.change(lambda there: there) == contexts.read()


def test_tokens_that_others_can_read_are_not_used(home: Path) -> None:
    home.chmod(0o640)
    with pytest.raises(FailedError) as said:
        contexts.read()
    assert said.value.message == f"others can read the tokens in {home} (mode 0640): `chmod 600 {home}`"
    home.write_text('{"contexts": [{"name": "fra", "server": "https://fra.example", "token_file": "/t"}]}')
    assert contexts.read().contexts[0].name == "fra", "there are none in it"
