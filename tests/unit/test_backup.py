"""`netboot backup` and `netboot restore`: what is kept comes back, whole; what is damaged changes nothing."""

import gzip
import io
import json
import os
import pwd
import shutil
import sqlite3
import stat
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from images.store import revocations
from images.store.store import Store
from netboot.cli.main import main
from netboot.config import load_config
from netboot.join.enrolment import Act, Import
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.rollout import Assigned, Member
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.transitions import Mark
from netboot.stores import access_tokens
from netboot.stores.backup import BackupError, write_backup
from netboot.stores.backup_archive import read_backup
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.intents import SqliteIntents
from netboot.stores.intents import make as make_intents
from netboot.stores.lock import sole_instance
from netboot.stores.rollouts import SqliteRollouts, make
from tests.commands import Run
from tests.rollouts import rollout
from tests.sites import add_image, make_site

A = "a1" * 32

NO_ARCHIVE = "no archive, so no backup that `netboot backup` has made"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with something of everything, its data elsewhere."""
    root = tmp_path / "site"
    config = make_site(root)
    Store(config.store).set_channel("stable", add_image(config))
    shutil.rmtree(config.store.parent / "made")
    with (root / "netboot.yaml").open("a") as file:
        file.write(
            f"data: {tmp_path}/elsewhere\n"
            'join: {url: "https://192.0.2.1:8443", tpm_roots: roots, nonce_keys: "keep/nonce.keys"}\n'
            'clusters: {default: {endpoints: ["https://192.0.2.1:6443"], authority: tls/kube.crt}}\n'
        )
    (tmp_path / "elsewhere").mkdir()
    (root / "tls").mkdir()
    for name in ("tls/ca.crt", "tls/ca.key", "tls/join.key", "tls/kube.crt", "secrets/issuer.kubeconfig"):
        (root / name).write_text(f"content of {name}")
        (root / name).chmod(0o600)
    (root / "keep").mkdir()
    (root / "keep/nonce.keys").write_text("keys of nonces")
    (root / "roots").mkdir()
    (root / "roots/maker.pem").write_text("a root")
    config = load_config(root / "netboot.yaml")
    SqliteEnrolments(config.data / "enrolment.db").apply([("gpu-001", Import(A))], Act("alice"), 1_000)
    revocations.write(Store(config.store), {A: revocations.Revocation(reason="CVE-2026-1234", at=1)})
    make_intents(config.data / "intents.db").close()
    SqliteIntents(config.data / "intents.db").order("gpu-001", PutOn(Mark.HELD, "DIMM 4"), "alice", 1_000)
    make(config.data / "rollouts.db").close()
    store = SqliteRollouts(config.data / "rollouts.db")
    store.start(rollout(), {"gpu-001": Member(machine="gpu-001", previous=A)}, Note(1, "alice", "start"))
    with sqlite3.connect(config.data / "state.db") as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE boots (boot TEXT)")
        db.execute("INSERT INTO boots VALUES ('one')")
    db.close()
    (config.data / "boot-id.key").write_bytes(bytes(32))
    return root


def everything(root: Path, data: Path) -> dict[str, bytes]:
    """All of a site but what a backup leaves out: images, locks, and the form of databases."""
    found = {}
    for base in (root, data):
        for path in base.rglob("*"):
            out = {"blobs", "images", "refs", "bundles", "tmp"} & set(path.relative_to(base).parts)
            if path.is_file() and not out and path.name not in ("lock", "unneeded.json") and ".db" not in path.name:
                found[str(path)] = path.read_bytes() + oct(stat.S_IMODE(path.stat().st_mode)).encode()
    assert len(found) >= 12
    return found


def boots(data: Path) -> list[str]:
    db = sqlite3.connect(data / "state.db")
    try:
        return [row[0] for row in db.execute("SELECT boot FROM boots")]
    finally:
        db.close()


def test_root_restores_for_the_account_of_the_service(
    site: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State and secrets are the account's, and what signs is not; a link that it left leads to nothing of others."""
    data, file, theirs = tmp_path / "elsewhere", tmp_path / "b.tar.gz", tmp_path / "theirs"
    run("backup", file, "--config", site / "netboot.yaml")
    shutil.rmtree(site)
    theirs.write_text("root's")
    (data / "link").symlink_to(theirs)
    account = pwd.getpwuid(os.getuid() or 65534)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ran = run("restore", file, "--config", site / "netboot.yaml", "--owner", account.pw_name)
    assert (ran.status, ran.err) == (0, "")
    given = [data, *data.rglob("*"), site / "store", *(site / "store").rglob("*"), *(site / "secrets").rglob("*")]
    assert {path.lstat().st_uid for path in [*given, site / "secrets"]} == {account.pw_uid}
    kept = [site / "netboot.yaml", site / "inventory", theirs, *(site / "keys").iterdir(), *(site / "tls").glob("ca.*")]
    assert {path.stat().st_uid for path in kept} == {os.getuid()}
    assert len(given) > 10 and len(kept) > 4


