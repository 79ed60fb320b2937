"""`journal` and `ssh` of netboot.yaml: what of them is in the site bundle, and every fault of their files."""

from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle, read_bundle
from images.values.strict import FaultsError
from netboot.cli.authority import new_authority
from netboot.cli.check import check_site
from netboot.config import Config
from netboot.credentials import PUT_IT_THERE
from netboot.stores.backup import places
from tests.unit.test_config import LEAST, faults, load

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBL3nh6gJr6SMkLz8mC8TMl0wUg4vBqvXqDCNSYZW5cL"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMQGr7DEnG2mS0cOtbYzfuFYUxQ0h4sDNh2ub0n3jhy2"
NOT_KEYS = "ssh.authorities must be public keys of ssh (ssh-ed25519 AAAA...), one a line"
BOTH = (
    f"{LEAST}time_servers: [ntp1]\n"
    "journal: {url: 'https://logs.example:19532/', authorities: tls/logs.crt}\n"
    "ssh: {authorities: ssh/ca.pub, principals: [sre, storage]}\n"
)


def written(folder: Path, name: str, text: str) -> str:
    """A file of the site; its text."""
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return text


def both(folder: Path) -> Config:
    written(folder, "tls/logs.crt", new_authority("logs")[0].decode())
    written(folder, "ssh/ca.pub", f"{ED25519} of the site, 2026\n\n{OTHER}\n")
    return load(folder, BOTH)


def test_both_travel_in_the_bundle_and_keep_the_order_that_the_initrd_reads(tmp_path: Path) -> None:
    bundle = both(tmp_path).site_bundle(7)
    assert (bundle.journal_url, bundle.ssh_authorities) == ("https://logs.example:19532", (ED25519, OTHER))
    assert bundle.journal_authorities == ((tmp_path / "tls/logs.crt").read_text(),)
    assert bundle.ssh_principals == ("sre", "storage")
    data = bundle.to_bytes()
    assert read_bundle(data) == bundle
    assert b'"origins":["http://192.0.2.1:8080"],"report":"http://192.0.2.1:8080","schema":' in data


def test_a_bundle_without_them_is_the_one_of_before(tmp_path: Path) -> None:
    """Canonical bytes are compared when a bundle is read: what was signed before must still be in that form."""
    data = load(tmp_path, LEAST).site_bundle(7).to_bytes()
    assert data == (
        b'{"issued":7,"join_authorities":[],"join_url":null,"minimum_epoch":0,"origins":["http://192.0.2.1:8080"],'
        b'"report":"http://192.0.2.1:8080","schema":"netboot.dev/site/v1","site":"lab"}\n'
    )


def test_their_files_are_part_of_a_backup(tmp_path: Path) -> None:
    kept = places(both(tmp_path), tmp_path / "netboot.yaml")
    assert kept["file/journal.authorities"] == tmp_path / "tls/logs.crt"
    assert kept["file/ssh.authorities"] == tmp_path / "ssh/ca.pub"


def test_a_journal_in_plain_text_has_no_authority(tmp_path: Path) -> None:
    bundle = load(tmp_path, LEAST + "journal: {url: 'http://192.0.2.9'}\n").site_bundle(7)
    assert (bundle.journal_url, bundle.journal_authorities) == ("http://192.0.2.9", ())


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        (
            "journal: {url: 'https://logs.example'}",
            "journal: an https:// url wants authorities, by which machines know it; an http:// one has none",
        ),
        (
            "journal: {url: 'http://logs.example', authorities: x}",
            "journal: an https:// url wants authorities, by which machines know it; an http:// one has none",
        ),
        (
            "journal: {url: 'http://logs.example/upload'}",
            "journal: journal.url is a scheme, a host and if need be a port: the path is systemd's",
        ),
        ("ssh: {authorities: x}", "ssh.principals: this key is required"),
        ("ssh: {authorities: x, principals: []}", "ssh.principals: must name at least one: without any nobody could"),
        ("ssh: {authorities: x, principals: ['a b']}", "ssh.principals[0]: must be a principal of ssh certificates: "),
    ],
)
def test_what_cannot_be(tmp_path: Path, section: str, fault: str) -> None:
    (found,) = faults(tmp_path, f"{LEAST}{section}\n")
    assert found.startswith(f"netboot.yaml:3: {fault}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", NOT_KEYS),
        ("x\n", f"1: {NOT_KEYS}"),
        (f"{ED25519}\n-----BEGIN OPENSSH PRIVATE KEY-----\n", f"2: {NOT_KEYS}"),
        (f"cert-authority {ED25519}\n", f"1: {NOT_KEYS}"),
        (ED25519.replace("ssh-ed25519", "ssh-rsa"), f"1: {NOT_KEYS}"),
        (ED25519 + "=", f"1: {NOT_KEYS}"),
        ("ssh-ed25519 é", f"1: {NOT_KEYS}"),
    ],
)
def test_what_is_no_key_is_named_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    config = both(tmp_path)
    written(tmp_path, "ssh/ca.pub", text)
    with pytest.raises(FaultsError) as caught:
        config.site_bundle(7)
    (found,) = caught.value.faults
    assert str(found) == f"{tmp_path}/ssh/ca.pub:{'' if fault[0].isdigit() else ' '}{fault}"


def test_files_that_are_not_there_are_faults_of_the_site(tmp_path: Path) -> None:
    def found() -> list[str]:
        return [str(fault) for fault in check_site(tmp_path / "netboot.yaml").faults]

    load(tmp_path, BOTH)
    unread = f"cannot be read: No such file or directory: {PUT_IT_THERE}"
    assert f"{tmp_path}/tls/logs.crt: journal.authorities {unread}" in found()
    both(tmp_path)
    (tmp_path / "ssh/ca.pub").unlink()
    assert f"{tmp_path}/ssh/ca.pub: ssh.authorities {unread}" in found()


@pytest.mark.parametrize("key", ["ssh-dss AAAAB3NzaC1kc3M" + "A" * 60, f"{ED25519} comment", 'x"]', ED25519 + "\n"])
def test_a_bundle_has_keys_alone(key: str) -> None:
    with pytest.raises(ValueError, match="must be a public key as OpenSSH writes it"):
        SiteBundle(
            site="a", issued=1, minimum_epoch=0, origins=("http://a",), report="http://a", ssh_authorities=(key,)
        )
