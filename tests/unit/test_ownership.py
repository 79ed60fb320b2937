"""What is given to the account of a service, and what that account could have root give it."""

import os
import pwd
import stat
from pathlib import Path

import pytest

from images.values import files
from netboot.cli import ownership
from netboot.config import Config, load_config
from netboot.stores import access_tokens

TEXT = "site: lab\nprovisioning: {url: http://192.0.2.1:8080}\n"


@pytest.fixture
def owner() -> pwd.struct_passwd:
    return pwd.getpwuid(os.getuid() or 65534)


@pytest.fixture
def config(tmp_path: Path, owner: pwd.struct_passwd) -> Config:
    """Of a site whose state is in a folder of the service's account."""
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", owner.pw_uid, owner.pw_gid)
    (tmp_path / "netboot.yaml").write_text(f"{TEXT}data: state/data\nstore: state/store\ninventory: state/inventory\n")
    return load_config(tmp_path / "netboot.yaml")


@pytest.mark.parametrize("name", ["data", "store"])
def test_a_link_that_the_account_put_there_gives_it_nothing(
    tmp_path: Path, config: Config, owner: pwd.struct_passwd, name: str
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    (tmp_path / "state" / name).symlink_to(theirs)
    with pytest.raises(OSError, match=f"state/{name}"):
        ownership.make_state(config, owner)
    assert (stat.S_IMODE(theirs.stat().st_mode), theirs.stat().st_uid) == (0o700, os.getuid())


def test_nor_lets_it_in(tmp_path: Path, config: Config, owner: pwd.struct_passwd) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    config.inventory.symlink_to(theirs)
    with pytest.raises(OSError, match="state/inventory"):
        ownership.give(tmp_path, config, owner)
    assert (stat.S_IMODE(theirs.stat().st_mode), theirs.stat().st_gid) == (0o700, os.getgid())


def test_state_is_made_and_given(config: Config, owner: pwd.struct_passwd) -> None:
    ownership.make_state(config, owner)
    assert (config.data.stat().st_uid, config.store.stat().st_uid) == (owner.pw_uid, owner.pw_uid)
    assert stat.S_IMODE(config.data.stat().st_mode) == 0o750


def test_a_link_in_the_place_of_what_root_just_wrote_gives_it_nothing(
    tmp_path: Path, owner: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets, theirs, write = tmp_path / "secrets", tmp_path / "theirs", files.write
    secrets.mkdir(mode=0o700)
    (secrets / "access.json").write_text("{}")
    theirs.write_text("root's")
    os.chown(secrets, owner.pw_uid, owner.pw_gid)
    seen = []

    def replaced(path: Path, data: bytes, *, mode: int) -> None:
        write(path, data, mode=mode)
        seen.append(path.stat().st_uid)
        path.unlink()
        path.symlink_to(theirs)

    monkeypatch.setattr(files, "write", replaced)
    access_tokens.change(secrets / "access.json", lambda there: there)
    assert (seen, theirs.stat().st_uid) == ([owner.pw_uid], os.getuid())
