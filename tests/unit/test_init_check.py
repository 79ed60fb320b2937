"""`netboot init` writes all that it is asked for, or nothing: what is in the way is looked for first, all of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import Ran, Run
from tests.unit.test_cli_not_allowed import NOBODY, enterable

OTHER = "use an account that may, or name another folder"
HEAD = "Error: nothing was written, for this is in the way:\n"


@pytest.fixture
def nobody(tmp_path: Path, run: Run) -> Iterator[Path]:
    """An account that may write to `site` alone, beside `closed` and `read-only`."""
    assert run("init", tmp_path / "there", "--join-url", "https://192.0.2.1:8443").status == 0
    for name, mode in (("site", 0o755), ("closed", 0o700), ("read-only", 0o555)):
        (tmp_path / name).mkdir(mode=mode)
    enterable(tmp_path)
    if os.geteuid() == 0:
        os.chown(tmp_path / "site", NOBODY, NOBODY)
        os.seteuid(NOBODY)
    else:
        (tmp_path / "closed").chmod(0)
    yield tmp_path
    if os.getuid() == 0:
        os.seteuid(0)
    (tmp_path / "closed").chmod(0o700)


def tree(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_files_in_the_place_of_folders(tmp_path: Path, run: Run) -> None:
    for name in ("keys", "store", "secrets"):
        (tmp_path / name).touch()
    (tmp_path / "tls").symlink_to("nowhere")
    before = tree(tmp_path)
    said = [f"{tmp_path}/secrets is no folder: move it away", f"{tmp_path}/tls is a link to nothing: remove it"]
    said += [f"{tmp_path}/{name} is no folder: move it away" for name in ("keys", "store")]
    ran = run("init", tmp_path, "--force", "--join-url", "https://192.0.2.1:8443")
    assert ran == Ran(1, "", HEAD + "\n".join(said) + "\n")
    assert tree(tmp_path) == before


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


def test_what_is_whole_is_kept_by_whoever_may_read_it(tmp_path: Path, run: Run) -> None:
    assert run("init", tmp_path / "site").status == 0
    again = run("init", tmp_path / "site", "--force")
    assert (again.status, again.err) == (0, "")
    assert "wrote" not in again.out