def test_what_was_backed_up_comes_back(site: Path, tmp_path: Path, run: Run) -> None:
    data, file = tmp_path / "elsewhere", tmp_path / "b.tar.gz"
    before = everything(site, data)
    bundle = Store(site / "store").bundle()
    status, out, err = run("backup", file, "--config", site / "netboot.yaml")
    assert (status, err) == (0, "")
    assert out == f"{file}: 22 files, {file.stat().st_size} bytes, mode 0600. It holds secrets.\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shutil.rmtree(site)
    shutil.rmtree(data)
    status, out, err = run("restore", file, "--config", site / "netboot.yaml")
    assert (status, err) == (0, "")
    assert out == "restored 20 files of site test; next: `netboot config check`, then `netboot serve`\n"
    assert everything(site, data) == before
    assert Store(site / "store").bundle() == bundle
    assert SqliteEnrolments(data / "enrolment.db").of("gpu-001").ek_sha256 == A
    assert SqliteEnrolments(data / "enrolment.db").history("gpu-001", 5)[0].operator == "alice"
    [held] = SqliteIntents(data / "intents.db").all(2_000)
    assert (held.machine, held.mark, held.who, held.reason) == ("gpu-001", Mark.HELD, "alice", "DIMM 4")
    assert SqliteRollouts(data / "rollouts.db").assigned() == {"gpu-001": Assigned("stable", A, 1)}
    assert boots(data) == ["one"]
    assert stat.S_IMODE((site / "secrets").stat().st_mode) == 0o700
    leftovers = [path.name for base in (site, data) for path in base.rglob(".*")]
    assert [name for name in leftovers if "restor" in name or "replaced" in name or "backup" in name] == []


def test_objects_of_a_cluster_are_put_beside_and_are_in_no_later_backup(site: Path, tmp_path: Path, run: Run) -> None:
    """What is read in a cluster for it: `tests/cluster/test_migrate.py`."""
    file, config = tmp_path / "b.tar.gz", load_config(site / "netboot.yaml")
    objects = {"machines.yaml": b"items: []\n", "enrolments.yaml": b"items: [1]\n"}
    with file.open("wb") as out:
        contents = write_backup(config, site / "netboot.yaml", out, 1, objects)
    assert [entry.name for entry in contents.files][-2:] == ["objects/machines.yaml", "objects/enrolments.yaml"]
    put = site / "restored-objects"
    put.mkdir()
    (put / "holds.yaml").write_text("of an earlier restore")
    ran = run("restore", file, "--force", "--config", site / "netboot.yaml")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.endswith(
        f"objects of the cluster are in {put}, and were not written there; where they are lost:\n"
        f"  kubectl create -f {put}\n"
        f"  kubectl replace --subresource=status -f {put}/enrolments.yaml  # only of objects that were just made\n"
    )
    assert {path.name: path.read_bytes() for path in put.iterdir()} == {
        **objects,
        "holds.yaml.before-restore": b"of an earlier restore",
    }
    assert stat.S_IMODE((put / "machines.yaml").stat().st_mode) == 0o600
    run("backup", file, "--force", "--config", site / "netboot.yaml")
    with tarfile.open(file) as archive:
        assert [name for name in archive.getnames() if "objects" in name] == []
    assert run("restore", file, "--force", "--config", site / "netboot.yaml").status == 0
    assert (put / "machines.yaml").exists(), "a backup without objects leaves those that are there"


