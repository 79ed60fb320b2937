"""`netboot context`: services by name, and what goes before what."""

from pathlib import Path

import pytest

from netboot.cli.client import Connection
from netboot.cli.context import complete
from netboot.client import Service, TokenFile, UnknownError
from tests.commands import Run

VARIABLES = ("SERVER", "TOKEN_FILE", "CONFIG", "CONTEXT", "CERTIFICATE_AUTHORITY", "PROXY")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(f"NETBOOT_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    for name in ("fra", "ams"):
        (tmp_path / f"{name}.token").write_text(f"token-of-{name}-0123456789\n")
    return tmp_path


def test_the_first_is_in_use_and_another_when_it_is_said(home: Path, run: Run) -> None:
    assert run("context", "list").out == "no context: `netboot context add` makes one\n"
    said = run("context", "add", "fra", "--server", "https://fra.example", "--token-file", "fra.token")
    assert (said.status, said.out) == (0, "context fra is https://fra.example, and in use\n")
    assert run("context", "add", "ams", "--server", "https://ams.example", "--token-file", "ams.token").status == 0
    assert oct((home / "xdg/netboot/contexts.json").stat().st_mode)[-3:] == "600"
    assert Connection().open().service == Service("https://fra.example", TokenFile(home / "fra.token"), "context fra")
    assert Connection(context="ams").open().service.server == "https://ams.example"
    assert run("context", "use", "ams").out == "context ams is in use\n"
    assert Connection().open().service.server == "https://ams.example"
    assert [each.value for each in complete(None, None, "f")] == ["fra"]  # type: ignore[arg-type] # it looks at neither
    assert run("context", "remove", "ams").out == "context ams is forgotten; none is in use\n"
    assert [each["name"] for each in run("context", "list", "-o", "json").json["contexts"]] == ["fra"]
    unknown = run("context", "use", "ams")
    assert (unknown.status, unknown.err) == (
        3,
        "Error: no context has the name ams\nRemedy: see `netboot context list`\n",
    )


def test_options_and_the_environment_go_before_it_and_its_token_goes_nowhere_else(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("context", "add", "fra", "--server", "https://fra.example", "--token-file", "fra.token")
    assert run("init", home / "site", "--url", "http://192.0.2.1:8080").status == 0
    own = home / "site/netboot.yaml"
    assert Connection(own).open().service.server == "http://127.0.0.1:8081"
    assert Connection(server="https://x.example", config=own).open().service.token != TokenFile(home / "fra.token")
    monkeypatch.setenv("NETBOOT_CONFIG", str(own))
    assert Connection().open().service.server == "http://127.0.0.1:8081"
    monkeypatch.setenv("NETBOOT_CONTEXT", "fra")
    assert Connection().open().service.server == "https://fra.example"
    assert Connection(server="https://x.example").open().service.token == TokenFile(home / "fra.token")
    with pytest.raises(UnknownError, match="no context has the name none"):
        Connection(context="none").open()


def test_authority_and_proxy_go_along(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("context", "add", "fra", "--server", "https://fra.example", "--token-file", "fra.token")
    proxy = ("--proxy", "http://proxy.example:3128")
    added = run(*asked, "--certificate-authority", "ca.crt", *proxy)
    assert added.err == f"WARNING: there is no file {home}/ca.crt yet\n"
    found = Connection().open().service
    assert (found.authority, found.proxy) == (home / "ca.crt", "http://proxy.example:3128")
    monkeypatch.setenv("NETBOOT_PROXY", "http://other.example:3128")
    assert Connection(authority=home / "mine.crt").open().service.authority == home / "mine.crt"
    assert Connection().open().service.proxy == "http://other.example:3128"
    plain = run("context", "add", "ams", "--server", "http://ams.example", *proxy)
    assert (
        plain.status,
        "a proxy would read the token: give a server that is https://, or leave the proxy out" in plain.err,
    ) == (2, True)


def test_a_login_needs_tls_or_somebody_who_says_that_it_needs_none(home: Path, run: Run) -> None:
    """Nothing listens at these: who is let through is told that."""
    for server in ("http://192.0.2.10:8081", "http://localhost.example:1"):
        assert run("context", "add", "fra", "--server", server).status == 0
        refused = run("login")
        assert (refused.status, refused.err) == (
            4,
            (
                f"Error: a login by way of {server} would cross a network unencrypted\nRemedy: give the service TLS "
                "(`management.tls`), or say --plain-http where that network is yours alone\n"
            ),
        )
    for server, option in (
        ("http://127.0.0.1:1", ()),
        ("http://localhost:1", ()),
        ("http://127.0.0.2:1", ("--plain-http",)),
    ):
        assert run("context", "add", "fra", "--server", server).status == 0
        assert run("login", *option).status == 5


def test_a_file_that_cannot_be_used_is_said_and_kept(home: Path, run: Run) -> None:
    file = home / "xdg/netboot/contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    assert complete(None, None, "") == []  # type: ignore[arg-type] # it looks at neither
    for command in (("list",), ("use", "fra"), ("add", "fra", "--server", "https://fra.example")):
        said = run("context", *command)
        assert (said.status, said.err.startswith(f"Error: {file} cannot be used: ")) == (1, True)
    assert file.read_text() == "{"
