"""`netboot init` writes all that it is asked for, or nothing: what is in the way is looked for first, all of it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import Ran, Run
from tests.unit.test_cli_not_allowed import NOBODY

OTHER = "use an account that may, or name another folder"
HEAD = "Error: nothing was written, for this is in the way:\n"


@pytest.fixture
def nobody(open_path: Path, run: Run) -> Iterator[Path]:
    """An account that may write to `site` alone, beside `closed` and `read-only`."""
    assert run("init", open_path / "there", "--join-url", "https://192.0.2.1:8443").status == 0
    for name, mode in (("site", 0o755), ("closed", 0o700), ("read-only", 0o555)):
        (open_path / name).mkdir(mode=mode)
    if os.geteuid() == 0:
        os.chown(open_path / "site", NOBODY, NOBODY)
        os.seteuid(NOBODY)
    else:
        (open_path / "closed").chmod(0)
    yield open_path
    if os.getuid() == 0:
        os.seteuid(0)
    (open_path / "closed").chmod(0o700)


def tree(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_files_in_the_place_of_folders(open_path: Path, run: Run) -> None:
    for name in ("keys", "store", "secrets"):
        (open_path / name).touch()
    (open_path / "tls").symlink_to("nowhere")
    before = tree(open_path)
    said = [f"{open_path}/secrets is no folder: move it away", f"{open_path}/tls is a link to nothing: remove it"]
    said += [f"{open_path}/{name} is no folder: move it away" for name in ("keys", "store")]
    ran = run("init", open_path, "--force", "--join-url", "https://192.0.2.1:8443")
    assert ran == Ran(1, "", HEAD + "\n".join(said) + "\n")
    assert tree(open_path) == before


@pytest.mark.parametrize(("state", "how"), [("closed", "entered"), ("read-only", "written")])
def test_a_state_where_nobody_may_write(nobody: Path, run: Run, state: str, how: str) -> None:
    ran = run("init", nobody / "site", "--state", nobody / state / "state")
    assert ran == Ran(4, "", f"{HEAD}{nobody}/{state} may not be {how} by this account: {OTHER}\n")
    assert tree(nobody / "site") == []


def test_a_folder_where_nobody_may_write(nobody: Path, run: Run) -> None:
    ran = run("init", nobody / "read-only/site")
    assert ran == Ran(4, "", f"{HEAD}{nobody}/read-only may not be written by this account: {OTHER}\n")


def test_an_authority_that_cannot_be_read(nobody: Path, run: Run) -> None:
    """Its key is root's, and the listener's certificate is to be made anew."""
    os.seteuid(os.getuid())
    site = nobody / "there"
    for name in ("tls/join.crt", "tls/join.key"):
        (site / name).unlink()
    secrets = [*(site / "keys").glob("*.key"), *(site / "secrets").iterdir()]
    for path in (site, *site.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o644)
    if os.getuid() == 0:
        for path in secrets:
            os.chown(path, NOBODY, NOBODY)
    for path in secrets:
        path.chmod(0o600)
    (site / "tls/ca.key").chmod(0o600 if os.getuid() == 0 else 0)
    before = tree(site)
    if os.getuid() == 0:
        os.seteuid(NOBODY)
    ran = run("init", site, "--force")
    said = f"{site}/tls/ca.key cannot be read: Permission denied: use an account that may, or move it away\n"
    assert ran == Ran(4, "", HEAD + said)
    assert tree(site) == before


def test_what_is_whole_is_kept_by_whoever_may_read_it(open_path: Path, run: Run) -> None:
    assert run("init", open_path / "site", "--url", "http://192.0.2.1:8080").status == 0
    again = run("init", open_path / "site", "--force")
    assert (again.status, again.err) == (0, "")
    assert "wrote" not in again.out


def test_a_folder_in_which_nothing_can_be_made(open_path: Path, run: Run) -> None:
    """/proc shows root that it may be written, and takes nothing."""
    status, words = 1, "nothing can be made in /proc: No such file or directory: name another folder"
    if os.geteuid() != 0:
        status, words = 4, f"/proc may not be written by this account: {OTHER}"
    assert run("init", open_path / "site", "--state", "/proc/nope") == Ran(status, "", f"{HEAD}{words}\n")
    assert tree(open_path) == []


def test_a_way_through_a_folder_that_is_not_there(open_path: Path, run: Run) -> None:
    words = f"{open_path}/nope is not there, and `..` leads out of it: leave out both"
    ran = run("init", open_path / "site", "--state", open_path / "nope/../state")
    assert ran == Ran(1, "", f"{HEAD}{words}\n")
    assert run("init", open_path / "nope/../site") == ran
    assert tree(open_path) == []


def test_an_authority_that_is_none(open_path: Path, run: Run) -> None:
    authority = open_path / "site/tls/ca.crt"
    assert run("init", open_path / "site").status == 0
    authority.write_text("nothing")
    before = tree(open_path)
    words = f"{authority} holds no certificate: move it and its key away, and an authority is made"
    assert run("init", open_path / "site", "--force") == Ran(1, "", f"{HEAD}{words}\n")
    assert tree(open_path) == before
    for name in ("ca.crt", "ca.key"):
        (authority.parent / name).unlink()
    assert run("init", open_path / "site", "--force").status == 0
    assert authority.read_text().startswith("-----BEGIN CERTIFICATE-----\n")


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]"])
def test_a_url_that_leads_nowhere_is_refused(open_path: Path, run: Run, host: str) -> None:
    for words in (("--url", f"http://{host}:8080"), ("--join-url", f"https://{host}:8443")):
        ran = run("init", open_path / "site", *words)
        said = "leads nowhere: its host stands for all addresses of a listener; give the one that is reached"
        assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: Invalid value for '{words[0]}': {said}")
    assert tree(open_path) == []


@pytest.mark.parametrize(
    "host", ["127.1", "0", "2130706433", "0x7f000001", "a.7", "192.0.2.1.", "01.0.2.1", "192.0.2.256"]
)
def test_a_host_that_is_a_name_to_some_and_an_address_to_others_is_refused(
    open_path: Path, run: Run, host: str
) -> None:
    ran = run("init", open_path / "site", "--url", f"http://{host}:8080")
    said = (
        "its host is a name to some and an address to others: write an address as four numbers, each 0 to 255, without "
        "leading zeros"
    )
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: Invalid value for '--url': {said}")


@pytest.mark.parametrize("host", ["224.0.0.1", "255.255.255.255", "240.0.0.1", "0.0.0.5", "[ff02::1]"])
def test_a_url_of_no_host_is_refused(open_path: Path, run: Run, host: str) -> None:
    ran = run("init", open_path / "site", "--url", f"http://{host}:8080")
    said = "leads nowhere: its host is an address that no host has; give the one that is reached"
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: Invalid value for '--url': {said}")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost", "a.localhost", "localhost."])
def test_a_url_that_leads_a_machine_to_itself_is_warned_of(open_path: Path, run: Run, host: str) -> None:
    """Where `curl` plays the machine it is right."""
    url, site = f"http://{host}:8080", open_path / "site"
    words = "leads a machine to itself; where machines are to come, give the address by which they reach this host"
    ran = run("init", site, "--url", url)
    assert (ran.status, ran.err) == (0, f"warning: provisioning.url: {url} {words}\n")
    file, origins = site / "netboot.yaml", "origins: [http://192.0.2.1:80, http://127.0.0.2:80]"
    file.write_text(re.sub(r"(?m)^origins:.*$", origins, file.read_text()))
    assert run("config", "bundle", "--config", site / "netboot.yaml").status == 0
    ran = run("config", "check", "--config", site / "netboot.yaml")
    both = f"warning: provisioning.url: {url} {words}\nwarning: origins: http://127.0.0.2:80 {words}\n"
    assert (ran.status, ran.err) == (0, both)
