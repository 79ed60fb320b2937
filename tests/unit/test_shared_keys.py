"""The keys that replicas share: which change of a Secret is taken, what is done where nobody can tell, and who is
waited for before a key seals or goes."""

import base64
import errno
import os
import socket
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from images.errors import StoreError
from images.values import files
from images.values.strict import FaultsError
from netboot.cli import keys_secret
from netboot.cli.check import check_site
from netboot.config import load_config
from netboot.config_outside import BOOT_IDS, NONCES, SEALING
from netboot.confine.access import access_of
from netboot.controllers.shared_keys import AGAIN_SECONDS, TELL_SECONDS, SharedKeysController
from netboot.kube.manifests import keys_text
from netboot.lifecycle.shared_keys import Ids, InUse, SeenSecret, not_learnt, still_needed, unbelieved
from netboot.status import BOOT_ID, BOOT_ID_VARIABLE
from netboot.stores import audit
from netboot.stores.bootkey import mark_of
from netboot.stores.sealing import NONCES as NONCE_KEYS
from netboot.stores.sealing import SEALING as SEALING_KEYS
from netboot.stores.sealing import read_keys, text_of
from netboot.stores.shared_keys import RECORD, KeptKeys, SharedKeysError, boot, contents
from tests.commands import Run
from tests.shared_keys_contract import FakeSecret
from tests.sockets.join_site import make_join_site
from tokens.sealed import Keyset, SealingKey

WHERE = "netboot/netboot-keys"
ALL = (SEALING, NONCES, BOOT_IDS)
BOOT = b"b" * 32
AWAY = "the apiserver does not answer: connection refused"


def key(letter: str) -> SealingKey:
    return SealingKey(letter.encode() * 32)


def name(letter: str) -> str:
    return key(letter).id.hex()


def keyset(letters: str) -> bytes:
    return text_of(Keyset(tuple(map(key, letters))), SEALING_KEYS)


