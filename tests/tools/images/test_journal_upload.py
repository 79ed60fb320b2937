"""The journal sent by systemd's own program, as the feature starts it, to systemd's own receiver over TLS."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle
from lab.processes import child
from lab.site import free_port
from netboot.cli.authority import new_authority, new_certificate
from tests.processes import wait_for

pytestmark = pytest.mark.tools

SCRIPT = Path(__file__).parents[3] / "images/recipes/features/journal-upload/usr/lib/netboot/journal.sh"
SYSTEMD = Path("/lib/systemd")
SAID = "__REALTIME_TIMESTAMP=1700000000000000\n__MONOTONIC_TIMESTAMP=1\n_BOOT_ID={}\nMESSAGE={}\n\n"
BOOT_ID = "0" * 31 + "1"


@dataclass(frozen=True)
class Receiver:
    """Somebody who takes journals at `port`, whose certificate is by the authority in `authority`."""

    folder: Path
    port: int
    authority: str

    @contextmanager
    def switched_on(self) -> Iterator[None]:
        """Debian's systemd-journal-remote."""
        argv = [str(SYSTEMD / "systemd-journal-remote"), f"--listen-https=127.0.0.1:{self.port}"]
        argv += [f"--cert={self.folder / 'log.crt'}", f"--key={self.folder / 'log.key'}", "--split-mode=host"]
        argv += [f"--output={self.folder / 'taken'}"]
        with child("journal-remote", argv, self.folder / "remote.log"):
            wait_for(self._listens)
            yield

    def taken(self) -> list[str]:
        """The messages that it has."""
        argv = ["journalctl", "--quiet", f"--directory={self.folder / 'taken'}", "--output=cat"]
        return subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False).stdout.splitlines()

    def _listens(self) -> bool:
        found = subprocess.run(["ss", "-Hltn", f"sport = :{self.port}"], capture_output=True, text=True, check=True)
        return bool(found.stdout)


@pytest.fixture
def receiver(tmp_path: Path) -> Receiver:
    (tmp_path / "taken").mkdir()
    authority, key = new_authority("logs")
    for name, data in zip(("log.crt", "log.key"), new_certificate(authority, key, ["127.0.0.1"]), strict=True):
        (tmp_path / name).write_bytes(data)
    return Receiver(tmp_path, free_port("127.0.0.1"), authority.decode())


def upload(folder: Path, receiver: Receiver, authority: str, *messages: str) -> int:
    """The status of the unit's program on a machine whose journal has these messages, when it has sent them."""
    url = "http://192.0.2.1"
    facts = {"site": "a", "issued": 1, "minimum_epoch": 0, "origins": (url,), "report": url}
    told = {"journal_url": f"https://127.0.0.1:{receiver.port}", "journal_authorities": (authority,)}
    for name in ("run/netboot", "run/netboot-journal", "state"):
        (folder / name).mkdir(parents=True)
    (folder / "run/netboot/site.json").write_bytes(SiteBundle.model_validate(facts | told).to_bytes())
    exported = "".join(SAID.format(BOOT_ID, message) for message in messages)
    journal = folder / "machine.journal"
    writing = [str(SYSTEMD / "systemd-journal-remote"), f"--output={journal}", "-"]
    subprocess.run(writing, input=exported, capture_output=True, text=True, timeout=180, check=True)
    program = folder / "upload"
    program.write_text(f'#!/bin/sh\nexec {SYSTEMD}/systemd-journal-upload "$@" --file={journal} --follow=no\n')
    program.chmod(0o755)
    env = {"NETBOOT_RUN": str(folder / "run"), "NETBOOT_UPLOAD": str(program), "STATE_DIRECTORY": str(folder / "state")}
    done = subprocess.run(["sh", str(SCRIPT)], env=env, capture_output=True, text=True, timeout=180, check=False)
    print(done.stderr)
    return done.returncode


def test_a_receiver_whom_the_site_s_authority_has_signed_takes_the_journal(tmp_path: Path, receiver: Receiver) -> None:
    with receiver.switched_on():
        assert upload(tmp_path / "machine", receiver, receiver.authority, "one", "two") == 0
        wait_for(lambda: receiver.taken() == ["one", "two"])


def test_a_stranger_gets_nothing_and_the_unit_tries_again(tmp_path: Path, receiver: Receiver) -> None:
    with receiver.switched_on():
        assert upload(tmp_path / "machine", receiver, new_authority("other")[0].decode(), "one") != 0
        assert receiver.taken() == []


def test_where_nobody_listens_the_unit_tries_again(tmp_path: Path, receiver: Receiver) -> None:
    assert upload(tmp_path / "machine", receiver, receiver.authority, "one") != 0
