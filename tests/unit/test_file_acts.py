"""Acts on files, however they end: a dry run leaves all as it was, and what was done is in the audit or said."""

import errno
import fcntl
import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from images.artifact.keyring import KeyRing
from images.store.store import Store
from images.values import files, flock
from netboot.config import Config
from netboot.stores import audit, proofkey, sealing
from tests.commands import Run
from tests.sites import add_image, make_site
from tests.unit.test_cli_not_allowed import closed
from tokens.sealed import SealingKey

CVE = ("--reason", "CVE-2026-1234", "--force-nothing-boots")


@pytest.fixture
def config(open_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A site on which a service has run."""
    made = make_site(open_path / "site")
    made.data.mkdir()
    audit.make(made.data / "audit.db").close()
    monkeypatch.chdir(open_path / "site")
    monkeypatch.delenv("SUDO_USER", raising=False)
    return made


def records(config: Config) -> list[dict[str, Any]]:
    """The newest first."""
    found = audit.SqliteAudit(config.data / "audit.db").records(None, None, 50)
    return [record.model_dump() for _, record in found]


def what(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("act", "facts", "before", "after", "result"))


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time of change and content of all below a folder, and of itself."""
    paths = [folder, *sorted(folder.rglob("*"))]
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


def failing(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_dry_run_of_a_store_only_reads_also_while_another_writes(config: Config, run: Run, open_path: Path) -> None:
    image = add_image(config)
    store = Store(config.store)
    (store.root / "tmp/staged").write_text("of a build")
    (store.root / "blobs").chmod(0o700)
    with flock.exclusive(store.root / "lock", "the store"):
        before = tree(open_path)
        removed = run("image", "rm", image, "--dry-run", "-o", "json")
        assert (removed.status, removed.json) == (0, {"removed": image, "dry_run": True})
        collected = run("image", "gc", "--grace", "0", "--dry-run", "-o", "json").json
        assert (collected["removed"], collected["dry_run"]) == ([image], True)
        assert run("image", "gc", "--dry-run", "--store", "newstore").status == 3
        assert run("image", "rm", image, "--dry-run", "--store", "newstore").status == 3
        assert tree(open_path) == before
    assert records(config) == []


def test_who_interrupts_the_record_of_an_act_has_it_written_all_the_same(
    config: Config, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, connect = add_image(config), sqlite3.connect

    def interrupted(*words: Any, **more: Any) -> Any:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return connect(*words, **more)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", interrupted)
        assert run("image", "rm", image) == (130, "", "\ninterrupted\n")
    named = {"image": image, "name": "tiny"}
    assert [what(each) for each in records(config)] == [("image-rm", {"image": image}, named, None, "done")]


def test_what_an_act_did_before_it_was_interrupted_or_failed_is_written_down(
    config: Config, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = (add_image(config, name=name, salt=name) for name in ("one", "two", "three"))
    first, second = sorted((two, three))
    with monkeypatch.context() as patched:
        patched.setattr("images.store.gc.shutil.rmtree", lambda _: signal.raise_signal(signal.SIGINT))
        assert run("image", "rm", one).status == 130
    named = {"image": one, "name": "one"}
    assert what(records(config)[0]) == ("image-rm", {"image": one}, named, None, "done-in-part")
    unlink = Path.unlink
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda path: failing() if path.parent.name == second else unlink(path))
        for _ in range(2):
            assert run("image", "gc", "--grace", "0").status == 5
    gone: tuple[Any, ...] = ("image-gc", {}, {"images": [first]}, None, "done-in-part")
    assert [what(each) for each in records(config)[:-1]] == [gone], "nothing went any more"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("image-rm", lambda image, _: ("image", "rm", image)),
        ("image-revoke", lambda image, _: ("image", "revoke", image, *CVE)),
        ("key-rotate", lambda *_: ("key", "rotate")),
        ("key-retire", lambda _, key: ("key", "retire", key, "--force")),
        ("key-proofs-rotate", lambda *_: ("key", "proofs", "rotate")),
        ("key-sealing-rotate", lambda *_: ("key", "sealing", "rotate")),
        ("config-bundle", lambda *_: ("config", "bundle")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_power_cut_may_undo_is_written_down(
    config: Config,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    act: str,
    words: Callable[[str, str], tuple[str, ...]],
) -> None:
    if act == "key-sealing-rotate":
        join(config)
    image, (old,) = add_image(config), KeyRing(config.keys).infos()
    assert run("key", "rotate").status == 0
    for path in (config.keys / "proofs", config.proof_key.parent):
        path.mkdir(exist_ok=True)
    with monkeypatch.context() as patched:
        of_the_pair = act == "config-bundle"  # until its last step the bundle of before is in force
        sync = files.sync_folder
        patched.setattr(
            files, "sync_folder", lambda path: sync(path) if of_the_pair and path != config.store else failing()
        )
        shaken = run(*words(image, old.id))
    assert shaken.status != 0, shaken
    assert "cannot retire" not in shaken.err
    told = [(each["act"], each["result"]) for each in records(config)]
    assert told == [(act, "done-in-part"), ("key-rotate", "done")]
    if act == "key-proofs-rotate":
        assert [records(config)[0]["after"]["key"]] == [
            each.id for each in proofkey.public_keys(config.keys / "proofs")
        ]


def test_what_is_done_in_a_folder_of_no_configuration_is_said_to_be_in_no_audit(config: Config, run: Run) -> None:
    image = add_image(config)
    os.chdir("/")
    word = "it is done, and in no audit: no configuration here has this folder\n"
    assert run("image", "rm", image, "--store", config.store) == (
        0,
        f"removed image {image[:12]}; `netboot image gc` frees its blobs\n",
        word,
    )
    assert run("key", "rotate", "--keys", config.keys).err == word
    assert records(config) == []


def join(config: Config) -> None:
    """Machines join a cluster at this site."""
    path = config.data.parent / "netboot.yaml"
    path.write_text(path.read_text() + 'join:\n  listen: "127.0.0.1:1"\n  url: https://127.0.0.1:1\n')


@pytest.mark.parametrize("group", ["sealing", "nonces"])
def test_which_keys_seal_and_open_before_and_after_each_step_is_written_down(
    config: Config, run: Run, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    join(config)
    secrets, made = config.data.parent / "secrets", sealing.new_key

    def alone() -> SealingKey:
        descriptor = os.open(secrets, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        return made()

    monkeypatch.setattr("netboot.cli.sealing.new_key", alone)
    steps = ((), (), ("--promote",), ("--retire",), ("--retire",))
    old, new = [run("key", group, "rotate", *step, "-o", "json").json for step in steps][1]["keys"]
    one, two = {"seals": old["id"], "opens": [old["id"]]}, {"seals": old["id"], "opens": [old["id"], new["id"]]}
    promoted, left = {"seals": new["id"], "opens": [new["id"], old["id"]]}, {"seals": new["id"], "opens": [new["id"]]}
    assert [what(each) for each in reversed(records(config))] == [
        (f"key-{group}-rotate", {}, None, one, "done"),
        (f"key-{group}-rotate", {}, one, two, "done"),
        (f"key-{group}-promote", {}, two, promoted, "done"),
        (f"key-{group}-retire", {"retired": [old["id"]]}, promoted, left, "done"),
        (f"key-{group}-retire", {"retired": []}, left, left, "unchanged"),
    ]


def test_keys_that_are_made_are_written_down_with_those_before(config: Config, run: Run) -> None:
    (config.keys / "active").unlink()
    signs = {"key": run("key", "create", "-o", "json").json["id"], "state": "signs"}
    proofs = [{"key": run("key", "proofs", "rotate", "-o", "json").json["id"], "state": "signs"} for _ in range(2)]
    assert [what(each) for each in reversed(records(config))] == [
        ("key-create", {"key": signs["key"]}, None, signs, "done"),
        ("key-proofs-rotate", {"key": proofs[0]["key"]}, None, proofs[0], "done"),
        ("key-proofs-rotate", {"key": proofs[1]["key"]}, *proofs, "done"),
    ]


def test_a_bundle_that_was_signed_elsewhere_is_written_down(config: Config, run: Run) -> None:
    (key,) = config.keys.glob("*.key")
    away = key.rename(config.data / key.name)
    assert run("config", "bundle").status == 1
    away.rename(key)
    assert run("config", "bundle", "--sign", "test-bundle.json").status == 0
    for result in ("done", "unchanged"):
        assert run("config", "bundle", "--signature", "test-bundle.sig").status == 0
        assert (records(config)[0]["act"], records(config)[0]["result"]) == ("config-bundle", result)


def test_an_audit_that_cannot_be_looked_at_is_said(config: Config, run: Run) -> None:
    (config.data / "audit.db").unlink()
    config.data.rmdir()
    config.data.write_text("")
    why = f"{config.data}/audit.db cannot be looked at: Not a directory"
    assert run("key", "rotate").err == f"it is done, and in no audit: {why}\n"


def test_who_it_was_before_sudo_is_root_s_to_say(config: Config, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    for account in (0, 4242):
        monkeypatch.setattr("os.geteuid", lambda account=account: account)
        assert run("key", "proofs", "rotate").status == 0
    assert [each["who"] for each in reversed(records(config))] == ["root@host (sudo by alice)", "4242@host"]


def test_a_dry_run_of_keys_is_refused_where_they_cannot_be_written(config: Config, run: Run) -> None:
    (old,) = KeyRing(config.keys).infos()
    assert run("key", "rotate").status == 0
    with closed(config.keys, 0o555):
        said = [run("key", *words, "--dry-run") for words in (("rotate",), ("retire", old.id, "--force"))]
    why = f"cannot write to {config.keys}: Permission denied; use the account that owns it"
    assert [(each.status != 0, each.out, why in each.err) for each in said] == [(True, "", True)] * 2
