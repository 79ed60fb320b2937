"""Which service and which folders a command works on: options before the environment before the configuration."""

from pathlib import Path

import click
import pytest

from images.errors import NotFoundError
from netboot.cli.client import Connection
from netboot.cli.paths import Paths
from netboot.cli.times import window_option
from netboot.client import FailedError, Service, TokenFile, UnknownError
from netboot.client.base import segment
from tests.commands import Run

CONFIGURED = "from-configuration-0123456789"
VARIABLES = ("NETBOOT_SERVER", "NETBOOT_TOKEN_FILE", "NETBOOT_CONFIG")


@pytest.fixture
def config(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert run("init", tmp_path / "site", "--url", "http://192.0.2.1:8080").status == 0
    (tmp_path / "site/secrets/operator.token").write_text(f"# ops\n{CONFIGURED}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "site/netboot.yaml"


def test_the_configuration_names_the_service(config: Path) -> None:
    hint = f"management in {config}"
    own = TokenFile(config.parent / "secrets/operator.token")
    assert Connection(config).open().service == Service("http://127.0.0.1:8081", own, hint)
    assert own() == CONFIGURED


def test_the_environment_goes_before_the_configuration_and_options_before_both(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from-environment\n")
    monkeypatch.setenv("NETBOOT_SERVER", "https://192.0.2.2/")
    monkeypatch.setenv("NETBOOT_TOKEN_FILE", str(tmp_path / "token"))
    hint = "--server or $NETBOOT_SERVER"
    assert Connection().open().service == Service("https://192.0.2.2", TokenFile(tmp_path / "token"), hint)
    option = config.parent / "secrets/operator.token"
    given = Connection(server="http://192.0.2.3", token_file=option).open()
    assert given.service == Service("http://192.0.2.3", TokenFile(option), hint)


def test_what_cannot_be_used_is_said_before_anything_is_sent(config: Path, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError) as wrong:
        Connection(config, server="192.0.2.2:8081").open()
    words = "'192.0.2.2:8081' is no address of the service, which begins with http:// or https://"
    assert str(wrong.value) == f"{words}: write it whole, like https://netboot.example:8081"
    with pytest.raises(UnknownError) as absent:
        Connection(config, token_file=tmp_path / "none").open().channels.list()
    remedy = "name your own with --token-file"
    assert str(absent.value) == f"there is no token file {tmp_path}/none\nRemedy: {remedy}"
    (tmp_path / "none").write_bytes(b"\xff\n")
    with pytest.raises(FailedError) as faulty:
        Connection(config, token_file=tmp_path / "none").open().channels.list()
    remedy = "ask the service's operator for one"
    assert str(faulty.value) == f"token file {tmp_path}/none holds no token\nRemedy: {remedy}"


def test_folders_come_from_options_then_from_the_configuration(config: Path, tmp_path: Path) -> None:
    paths = Paths(config, store=tmp_path / "elsewhere")
    assert (paths.store, paths.keys) == (tmp_path / "elsewhere", config.parent / "keys")
    assert Paths(None, tmp_path, tmp_path).keys == tmp_path  # no site is needed where both are given
    with pytest.raises(NotFoundError) as missing:
        Paths(None, store=tmp_path).check()
    assert str(missing.value) == (
        "no configuration at netboot.yaml: change into the folder of a site, give --config, set NETBOOT_CONFIG, "
        "or make a new site with `netboot init DIR`"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["machine", "enroll", "gpu-001", "--window", "59s"], "from 1m to 24h"),
        (["machine", "enroll", "gpu-001", "--window", "25h"], "from 1m to 24h"),
        (["token", "issue", "--machine", "old-001", "--lifetime", "16m"], "from 1m to 15m"),
        (
            ["token", "issue", "--machine", "old-001", "--lifetime", "5"],
            "a whole number and s, m or h, like 90s, 30m or 2h",
        ),
    ],
)
def test_durations_have_bounds(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.status == 2
    assert done.err.endswith(f"{message}\n")


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("1m", 60), ("2h", 7_200), ("24h", 86_400)])
def test_durations_are_seconds_and_bounds_are_inside(text: str, seconds: int) -> None:
    given: list[int] = []

    def note(window_seconds: int) -> None:
        given.append(window_seconds)

    click.command()(window_option(note)).main(["--window", text], standalone_mode=False)
    assert given == [seconds]


@pytest.mark.parametrize("name", ["", ".", "..", "gpu-001/hold", "../tokens"])
def test_what_is_no_segment_of_a_path_is_asked_of_nobody(name: str) -> None:
    with pytest.raises(UnknownError) as caught:
        segment(name)
    remedy = "write it with letters, digits, '-' and '.' alone"
    assert str(caught.value) == f"nothing has the name {name!r}\nRemedy: {remedy}"
    assert segment("gpu 001?x#%") == "gpu%20001%3Fx%23%25"
