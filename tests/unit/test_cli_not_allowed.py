"""What lies in a folder that one may not enter: neither there nor not there, and told so, with what to do."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netboot.cli import fit
from tests.commands import Run
from tests.sites import make_site

NOBODY = 65534


@contextmanager
def closed(folder: Path, mode: int = 0) -> Iterator[None]:
    """Nobody may enter it, or as `mode` says; root, who may all the same, is nobody meanwhile."""
    root = os.geteuid() == 0
    folder.chmod(mode)
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def folder(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site, in a folder that everybody may enter."""
    monkeypatch.delenv("NETBOOT_CONFIG", raising=False)
    make_site(open_path / "site")
    (open_path / "site/own.yaml").write_text("{}")
    return open_path / "site"


def cannot_tell(path: Path, folder: Path) -> str:
    return (
        f"Error: cannot tell whether there is {path} ({folder} may not be entered): Permission denied; "
        "use the account that owns it\n"
    )


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (lambda path: ("config", "check", "--config", path), "netboot.yaml"),
        (lambda path: ("config", "show", "--config", path), "netboot.yaml"),
        (lambda path: ("image", "list", "--config", path), "netboot.yaml"),
        (lambda path: ("doctor", "--config", path), "netboot.yaml"),
        (lambda path: ("machine", "list", "--config", path), "netboot.yaml"),
        (lambda path: ("image", "sources", "check", path), "own.yaml"),
        (lambda path: ("image", "audit", "a", "--store", ".", "--data", path), "own.yaml"),
        (lambda path: ("cluster", "kubeconfigs", "--admin-kubeconfig", path), "own.yaml"),
    ],
)
def test_nobody_can_tell(folder: Path, run: Run, words: Callable[[Path], tuple[object, ...]], name: str) -> None:
    path = folder / name
    run(*words(folder / "none.yaml"))  # a command's modules are read where they can be
    with closed(folder):
        done = run(*words(path))
    assert (done.err, done.out) == (cannot_tell(path, folder), "")
    assert done.status == 4


def test_what_may_not_be_written_is_not_allowed(folder: Path, run: Run) -> None:
    """And not worth another try, which 5 would say."""
    ring, to = folder / "keys", folder / "tftp"
    (folder / "have").mkdir()
    (folder / "have/snponly.efi").write_bytes(b"small")
    (folder / "netboot.yaml").write_text("site: lab\nprovisioning: {url: 'http://192.0.2.1:8080', ipxe: have}\n")
    to.mkdir()
    for path in folder.rglob("*"):  # what one may read, and not write
        path.chmod(0o555)
    run("key", "list", "--keys", ring)
    run("dhcp", "config", "--for", "generic", "--config", folder / "netboot.yaml")
    with closed(folder / "store"):  # somewhere else: this account is nobody meanwhile
        rotated = run("key", "rotate", "--keys", ring)
        below = run("dhcp", "tftp-folder", "--config", folder / "netboot.yaml", to / "below")
        into = run("dhcp", "tftp-folder", "--config", folder / "netboot.yaml", to)
    assert (rotated.status, rotated.out) == (4, "")
    assert rotated.err.endswith(": Permission denied; use the account that owns it\n")
    assert rotated.err.startswith(f"Error: cannot write {ring}/")
    remedy = "Remedy: see that it is there, and that this user may read and write it and its folder"
    assert below == (4, "", f"Error: cannot make {to}/below: Permission denied\n{remedy}\n")
    said = f"Error: cannot write {to}/snponly.efi: Permission denied; use the account that owns it\n"
    assert into == (4, "", said)


def test_an_operator_who_may_not_see_the_site_may_set_a_channel(folder: Path) -> None:
    """With --server and --token-file: the image is not judged, and that is said."""
    path = folder / "netboot.yaml"
    with closed(folder):
        judged = fit.judge(path, "stable", "tiny")
    assert judged == fit.Judged(why=cannot_tell(path, folder).removeprefix("Error: ").rstrip())


def test_a_token_that_may_not_be_read_is_not_to_be_replaced(folder: Path, run: Run) -> None:
    """A command that makes one anew, typed with sudo, would lock everybody out whose token this is."""
    token = folder / "secrets/operator.token"
    token.parent.chmod(0o711)
    run("config", "check", "--config", folder / "netboot.yaml")
    with closed(token):
        checked = run("config", "check", "--config", folder / "netboot.yaml")
        doctor = run("doctor", "--config", folder / "netboot.yaml")
    said = "the operator's token cannot be read: Permission denied: run this as an account that may read it\n"
    assert f"{token}: {said}" in checked.err
    assert said in doctor.out
    assert "openssl rand" not in checked.err + doctor.out


def test_what_is_not_there_is_said_not_to_be(folder: Path, run: Run) -> None:
    missing = folder / "none.yaml"
    assert run("config", "show", "--config", missing).err == (
        f"Error: no configuration at {missing}: change into the folder of a site, give --config, set NETBOOT_CONFIG, "
        "or make a new site with `netboot init DIR`\n"
    )


def test_a_store_that_cannot_be_entered_is_a_fault_beside_the_others(folder: Path, run: Run) -> None:
    run("config", "check", "--config", folder / "netboot.yaml")
    closed_folder = folder / "closed"
    closed_folder.mkdir()
    text = (folder / "netboot.yaml").read_text()
    (folder / "netboot.yaml").write_text(text + f"\nstore: {closed_folder}/store\n")
    with closed(closed_folder):
        done = run("config", "check", "--config", folder / "netboot.yaml")
    told = cannot_tell(closed_folder / "store", closed_folder).removeprefix("Error: ")
    assert f"{closed_folder}/store: {told}" in done.out + done.err