def secret(letters: str = "k", *, uid: str = "one", retired: str = "", **more: bytes | None) -> SeenSecret:
    """With these sealing keys. `more`: other content of a part (`boot`, `nonces`); None: it is not there."""
    nonces = more.get("nonces", text_of(Keyset((key("n"),)), NONCE_KEYS))
    parts = {SEALING: keyset(letters), NONCES: nonces, BOOT_IDS: more.get("boot", BOOT)}
    data = {part: base64.b64encode(content).decode() for part, content in parts.items() if content is not None}
    gone = frozenset(map(name, retired))
    return SeenSecret(uid=uid, version=f"{uid}{letters}{retired}", data=data, retired=gone)


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now_ms(self) -> int:
        return round(1_700_000_000_000 + self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    def up_ms(self) -> int:
        return round(self.seconds * 1000)


class Bench:
    """A replica's folder, and who keeps its keys; nobody follows by himself."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock, self.api, self.boot = folder, Clock(), FakeSecret(), "first"
        folder.mkdir(mode=0o700)
        self.start()

    def start(self) -> None:
        kept = KeptKeys(self.folder, self.clock.up_ms, lambda: self.boot)
        connect = lambda: self.api  # noqa: E731 - a name for one line
        self.controller = SharedKeysController("a", WHERE, ALL, connect, kept, self.clock, self.clock.monotonic)
        self.controller._reflector.problem = None

    def sees(self, seen: SeenSecret | None, seconds: float = AGAIN_SECONDS) -> str:
        """What is said after this was seen, and so many seconds."""
        self.clock.seconds += seconds
        self.controller.take(seen)
        self.controller.step()
        return self.controller.status().message

    def opens(self) -> str:
        keys = {name(letter): letter for letter in "abck"}
        return "".join(keys[each.id.hex()] for each in parsed(self.folder / SEALING))


def parsed(path: Path) -> Any:
    return read_keys(path).keys


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "shared-keys")


IN_ORDER = f"as the Secret {WHERE} has them"


def lacks(part: str, id_: str, does: str, folder: Path) -> str:
    return (
        f"the Secret {WHERE}: its {part} lacks {id_}, which {does} here, and does not say that it is to go: to put "
        "back what it had, delete it, then `netboot cluster keys push --in-use` here; or stop the service, remove what "
        f"is in {folder} and start it, and it takes what the Secret has; in use is what there was at "
        "2023-11-14T22:30:05Z"
    )


def test_a_rotation_is_taken_step_by_step_and_told(bench: Bench) -> None:
    for letters, retired in (("k", ""), ("ka", ""), ("ak", ""), ("a", "k"), ("ab", "k")):
        assert bench.sees(secret(letters, retired=retired)) == IN_ORDER
        assert bench.opens() == letters
    assert [said.sealing for _, said in bench.api.told] == [
        tuple(map(name, letters)) for letters in ("k", "ka", "ak", "a", "ab")
    ]
    replica, said = bench.api.told[-1]
    assert (replica, said.boot_ids, said.nonces) == ("a", mark_of(BOOT), (name("n"),))
    assert said.sealing_for_seconds == 10, "of the key that seals, since it does"
    modes = {path.name: path.stat().st_mode & 0o777 for path in bench.folder.iterdir()}
    assert modes == {each: 0o600 for each in (*ALL, RECORD)}  # noqa: C420 - in octal


def test_one_that_was_away_for_a_whole_rotation_takes_it_where_the_secret_says_what_went(bench: Bench) -> None:
    bench.sees(secret("k"))
    assert bench.sees(secret("a")) == lacks(SEALING, name("k"), "seals", bench.folder)
    assert bench.opens() == "k"
    assert bench.sees(secret("a", retired="k")) == IN_ORDER
    assert bench.opens() == "a"


@pytest.mark.parametrize("uid", ["one", "two"])
def test_a_retired_key_that_seals_again_is_not_believed(bench: Bench, uid: str) -> None:
    for letters, retired in (("k", ""), ("ka", ""), ("ak", ""), ("a", "k")):
        bench.sees(secret(letters, retired=retired))
    bench.start()
    said = bench.sees(secret("ka", uid=uid))
    assert said.startswith(f"the Secret {WHERE}: in its sealing.keys seals {name('k')} again, which was retired: ")
    assert bench.opens() == "a"
    assert bench.sees(secret("ab", uid=uid)) == IN_ORDER
    assert f"seals {name('k')} again, which was retired" in bench.sees(secret("kab", uid=uid)), "that one forgot it"


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (secret("a", uid="two", retired="k"), (SEALING, name("k"), "seals")),
        (secret("k", uid="two", boot=b"c" * 32), (BOOT_IDS, mark_of(BOOT), "is in use")),
        (secret("k", boot=b"c" * 32), (BOOT_IDS, mark_of(BOOT), "is in use")),
    ],
)
def test_another_secret_is_believed_no_more_than_that_it_has_the_keys(
    bench: Bench, seen: SeenSecret, words: tuple[str, str, str]
) -> None:
    bench.sees(secret("k"))
    assert bench.sees(seen) == lacks(*words, bench.folder)
    assert bench.sees(secret("ka", uid="three")) == IN_ORDER, "it has what is in use, so who made it has the keys"
    assert bench.opens() == "ka"


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (secret("k", nonces=None), f"the Secret {WHERE} has no nonce.keys: "),
        (
            secret("k", nonces=b"no key\n"),
            f"nonce.keys of the Secret {WHERE}:1: not a sealing key (32 bytes in base64): ",
        ),
        (secret("k", nonces=b"# none\n"), f"the nonce keys nonce.keys of the Secret {WHERE} hold no key: "),
        (secret("kk"), f"the sealing keys sealing.keys of the Secret {WHERE} hold a key twice: "),
        (secret("k", boot=b"short"), f"boot-id.key of the Secret {WHERE} is not a boot-id key (32 bytes): "),
        (
            SeenSecret("one", "9", {BOOT_IDS: "!", SEALING: "", NONCES: ""}),
            f"boot-id.key of the Secret {WHERE} is no base",
        ),
    ],
)
def test_one_part_that_cannot_be_used_leaves_all_as_it_was(bench: Bench, seen: SeenSecret, words: str) -> None:
    none = bench.sees(seen)
    assert words in none
    assert none.endswith("; there are no keys yet, and none are made up: nothing boots here")
    assert list(bench.folder.iterdir()) == []
    bench.sees(secret("a"))
    said = bench.sees(seen)
    assert words in said
    assert said.endswith("; in use is what there was at 2023-11-14T22:30:10Z")
    assert bench.opens() == "a"


def test_what_was_kept_counts_over_restarts_and_what_is_not_believed_still_is_not(bench: Bench) -> None:
    bench.sees(secret("k"))
    bench.clock.seconds += 100
    bench.start()
    status = bench.controller.status()
    words = "which keys are in use here has not been said since the start; in use is what there was at "
    assert (status.ok, status.message, status.age_seconds) == (False, f"{words}2023-11-14T22:30:05Z", 100.0)
    assert bench.sees(None) == IN_ORDER
    bench.start()
    assert bench.sees(secret("a", uid="two")) == lacks(SEALING, name("k"), "seals", bench.folder)
    assert bench.opens() == "k"
    assert bench.sees(secret("a", retired="k")) == IN_ORDER


def test_a_file_that_was_taken_away_is_written_again_and_one_that_was_damaged_is_said(bench: Bench) -> None:
    bench.sees(secret("k"))
    (bench.folder / SEALING).unlink()
    assert bench.sees(None) == IN_ORDER
    assert bench.opens() == "k"
    (bench.folder / SEALING).write_bytes(b"damaged\n")
    bench.start()
    words = "what is in use cannot be told, and nothing is changed until it can: "
    assert bench.sees(secret("ka")) == (
        f"{words}sealing.keys of {bench.folder}:1: not a sealing key (32 bytes in base64): remove that line, or put "
        "the file of another replica or of a backup in its place"
    )
    assert (bench.folder / SEALING).read_bytes() == b"damaged\n"
    told = len(bench.api.told)
    bench.sees(None, TELL_SECONDS)
    assert len(bench.api.told) == told, "nobody knows what is in use"
    (bench.folder / SEALING).write_bytes(keyset("k"))
    assert bench.sees(None) == IN_ORDER, "once it was repaired it needs no restart"
    assert bench.opens() == "ka"


def test_a_disk_that_took_one_file_of_two_is_read_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.sees(secret("ka"))
    write = files.write

    def one(path: Path, *given: Any, **more: Any) -> None:
        if path.name != SEALING:
            raise files.refused(f"cannot write {path}", OSError(errno.ENOSPC, "No space left on device"))
        write(path, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", one)
        bench.sees(secret("ak"))
    assert bench.api.told[-1][1].sealing == (name("a"), name("k")), "as it is on the disk, and so in use"
    assert bench.sees(secret("ka")) == IN_ORDER
    assert bench.opens() == "ka", "it is not taken for what is there already"


def test_a_disk_that_left_half_a_file_is_said_and_nothing_is_told_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.sees(secret("k"))

    def half(path: Path, *_: Any, **__: Any) -> None:
        path.write_bytes(b"half\n")
        raise files.refused(f"cannot write {path}", OSError(errno.EIO, "Input/output error"))

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", half)
        assert bench.sees(secret("ka")).startswith(
            "what is in use cannot be told, and nothing is changed until it can: "
        )
        bench.sees(None, TELL_SECONDS)
    assert len(bench.api.told) == 1
    (bench.folder / SEALING).write_bytes(keyset("k"))
    assert bench.sees(None) == IN_ORDER
    assert bench.opens() == "ka"


def test_after_a_write_that_failed_nothing_is_known_of_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, made = KeptKeys(tmp_path), {SEALING: keyset("k"), BOOT_IDS: BOOT}
    kept.write(made)
    assert kept.stands(made)

    def full(*_: Any, **__: Any) -> None:
        raise files.refused(f"cannot write {tmp_path}", OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(files, "write", full)
    with pytest.raises(StoreError):
        kept.write(made)
    assert not kept.stands(made)


def test_a_disk_that_takes_nothing_is_said_and_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.sees(secret("k"))

    def full(*_: Any, **__: Any) -> None:
        raise files.refused(f"cannot write {bench.folder}", OSError(errno.ENOSPC, "No space left on device"))

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", full)
        assert bench.sees(secret("ka")).startswith(f"cannot write {bench.folder}: No space left on device")
        assert [said.sealing for _, said in bench.api.told] == [(name("k"),)], "what is not on the disk is not told"
    assert bench.sees(None) == IN_ORDER
    assert bench.opens() == "ka"


def test_who_cannot_tell_what_he_has_says_so_and_says_it_again(bench: Bench) -> None:
    bench.api.away = AWAY
    said = bench.sees(secret("k"))
    assert said.startswith(f"which keys are in use here cannot be said, so that none can be rotated: {AWAY}; in use is")
    bench.api.away = ""
    assert bench.sees(None) == IN_ORDER
    assert len(bench.api.told) == 1
    bench.sees(None)
    assert len(bench.api.told) == 1, "it is not said in each round"
    bench.sees(None, TELL_SECONDS)
    assert len(bench.api.told) == 2


def test_a_disk_that_hangs_is_said(bench: Bench) -> None:
    bench.sees(secret("k"))
    bench.clock.seconds += 61
    status = bench.controller.status()
    words = "keys have not been written down for 61 s: the disk hangs, or who is told which are in use"
    assert (status.ok, status.message) == (False, f"{words}; in use is what there was at 2023-11-14T22:30:05Z")


def test_a_backup_has_the_keys_in_use_and_a_restored_replica_begins_with_them(tmp_path: Path, run: Run) -> None:
    file = shared_site(tmp_path / "site")
    folder, archive, other = (
        tmp_path / "site" / "shared-keys",
        tmp_path / "b.tar.gz",
        tmp_path / "other" / "netboot.yaml",
    )
    folder.mkdir(mode=0o700)
    KeptKeys(folder).write({SEALING: keyset("ka"), NONCES: keyset("n"), BOOT_IDS: b"s" * 32})
    assert run("backup", archive, "--config", file).status == 0
    restored = run("restore", archive, "--config", other)
    assert (restored.status, load_config(other).boot_id_key) == (0, other.parent / "shared-keys" / BOOT_IDS)
    assert KeptKeys(other.parent / "shared-keys").read() == KeptKeys(folder).read()
    modes = [
        path.stat().st_mode & 0o777 for path in (other.parent / "shared-keys", other.parent / "shared-keys" / SEALING)
    ]
    assert modes == [0o700, 0o600]


def test_a_machine_that_was_restarted_counts_anew_for_how_long_a_key_has_sealed(bench: Bench) -> None:
    bench.sees(secret("k"))
    bench.sees(None, 500)
    assert bench.api.told[-1][1].sealing_for_seconds == 500
    bench.start()
    bench.sees(None, 10)
    assert bench.api.told[-1][1].sealing_for_seconds == 510, "the machine is the same, and up since"
    bench.boot, bench.clock.seconds = "second", bench.clock.seconds + 9_000
    bench.start()
    bench.sees(None, 10)
    assert bench.api.told[-1][1].sealing_for_seconds == 10, "also where this one, or another host, is up for longer"


def test_a_start_of_the_kernel_that_cannot_be_read_is_like_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert boot() == boot() == BOOT_ID.read_text().strip().replace("-", "")
    monkeypatch.setattr("netboot.stores.shared_keys.BOOT_ID", tmp_path / "none")
    monkeypatch.delenv(BOOT_ID_VARIABLE, raising=False)
    assert boot() != boot()


UUID = "2f0e9c1a-5b7d-4e3f-8a6b-0c1d2e3f4a5b"


@pytest.mark.parametrize("said", [UUID, UUID.replace("-", ""), f"{UUID}\n"])
def test_a_start_of_the_kernel_that_is_hidden_is_the_one_that_the_service_manager_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    file = tmp_path / "boot_id"
    monkeypatch.setattr("netboot.stores.shared_keys.BOOT_ID", file)
    monkeypatch.setenv(BOOT_ID_VARIABLE, said)
    hidden = boot()
    monkeypatch.setenv(BOOT_ID_VARIABLE, "f" * 32)
    file.write_text(f"{UUID}\n")
    assert (hidden, boot()) == ("2f0e9c1a5b7d4e3f8a6b0c1d2e3f4a5b",) * 2, "the kernel has the last word"


@pytest.mark.parametrize("said", ["", "%b", UUID[:-1], UUID + "0", UUID.upper(), UUID.replace("-", " "), "١" * 32])
def test_what_the_service_manager_says_that_is_no_boot_id_is_like_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr("netboot.stores.shared_keys.BOOT_ID", tmp_path / "none")
    monkeypatch.setenv(BOOT_ID_VARIABLE, said)
    assert said != boot() != boot()


letters = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)


@given(before=letters, now=letters, retired=st.sets(st.sampled_from("abcdef")))
def test_what_seals_here_goes_only_where_the_secret_says_so(
    before: list[str], now: list[str], retired: set[str]
) -> None:
    why = unbelieved(Ids({SEALING: tuple(before)}), Ids({SEALING: tuple(now)}), frozenset(retired))
    assert (why == "") == (before[0] in now or before[0] in retired)


def test_a_part_that_is_not_there_was_not_retired_whatever_is_said_of_its_keys() -> None:
    why = unbelieved(Ids({SEALING: ("a",)}), Ids({}), frozenset("a"))
    assert why == "it has no sealing.keys, and the sealing keys of before are in use"


def said(sealing: str, seconds: int = 0) -> InUse:
    return InUse(at="2026-11-28T22:00:00Z", sealing=tuple(sealing), sealing_for_seconds=seconds)


def test_who_is_waited_for_before_a_key_seals_or_goes() -> None:
    replicas = {"c": said("ab", 900), "a": said("ba", 179), "b": said("ba", 180), "d": InUse(at="")}
    assert not_learnt(replicas, SEALING, "b") == ["d does not have b yet"]
    assert still_needed(replicas, SEALING, "b") == [
        "a has sealed with b for 179 s of 180: what it sealed before is still under way",
        "c does not seal with b yet",
        "d does not seal with b yet",
    ]


def test_the_secret_s_own_names_are_read_and_no_others() -> None:
    with pytest.raises(SharedKeysError, match=r"the Secret x has no boot-id\.key: delete the Secret, and "):
        contents({"boot-id": ""}, (BOOT_IDS,), "the Secret x")
    assert contents({"other": "!"}, (), "the Secret x") == {}


def test_manifests_are_of_the_namespace_and_the_secret() -> None:
    text = keys_text("site-a", "site-keys")
    assert "namespace: netboot" not in text
    assert "    resourceNames: [site-keys]\n" in text
    assert "    resourceNames: [site-keys-in-use]\n" in text
    assert "  name: site-keys-in-use\n  namespace: site-a\n" in text


def shared_site(folder: Path) -> Path:
    make_join_site(folder)
    file = folder / "netboot.yaml"
    file.write_text(file.read_text() + "keys_kubernetes: {}\n")
    (folder / "data" / "boot-id.key").write_bytes(BOOT)
    return file


def test_with_the_key_the_secret_s_files_are_those_in_use_and_the_site_s_own_are_pushed(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shared_site(tmp_path / "site")
    config, own = load_config(file), load_config(file, shared=False)
    assert config.join is not None
    assert own.join is not None
    folder = tmp_path / "site" / "shared-keys"
    assert (config.boot_id_key, config.join.sealing_keys) == (folder / BOOT_IDS, folder / SEALING)
    assert (own.boot_id_key, own.join.nonce_keys) == (None, tmp_path / "site" / "secrets" / "nonce.keys")
    kept = run("cluster", "keys", "push", "--config", file)
    words = "it holds keys, for a pipe alone, no terminal and no file: pipe it, or give --admin-kubeconfig\n"
    assert (kept.status, kept.out, kept.err.endswith(words)) == (2, "", True)
    monkeypatch.setattr(keys_secret, "piped", lambda: True)
    audit.make(own.data / "audit.db").close()
    pushed = run("cluster", "keys", "push", "--config", file)
    assert (pushed.status, pushed.err) == (0, "")
    written = audit.SqliteAudit(own.data / "audit.db").records(None, None, 50)
    printed = {"secret": f"the Secret {WHERE}", "printed": True}
    assert [(each.act, each.facts) for _, each in written] == [("cluster-keys-push", printed)]
    document = yaml.safe_load(pushed.out)
    assert (document["kind"], document["metadata"]["name"], sorted(document["data"])) == (
        "Secret",
        "netboot-keys",
        sorted(ALL),
    )
    assert base64.b64decode(document["data"][BOOT_IDS]) == BOOT
    refused = run("key", "sealing", "rotate", "--config", file)
    words = (
        "Error: the sealing keys of this site are those of a Secret (keys_kubernetes): `netboot cluster keys rotate "
        "sealing` changes them for all replicas\n"
    )
    assert (refused.status, refused.err) == (1, words)
    faults = [str(fault) for fault in check_site(file).faults]
    assert not [fault for fault in faults if any(f"shared-keys/{part}" in fault for part in ALL)]
    kubeconfig = tmp_path / "site" / "secrets" / "keys.kubeconfig"
    words = (
        f"{kubeconfig}: keys_kubernetes.kubeconfig: {kubeconfig} cannot be read (No such file or directory): make it "
        "with `netboot cluster kubeconfigs --keys`"
    )
    assert [fault for fault in faults if "keys_kubernetes" in fault] == [words]


def test_of_a_site_whose_service_never_ran_the_key_of_boot_ids_is_made_of_whom_the_folder_is(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shared_site(tmp_path / "site")
    data = tmp_path / "site" / "data"
    (data / "boot-id.key").unlink()
    audit.make(data / "audit.db").close()
    if os.geteuid() == 0:
        os.chown(data, 65534, 65534)
    monkeypatch.setattr(keys_secret, "piped", lambda: True)
    pushed = [run("cluster", "keys", "push", "--config", file) for _ in range(2)]
    assert [each.status for each in pushed] == [0, 0]
    keys = [base64.b64decode(yaml.safe_load(each.out)["data"][BOOT_IDS]) for each in pushed]
    assert keys == [(data / "boot-id.key").read_bytes()] * 2
    status = (data / "boot-id.key").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (data.stat().st_uid, 0o600)


@pytest.mark.parametrize("kind", ["file", "device", "pipe", "socket"])
def test_what_is_printed_goes_to_a_pipe_or_a_socket_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as opened:
        if kind == "pipe":
            there, out = os.pipe()
            opened.callback(os.close, there)
        elif kind == "socket":
            ours, theirs = socket.socketpair()
            opened.enter_context(ours)
            out = theirs.detach()
        else:
            out = os.open("/dev/null" if kind == "device" else tmp_path / "kept", os.O_WRONLY | os.O_CREAT)
        monkeypatch.setattr("sys.stdout", opened.enter_context(os.fdopen(out, "w")))
        assert keys_secret.piped() == (kind in ("pipe", "socket"))


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("secrets", "holds proof_key ({0}/secrets/proof.key)"),
        ("tls", "holds join.certificate ({0}/tls/join.crt)"),
        (".", "holds data ({0}/data)"),
        ("data", "holds data ({0}/data)"),
        ("keys/shared", "lies in keys ({0}/keys)"),
        ("x/../store/site", "lies in store ({0}/store)"),
    ],
)
def test_the_folder_of_shared_keys_is_for_nothing_else(tmp_path: Path, folder: str, words: str) -> None:
    file = shared_site(tmp_path)
    file.write_text(file.read_text().replace("keys_kubernetes: {}", f"keys_kubernetes: {{folder: {folder}}}"))
    with pytest.raises(FaultsError) as refused:
        load_config(file)
    said = [str(fault) for fault in refused.value.faults]
    ours = Path(os.path.normpath(tmp_path / folder))
    told = f"{ours} {words.format(tmp_path)}: give it a folder of its own, beside `data`"
    assert f"{file}: keys_kubernetes.folder: {told}" in said


def test_the_process_that_counts_by_the_kernel_s_boot_id_may_read_it(tmp_path: Path) -> None:
    config = load_config(shared_site(tmp_path))
    kinds = [kind for kind in ("boot", "join", "keys") if BOOT_ID in access_of(kind, kind, "", config).read]
    assert kinds == ["keys"]