def test_a_backup_that_is_there_is_replaced_only_by_force(site: Path, tmp_path: Path, run: Run) -> None:
    file, config = tmp_path / "b.tar.gz", ("--config", site / "netboot.yaml")
    file.write_text("last week's")
    assert run("backup", file, *config) == (
        1,
        "",
        f"Error: {file} is there already: name another, or give --force to replace it\n",
    )
    assert file.read_text() == "last week's"
    assert run("backup", file, "--force", *config)[0] == 0
    assert run("restore", "--check", file, *config)[0] == 0


@pytest.mark.parametrize("file", ["", ".", "/"])
def test_what_is_no_name_of_a_file_is_said(site: Path, run: Run, file: str) -> None:
    ran = run("backup", "--force", file, "--config", site / "netboot.yaml")
    assert (ran.status, ran.err.splitlines()[-1]) == (
        2,
        f"Error: Invalid value for FILE: {file!r} is no name of a file: name one, or '-' for standard output",
    )


def test_a_site_in_another_place(site: Path, tmp_path: Path, run: Run) -> None:
    """Relative paths follow the configuration, absolute ones are what they are."""
    file = tmp_path / "b.tar.gz"
    run("backup", file, "--config", site / "netboot.yaml")
    shutil.rmtree(tmp_path / "elsewhere")
    assert run("restore", file, "--config", tmp_path / "new" / "netboot.yaml")[0] == 0
    assert (tmp_path / "new/secrets/operator.token").read_bytes() == (site / "secrets/operator.token").read_bytes()
    assert (tmp_path / "elsewhere/boot-id.key").exists()


def test_a_site_that_is_there_is_replaced_only_by_force(site: Path, tmp_path: Path, run: Run) -> None:
    file, data = tmp_path / "b.tar.gz", tmp_path / "elsewhere"
    config = ("--config", site / "netboot.yaml")
    run("backup", file, *config)
    before = everything(site, data)
    SqliteEnrolments(data / "enrolment.db").apply([("gpu-002", Import("b2" * 32))], Act("mallory"), 2_000)
    writer = sqlite3.connect(data / "state.db")  # leaves a -wal behind, as a service that was killed does
    writer.execute("INSERT INTO boots VALUES ('two')")
    writer.commit()
    assert (data / "state.db-wal").stat().st_size > 0
    shutil.copy(data / "state.db-wal", tmp_path / "wal")
    writer.close()
    shutil.copy(tmp_path / "wal", data / "state.db-wal")
    (site / "inventory/site.yaml").write_text("machines: []\n")
    (site / "inventory/later.yaml").write_text("machines: []\n")
    [trusted] = (site / "keys").glob("*.pub")
    trusted.rename(trusted.with_suffix(".retired"))
    status, _, err = run("restore", file, *config)
    assert (status, err) == (
        1,
        (
            f"Error: there is a site already ({site}/netboot.yaml): give --force to replace it, "
            "or name another with --config\n"
        ),
    )
    assert run("restore", file, "--force", *config)[0] == 0
    after = everything(site, data)
    assert after.pop(str(site / "inventory/later.yaml.before-restore")).startswith(b"machines: []")
    assert after == before
    assert SqliteEnrolments(data / "enrolment.db").of("gpu-002").state == "none"
    assert boots(data) == ["one"]


