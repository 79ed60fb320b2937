"""What commands give to programs is an object, as the API's answers are, and its moments are RFC 3339's."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from netboot.cli.commands import cli
from netboot.clock import moment_ms
from netboot.config import load_config
from tests.commands import Run
from tests.sites import KUBELET, add_image
from tests.unit.test_cli_help import commands

LOCAL = """\
config check
config show
key create --keys new
key list
key rotate
key export KEY
key retire KEY --force --dry-run
key retire KEY --force
key restore KEY
key sealing rotate
key sealing list
key nonces rotate
key nonces list
key proofs rotate
key proofs list
image list
image show IMAGE
image verify IMAGE
image diff IMAGE IMAGE
image sign IMAGE
image export IMAGE copy
image import copy
image unrevoke IMAGE
image revocations
image rm OTHER
image gc
access token create anna --role viewer
access token list
access blocked
context list
backup site.backup
restore site.backup --check
doctor
"""
"""What works on files that are here, in an order in which each can be done."""
ELSEWHERE = {
    *("config reload", "fabric check", "image audit", "image build", "image lock", "image sources check"),
    *("image push", "image pull", "image promote", "cluster keys show", "migrate"),
    "export",
}
"""What wants a running service, machines, mirrors, a registry, an API server or a publisher's data; `mypy` holds that
what they show is an object, and so of those that ask the service."""


@pytest.fixture
def site(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    made = ("init", tmp_path / "site", "--url", "http://192.0.2.1:8080", "--join-url", "https://join.example:8443")
    assert run(*made).status == 0
    monkeypatch.chdir(tmp_path / "site")
    return tmp_path / "site"


def numbers(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Those that are moments: seconds, or milliseconds, of 2001 to 2286. What was signed is as it was signed."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key != "manifest":
                yield from numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, f"{path}[]")
    elif isinstance(value, int | float) and (10**9 <= value < 10**10 or 10**12 <= value < 10**13):
        yield path, value


def test_what_every_command_gives_is_an_object_without_numbers_for_moments(site: Path, run: Run) -> None:
    config = load_config(site / "netboot.yaml")
    image, other = add_image(config, documents=KUBELET), add_image(config, salt="other")
    assert run("image", "revoke", image, "--reason", "CVE-2026-1234", "--force-nothing-boots").status == 0
    first = run("key", "list", "-o", "jsonpath={.keys[*].id}").out.strip()
    wrong: list[object] = []
    for line in LOCAL.splitlines():
        words = [{"KEY": first, "IMAGE": image, "OTHER": other}.get(word, word) for word in line.split()]
        ran = run(*words, "--output", "json")
        value = ran.json if ran.status in (0, 1) and ran.out else ran
        wrong += [(line, value)] if not isinstance(value, dict) else [(line, *found) for found in numbers(value)]
    assert wrong == []


def test_no_command_is_left_out() -> None:
    told = LOCAL.splitlines()
    for name, command in commands("", cli):
        options = {option for parameter in command.params for option in parameter.opts}
        if "--output" in options and "--server" not in options and name not in ELSEWHERE:
            assert [line for line in told if f"{line} ".startswith(f"{name} ")], name


def test_lists_are_read_by_their_names(site: Path, run: Run) -> None:
    image = add_image(load_config(site / "netboot.yaml"))
    (key,) = run("key", "list", "-o", "json").json["keys"]
    assert key.keys() == {"id", "active", "trusted", "private", "created_at"}
    assert run("key", "list", "-o", "jsonpath={.keys[*].id}").out == f"{key['id']}\n"
    assert moment_ms(run("key", "list", "-o", "jsonpath=$.keys[0].created_at").out.strip()) > 0
    assert run("image", "list", "-o", "jsonpath={.images[*].image}").out == f"{image}\n"
    (shown,) = run("image", "list", "-o", "json").json["images"]
    assert moment_ms(shown["added_at"]) > 0
    assert run("image", "revoke", image, "--reason", "bad", "--force-nothing-boots").status == 0
    (revoked,) = run("image", "revocations", "-o", "json").json["revocations"]
    assert (revoked["image"], revoked["reason"], moment_ms(revoked["at"]) > 0) == (image, "bad", True)
    assert run("doctor", "-o", "jsonpath=$.diagnoses[?@.name=='running'].outcome").out == "refuse\n"


def test_numbers_are_found() -> None:
    value: dict[str, Any] = {"a": [{"at": 1_700_000_000}], "b_ms": 1_700_000_000_000.0, "n": 7}
    assert list(numbers(value)) == [(".a[].at", 1_700_000_000), (".b_ms", 1_700_000_000_000.0)]
    assert list(numbers({"manifest": {"created": 1_700_000_000}})) == []
