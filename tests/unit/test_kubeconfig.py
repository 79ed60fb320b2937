"""Kubeconfig files: what is read, what is refused, and that nothing of them shows."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab.kube.authority import Authority
from netboot.kube.connection import connect
from netboot.kube.errors import KubeconfigError
from netboot.kube.kubeconfig import read_kubeconfig

AUTHORITY = Authority("unit").pair.certificate
TOKEN = "a-secret-token-that-shows-nowhere"


def document(**changes: Any) -> dict[str, Any]:
    data = base64.b64encode(AUTHORITY).decode()
    cluster = {"server": "https://192.0.2.1:6443/", "certificate-authority-data": data} | changes.get("cluster", {})
    user = changes.get("user", {"token": TOKEN})
    whole: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {k: v for k, v in cluster.items() if v is not None}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
    }
    return {**whole, **changes.get("top", {})}


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document(**changes)))
    return path


def test_a_token(tmp_path: Path) -> None:
    found = read_kubeconfig(written(tmp_path))
    assert (found.server, found.token, found.server_name) == ("https://192.0.2.1:6443", TOKEN, None)
    assert found.authority == AUTHORITY.decode()
    assert TOKEN not in repr(found)


def test_a_token_and_an_authority_in_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "ca.crt").write_bytes(AUTHORITY)
    cluster = {"certificate-authority-data": None, "certificate-authority": "ca.crt"}
    found = read_kubeconfig(written(tmp_path, cluster=cluster, user={"tokenFile": "token"}))
    assert (found.token, found.token_source) == (TOKEN, tmp_path / "token")
    assert found.authority == AUTHORITY.decode()


def test_a_token_file_that_changes_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    connection = connect(written(tmp_path, user={"tokenFile": "token"}))
    connection.authorise()
    (tmp_path / "token").write_text("second, with spaces")
    connection.authorise()
    assert connection.token == "first"
    (tmp_path / "token").write_text("second")
    connection.authorise()
    assert connection.api.configuration.api_key == {"authorization": "Bearer second"}
    assert "second" not in repr(connection)
    connection.close()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"user": {"exec": {"command": "steal"}}}, "uses exec, which this service does not do"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "uses auth-provider, which this service does not do"),
        ({"user": {"token": TOKEN, "as": "admin"}}, "uses as, which this service does not do"),
        ({"user": {"username": "u", "password": TOKEN}}, "uses password, username, which this service does not do"),
        ({"user": {}}, "has neither a token nor a client certificate with its key"),
        ({"user": {"token": ""}}, "its token is not one"),
        ({"user": {"token": "two words"}}, "its token is not one"),
        ({"user": {"token": "a\r\nHeader: b"}}, "its token is not one"),
        ({"user": {"tokenFile": "nowhere"}}, "names nowhere, which cannot be read: No such file or directory"),
        ({"user": {"client-certificate-data": "QQ=="}}, "has neither a token nor a client certificate with its key"),
        ({"user": {"client-certificate-data": "*", "client-key-data": "*"}}, "client-certificate-data is not base64"),
        ({"cluster": {"insecure-skip-tls-verify": True}}, "uses insecure-skip-tls-verify, which this service does not"),
        ({"cluster": {"proxy-url": "http://proxy"}}, "uses proxy-url, which this service does not do"),
        ({"cluster": {"server": "http://192.0.2.1"}}, "the server must be https://…, it is 'http://192.0.2.1'"),
        ({"cluster": {"server": "https://"}}, "the server must be https://…"),
        ({"cluster": {"certificate-authority-data": None}}, "names no certificate-authority"),
        ({"top": {"current-context": "two"}}, "has no context 'two', which its current-context needs"),
        ({"top": {"current-context": None}}, "has no context None"),
        ({"top": {"users": None}}, "has no user 'u'"),
        ({"top": {"kind": "Pod"}}, "is not a kubeconfig (kind: Config)"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value) or "token" in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_file_that_is_none_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(tmp_path / "missing")
    assert str(caught.value) == (
        f"{tmp_path}/missing cannot be read (No such file or directory): make it with `netboot cluster kubeconfigs`"
    )


def test_a_damaged_file_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(f"kind: Config\ntoken: [{TOKEN}\n")
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(path)
    assert str(caught.value) == f"{path} is not YAML"


def test_an_authority_and_a_pair_that_are_none_are_refused(tmp_path: Path) -> None:
    junk = base64.b64encode(b"-----BEGIN NOTHING-----").decode()
    with pytest.raises(KubeconfigError, match="its certificate-authority is not PEM certificates"):
        connect(written(tmp_path, cluster={"certificate-authority-data": junk}))
    with pytest.raises(KubeconfigError, match="client certificate and key do not fit"):
        connect(written(tmp_path, user={"client-certificate-data": junk, "client-key-data": junk}))


@given(st.recursive(st.none() | st.text(max_size=5) | st.integers(), lambda inner: st.lists(inner, max_size=2)
                    | st.dictionaries(st.sampled_from(["clusters", "users", "contexts", "name", "user", "kind", "x"]),
                                      inner, max_size=3), max_leaves=8), st.data())  # fmt: skip
def test_no_file_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, value: Any, data: st.DataObject
) -> None:
    whole = document()
    key = data.draw(st.sampled_from([*whole, None]))
    path = tmp_path_factory.getbasetemp() / "any.kubeconfig"
    path.write_text(json.dumps(value if key is None else whole | {key: value}))
    try:
        read_kubeconfig(path)
    except KubeconfigError as error:
        assert TOKEN not in str(error)