def test_it_can_go_through_pipes(
    site: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    main(["backup", "-", "--config", str(site / "netboot.yaml")])
    written = out.getvalue()
    monkeypatch.undo()
    assert capfdbinary.readouterr().err == b"22 files; it holds secrets\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
    main(["restore", "-", "--check", "--config", str(site / "netboot.yaml")])
    assert capfdbinary.readouterr().out == b"a whole backup of site test: 22 files\n"


def test_what_json_says_has_no_secret(site: Path, tmp_path: Path, run: Run) -> None:
    status, out, _ = run("backup", tmp_path / "b.tar.gz", "--config", site / "netboot.yaml", "-o", "json")
    said = json.loads(out)
    assert (status, said["site"], said["format"]) == (0, "test", 1)
    names = {one["name"] for one in said["files"]}
    assert {
        "config",
        "data/enrolment.db",
        "data/intents.db",
        "data/state.db",
        "file/join.key",
        "tls/ca.key",
        "tpm-roots/maker.pem",
    } <= names
    assert {"file/clusters.default.issuer", "site/bundle.json", "channels/stable.json", "inventory/site.yaml"} <= names


def test_a_running_service_is_left_alone(site: Path, tmp_path: Path, run: Run) -> None:
    file, data = tmp_path / "b.tar.gz", tmp_path / "elsewhere"
    config = ("--config", site / "netboot.yaml")
    with sole_instance(data / "lock"):
        assert run("backup", file, *config)[0] == 0
        (site / "inventory/site.yaml").write_text("machines: []\n")
        before = everything(site, data)
        status, _, err = run("restore", file, "--force", *config)
        assert status == 1
        assert err.startswith(f"Error: process {os.getpid()} already serves {data}; stop it first")
        assert everything(site, data) == before


def test_a_rename_that_fails_undoes_all(site: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file, data = tmp_path / "b.tar.gz", tmp_path / "elsewhere"
    config = ("--config", site / "netboot.yaml")
    run("backup", file, *config)
    for path in ("inventory/site.yaml", "tls/ca.crt", "secrets/operator.token"):
        (site / path).write_text("newer than the backup\n")
    before = everything(site, data)
    real, count = Path.rename, 0

    def rename(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == 25:
            raise OSError(28, "No space left on device", str(self))
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    status, _, err = run("restore", file, "--force", *config)
    assert (status, ": No space left on device; everything is as it was\n" in err) == (1, True)
    assert count > 25
    assert everything(site, data) == before
    assert boots(data) == ["one"]
    monkeypatch.undo()
    assert run("restore", file, "--force", *config)[0] == 0
    assert (site / "tls/ca.crt").read_text() == "content of tls/ca.crt"


def test_a_restore_that_was_cut_off_must_be_completed(site: Path, tmp_path: Path, run: Run) -> None:
    file, data = tmp_path / "b.tar.gz", tmp_path / "elsewhere"
    config = ("--config", site / "netboot.yaml")
    run("backup", file, *config)
    (data / "restoring").touch()
    status, _, err = run("serve", *config)
    assert status == 1
    assert err.splitlines()[-1] == (
        f"Error: a restore into {data} was interrupted, so that what is there is part old and part new: "
        "run `netboot restore` again"
    )
    assert run("restore", file, "--force", *config)[0] == 0
    assert not (data / "restoring").exists()


def altered(file: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> io.BytesIO:
    with tarfile.open(file) as archive:
        members = [(one, archive.extractfile(one).read()) for one in archive.getmembers()]  # type: ignore[union-attr]
    change(members)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w|gz") as archive:
        for member, body in members:
            member.size = len(body) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(body))
    out.seek(0)
    return out


def refused(data: io.BytesIO, folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    with pytest.raises(BackupError) as caught:
        read_backup(data, folder)
    shutil.rmtree(folder)
    return str(caught.value)


def test_what_is_no_whole_backup(site: Path, tmp_path: Path, run: Run) -> None:
    file, folder = tmp_path / "b.tar.gz", tmp_path / "x"
    run("backup", file, "--config", site / "netboot.yaml")

    def at(members: list[tuple[tarfile.TarInfo, bytes]], name: str) -> int:
        return next(number for number, (member, _) in enumerate(members) if member.name == name)

    def flip(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        place = at(members, "inventory/site.yaml")
        members[place] = (members[place][0], b"X" + members[place][1][1:])

    def link(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        member = members[at(members, "tls/ca.key")][0]
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/shadow"

    def climb(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        body = members[0][1].replace(b'"tls/ca.key"', b'"../../x"')
        members[0] = (members[0][0], body)

    def format2(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        members[0] = (members[0][0], members[0][1].replace(b'"format": 1', b'"format": 2'))

    def drop(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        members.pop()

    def more(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        members.append((tarfile.TarInfo("extra"), b"x"))

    damaged = "the backup is damaged"
    assert refused(altered(file, flip), folder) == f"{damaged}: inventory/site.yaml is not what was backed up"
    assert refused(altered(file, link), folder) == f"{damaged} or cut short: tls/ca.key is not where it should be"
    assert refused(altered(file, climb), folder) == (
        "not a backup that this netboot understands: its manifest is of another form"
    )
    assert refused(altered(file, format2), folder) == (
        "a backup of format 2, this one knows 1: use the netboot that made it"
    )
    assert refused(altered(file, drop), folder).startswith(f"{damaged} or cut short: ")
    assert refused(altered(file, more), folder) == "the backup holds more than its manifest says"
    assert refused(io.BytesIO(file.read_bytes()[:-200]), folder).startswith(f"{damaged} or cut short: ")
    assert refused(io.BytesIO(b""), folder) == NO_ARCHIVE
    assert refused(io.BytesIO(b"site: lab\n" * 99), folder) == NO_ARCHIVE
    plain = gzip.decompress(file.read_bytes())
    broken = f"{damaged} or cut short: its archive breaks off before its last file"
    assert refused(io.BytesIO(plain[: plain.index(b"ustar", 512) + 300]), folder) == broken
    assert refused(io.BytesIO(b"\0" * 10_240), folder).startswith("not a backup that `netboot backup` has made")
    status, _, err = run("restore", site / "netboot.yaml", "--config", tmp_path / "new/netboot.yaml")
    assert (status, err.startswith(f"Error: {site}/netboot.yaml: {NO_ARCHIVE}\n")) == (1, True)
    assert list((tmp_path / "new").iterdir()) == []


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=2_000))
def test_any_bytes_are_refused(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert refused(io.BytesIO(data), tmp_path_factory.mktemp("any"))


def test_an_older_backup_unblocks_nobody_and_says_which_tokens_are_back(site: Path, tmp_path: Path, run: Run) -> None:
    file, config = tmp_path / "b.tar.gz", ("--config", site / "netboot.yaml")
    for made in (("token", "create", "alice", "--role", "viewer"), ("block", "oidc:then")):
        assert run("access", *made, *config).status == 0
    assert run("backup", file, *config).status == 0
    for each in (("token", "revoke", "alice"), ("unblock", "oidc:then"), ("block", "oidc:since")):
        assert run("access", *each, *config).status == 0
    ran = run("restore", file, "--force", *config)
    assert ran.status == 0
    first, *others = ran.err.splitlines()
    assert first.startswith("WARNING: tokens and blocks are those of 20")
    assert first.endswith(": revoke and block again whom you did since")
    assert others == [
        "still blocked, though not in the backup: oidc:since",
        "WARNING: tokens that this site did not have open things again: alice",
    ]
    there = access_tokens.read(site / "secrets/access.json")
    assert [each.name for each in there.tokens] == ["alice"]
    assert {each.name for each in there.blocked} == {"oidc:then", "oidc:since"}
    assert stat.S_IMODE((site / "secrets/access.json").stat().st_mode) == 0o600


def test_a_list_of_the_blocked_that_is_lost_is_not_begun_anew_by_the_way(site: Path, run: Run) -> None:
    file, config = site / "netboot.yaml", ("--config", site / "netboot.yaml")
    oidc = {"issuer": "https://login.example", "client_id": "netboot", "roles": {"user:alice": "viewer"}}
    text = file.read_text().replace("management:\n", f"management:\n  oidc: {json.dumps(oidc)}\n")
    file.write_text(text)
    for each in (("block", "oidc:bob"), ("blocked",), ("token", "create", "alice", "--role", "viewer")):
        ran = run("access", *each, *config)
        assert (ran.status != 0, "which says who is blocked, is not there" in ran.err) == (True, True)
    assert "which says who is blocked, is not there" in run("config", "check", *config).err
    assert not (site / "secrets/access.json").exists()
