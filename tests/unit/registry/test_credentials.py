"""Docker's file with logins: found, absent, not to be used; and never shown."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from images.registry.credentials import Login, default_file, read_login
from images.registry.errors import DeniedError, RegistryError

HOST = "registry.example:5000"
SECRET = "a-secret-of-a-test"
AUTH = base64.b64encode(f"builder:{SECRET}".encode()).decode()


def written(folder: Path, value: Any) -> Path:
    path = folder / "config.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@pytest.mark.parametrize("name", [HOST, f"https://{HOST}"])
def test_a_login(tmp_path: Path, name: str) -> None:
    found = read_login(written(tmp_path, {"auths": {name: {"auth": AUTH}}}), HOST)
    assert found == Login("builder", SECRET)
    assert SECRET not in repr(found)


def test_none_for_this_registry(tmp_path: Path) -> None:
    assert read_login(written(tmp_path, {"auths": {"other.example": {"auth": AUTH}}}), HOST) is None
    assert read_login(written(tmp_path, {}), HOST) is None
    assert read_login(tmp_path / "none.json", HOST) is None


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(RegistryError) as error:
        read_login(tmp_path / "none.json", HOST, required=True)
    assert str(error.value) == f"there is no {tmp_path}/none.json: `docker login` and `podman login` write such a file"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", "is not docker's config.json: it is no JSON"),
        ("[]", "is not docker's config.json: it is no JSON object"),
        ({"auths": {HOST: {"auth": SECRET}}}, f"the login for {HOST} is not base64 of name:password: log in again"),
    ],
)
def test_what_cannot_be_read_is_not_repeated(tmp_path: Path, value: Any, words: str) -> None:
    path = written(tmp_path, value)
    with pytest.raises(RegistryError) as error:
        read_login(path, HOST)
    assert words in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "value", [{"credHelpers": {HOST: "pass"}}, {"credsStore": "secretservice", "auths": {HOST: {}}}]
)
def test_a_helper_program_is_not_run(tmp_path: Path, value: Any) -> None:
    with pytest.raises(DeniedError) as error:
        read_login(written(tmp_path, value), HOST)
    assert str(error.value) == (
        f"the login for {HOST} is kept by a helper program of docker's, which netboot does not run: "
        "give --username and the password on stdin, or another file with --credentials"
    )


def test_a_store_of_logins_that_has_none_for_this_registry(tmp_path: Path) -> None:
    assert read_login(written(tmp_path, {"credsStore": "secretservice", "auths": {}}), HOST) is None


def test_where_docker_and_podman_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_file() == Path("/home/somebody/.docker/config.json")
    monkeypatch.setenv("DOCKER_CONFIG", "/etc/docker-of-ci")
    assert default_file() == Path("/etc/docker-of-ci/config.json")
    monkeypatch.setenv("REGISTRY_AUTH_FILE", "/run/auth.json")
    assert default_file() == Path("/run/auth.json")
