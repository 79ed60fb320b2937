"""Reading files: regular ones alone, up to a limit, by one reader; a pipe or a device in the place of any is told."""

import ast
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from images.values import files
from netboot.cli.main import main
from tests.commands import Run

ROOT = Path(__file__).parents[2]
READERS = ("netboot/cli", "netboot/stores", "netboot/client", "images/artifact", "images/store")
OWN = {
    "netboot/cli/init.py": "(_TEMPLATES / name).read_text",
    "netboot/cli/pages.py": "pages[name].read_text",
}
"""What may be read otherwise: files of the program itself."""
SECONDS = 20
ROOM = 1 << 30
"""Bytes that a command may take more than this process has."""


def ways_of_reading(text: str) -> Iterator[str]:
    """Places where Python reads a file in a way that waits for a pipe, or reads a device without end."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in ("read_text", "read_bytes"):
            yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "click.File":
            yield "click.File"
        elif isinstance(node, ast.Call) and _reads(node):
            yield ast.unparse(node)


def _reads(call: ast.Call) -> bool:
    name, said = ast.unparse(call.func), ast.unparse(call)
    if name == "os.open":
        return not any(flag in said for flag in ("O_WRONLY", "O_DIRECTORY", "O_NONBLOCK", "O_EXCL", "flags", "devnull"))
    if name == "open":
        return True
    modes = [each.value for each in call.args if isinstance(each, ast.Constant)]
    return name.endswith(".open") and any(isinstance(mode, str) and mode.startswith("r") for mode in modes)


def test_there_is_one_reader() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), way)
        for folder in READERS
        for path in (ROOT / folder).rglob("*.py")
        for way in ways_of_reading(path.read_text())
        if path.name != "given_files.py"  # which is click's with another reader
    }
    assert found == set(OWN.items())


@pytest.mark.parametrize(
    "text",
    [
        "path.read_text()",
        "path.read_bytes()",
        "read = Path.read_bytes",
        "path.open('rb')",
        "open(path)",
        "click.File('rb')",
        "os.open(path, os.O_RDONLY | os.O_CLOEXEC)",
    ],
)
def test_each_way_would_be_found(text: str) -> None:
    assert len(list(ways_of_reading(text))) == 1


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "site"
    main(["init", str(folder), "--join-url", "https://192.0.2.1:8443", "--url", "http://192.0.2.1:8080"])
    (folder / "store/channels").mkdir(exist_ok=True)
    (folder / "store/channels/stable.json").write_text("{}")
    return folder


@pytest.fixture
def bounded() -> Iterator[None]:
    """So that a reader that waits, or reads on, fails here and harms nobody."""

    def late(*_: Any) -> NoReturn:
        raise AssertionError("it waits")

    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, before[1]))
    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, handler)
    resource.setrlimit(resource.RLIMIT_AS, before)


ASKED = ("--server", "http://127.0.0.1:1")
TABLE = [
    ("keys/*.pub", ("config", "check")),
    ("keys/active", ("key", "list")),
    ("keys/active", ("key", "create")),
    ("keys/[0-9a-f]*.key", ("config", "bundle")),
    ("keys/proofs/*.pub", ("key", "proofs", "list")),
    ("secrets/sealing.keys", ("key", "sealing", "list")),
    ("secrets/nonce.keys", ("key", "nonces", "list")),
    ("secrets/proof.key", ("key", "proofs", "list")),
    ("secrets/operator.token", ("config", "check")),
    ("secrets/operator.token", ("machine", "list")),
    ("secrets/access.json", ("access", "token", "list")),
    ("store/site/bundle.json", ("config", "bundle", "--sign", "store/site/bundle.json")),
    ("store/site/bundle.sig", ("config", "check")),
    ("store/channels/stable.json", ("image", "gc")),
    ("tls/ca.crt", ("config", "check")),
    ("tls/ca.key", ("config", "join-certificate")),
    ("tls/join.crt", ("config", "check")),
    ("tls/join.key", ("config", "check")),
    ("given", ("machine", "import", "--csv", "given", "--print")),
    ("given", ("machine", "import", "--redfish-json", "given", "--print")),
    ("given", ("machine", "import", "--netbox", "given", "--print")),
    ("given", ("machine", "enroll", "--csv", "given")),
    ("given", ("machine", "list", "--token-file", "given", *ASKED)),
    ("given", ("token", "issue", "--machine", "one", "--spki-file", "given")),
    ("given", ("boot", "proof", "--file", "given")),
    ("given", ("config", "bundle", "--sign", "given")),
    ("given.sig", ("config", "bundle", "--signature", "given.sig")),
    ("given", ("config", "join-certificate", "--authority-key", "given")),
    ("given", ("restore", "--check", "given")),
    ("given", ("image", "pull", "127.0.0.1:1/one:latest", "--credentials", "given")),
    ("config/netboot/contexts.json", ("context", "list")),
]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("what", ["pipe", "device"])
@pytest.mark.parametrize(("name", "words"), TABLE)
def test_a_pipe_or_a_device_in_the_place_of_a_file(
    made: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, name: str, words: tuple[str, ...], what: str
) -> None:
    site = tmp_path / "site"
    shutil.copytree(made, site, symlinks=True)
    monkeypatch.chdir(site)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(site / "config"))
    (site / "config/netboot").mkdir(parents=True)
    (site / "given.json").write_text("{}")
    there = next(site.glob(name), site / name)
    there.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(there)
    else:
        there.symlink_to("/dev/zero")
    ran = run(*words)
    assert ran.status in range(1, 6)
    assert "it is a pipe or a device: put a regular file in its place" in ran.err
    assert "makes" not in ran.err


@pytest.mark.usefixtures("bounded")
def test_what_has_no_end_is_read_up_to_the_limit() -> None:
    with Path("/dev/zero").open("rb") as endless, pytest.raises(OSError, match="it has more than 4 MiB") as raised:
        files.whole(endless, files.SMALL, Path("list.csv"))
    assert raised.value.filename == "list.csv"


@pytest.mark.parametrize(("size", "fits"), [(files.SMALL, True), (files.SMALL + 1, False)])
def test_a_limit_is_what_fits(tmp_path: Path, size: int, fits: bool) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(size)
    if fits:
        assert len(files.small(tmp_path / "large")) == size
    else:
        with pytest.raises(OSError, match="it has more than 4 MiB: divide it, or put right what writes it"):
            files.small(tmp_path / "large")
