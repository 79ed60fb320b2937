"""Every file that is read again when it changes keeps one contract, whoever reads it."""

import asyncio
import base64
import datetime
import errno
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from images.artifact.keyring import KeyRing
from images.artifact.signing import SigningKey
from images.errors import SignatureError
from images.store.store import Store
from netboot import reread
from netboot.boot.live import Live
from netboot.boot.scripts import Catalogue
from netboot.lifecycle.errors import NotAuthenticatedError, NoTokensError, NotReadyError, StateUnavailableError
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.live import LiveView
from netboot.stores.sealing import sealing_keys
from netboot.web import tokens
from netboot.web.tls import Certificate
from tests.sockets.boot_server import snapshot

GOOD = 3
"""Contents that can be used and told apart, all of one size."""


class Reader(ABC):
    """Somebody who reads `path`; `contents` are what may be in it."""

    unusable: type[Exception]
    keeps = True
    """Whether what was read before stays in force without its file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "file"
        self.contents: list[bytes] = []

    @abstractmethod
    def value(self) -> Any:
        """What is in force: the number of a content; the reader's error where nothing is."""

    @abstractmethod
    def problem(self) -> str | None:
        """What is wrong with the file."""


class Tokens(Reader):
    unusable, keeps = NoTokensError, False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tokens = [f"token-number-{number:06}" for number in range(GOOD)]
        self.contents = [f"{token}\n".encode() for token in self.tokens]
        self.reader = tokens.Tokens(self.path, self.path.with_name("none"), lambda: 0)

    def value(self) -> Any:
        for number, token in enumerate(self.tokens):
            try:
                self.reader.operator(f"Bearer {token}")
            except NotAuthenticatedError:
                continue
            return number
        return None

    def problem(self) -> str | None:
        if self.path.is_file():
            self.path.chmod(0o600)
        return self.reader.problem()


class Sealing(Reader):
    unusable = StateUnavailableError

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.contents = [base64.b64encode(bytes([number]) * 32) for number in range(GOOD)]
        self.reader = sealing_keys(self.path)

    def value(self) -> Any:
        if self.path.is_file():
            self.path.chmod(0o600)
        [key] = self.reader.current().keys
        return key.material[0]

    def problem(self) -> str | None:
        return self.reader.problem


class Tls(Reader):
    unusable = StateUnavailableError

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        key = Ed25519PrivateKey.generate()
        (folder / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.contents = [_certificate(key, number) for number in range(GOOD)]
        self.reader = Certificate(self.path, folder / "key")
        self.known: dict[Any, int] = {}

    def value(self) -> Any:
        context = self.reader.context()
        if context not in self.known:
            self.known[context] = self.contents.index(self.path.read_bytes())
        return self.known[context]

    def problem(self) -> str | None:
        return self.reader.problem


def _certificate(key: Ed25519PrivateKey, number: int) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"join-{number}")])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1000 + number).not_valid_before(begin)
    return builder.not_valid_after(begin + datetime.timedelta(days=9)).sign(key, None).public_bytes(Encoding.PEM)


class Snapshots(Reader):
    unusable = NotReadyError

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        published = [snapshot(80).model_copy(update={"published_ms": 1_000 + number}) for number in range(GOOD)]
        self.contents = [each.model_dump_json(by_alias=True).encode() for each in published]
        self.reader = LiveView(self.path)

    def value(self) -> Any:
        return self.reader.view().snapshot.published_ms - 1_000

    def problem(self) -> str | None:
        return self.reader.problem


class BootServers(Snapshots):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.live = Live(self.path, partial(Catalogue, retry=(1, 2)))

    def value(self) -> Any:
        asyncio.run(self.live.refresh())
        if self.live.catalogue is None:
            raise NotReadyError(self.live.problem)
        return self.live.catalogue.snapshot.published_ms - 1_000

    def problem(self) -> str | None:
        return self.live.problem


class PublicKeys(Reader):
    """One key, and the same under comments of one length."""

    unusable = SignatureError

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        key = SigningKey.generate().public
        ring = KeyRing(folder / "keys")
        ring.folder.mkdir()
        self.path = ring.folder / f"{key.id}.pub"
        comment, rest = key.to_bytes().split(b"\n", 1)
        self.contents = [comment + str(number).encode() + b"\n" + rest for number in range(GOOD)]
        self.reads = 0
        trusted = ring.trusted

        def counted() -> Any:
            self.reads += 1
            return trusted()

        ring.trusted = counted  # type: ignore[method-assign]
        self.reader = StoreImageRepository(Store(folder / "store"), ring)._keys
        self.of: tuple[int, int] = (0, -1)

    def value(self) -> Any:
        assert len(self.reader.current()) == 1
        if self.of[0] != self.reads and self.reader.problem is None:
            self.of = (self.reads, self.contents.index(self.path.read_bytes()))
        return self.of[1]

    def problem(self) -> str | None:
        return self.reader.problem


@pytest.fixture(params=[Tokens, Sealing, Tls, Snapshots, BootServers, PublicKeys])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    made: Reader = request.param(tmp_path)
    _replace(made.path, made.contents[0])
    return made


def _replace(path: Path, content: bytes) -> None:
    staged = path.with_name(f".{path.name}-new")
    staged.write_bytes(content)
    if path.is_dir():
        path.rmdir()
    staged.replace(path)


def _gone(reader: Reader) -> None:
    reader.path.unlink()
    if isinstance(reader, PublicKeys):  # without its file a key is trusted no longer; what cannot be told is the folder
        reader.path.symlink_to("nowhere")


def _empty(reader: Reader) -> None:
    reader.path.write_bytes(b"")


def _torn(reader: Reader) -> None:
    reader.path.write_bytes(reader.contents[1][: len(reader.contents[1]) // 2])


def _unreadable(reader: Reader) -> None:
    reader.path.unlink()
    reader.path.mkdir()


DAMAGES = [_gone, _empty, _torn, _unreadable]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_used_leaves_the_old_one_in_force_until_it_is_mended(
    reader: Reader, damage: Callable[[Reader], None], caplog: pytest.LogCaptureFixture
) -> None:
    assert (reader.value(), reader.problem()) == (0, None)
    damage(reader)
    for _ in range(3):
        if reader.keeps:
            assert reader.value() == 0
        else:
            with pytest.raises(reader.unusable):
                reader.value()
        assert reader.problem() is not None
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1
    _replace(reader.path, reader.contents[2])
    assert (reader.value(), reader.problem()) == (2, None)


@pytest.mark.parametrize("damage", DAMAGES[1:])
def test_what_never_could_be_used_is_said_and_noticed_when_it_can(
    reader: Reader, damage: Callable[[Reader], None]
) -> None:
    damage(reader)
    for _ in range(3):
        with pytest.raises(reader.unusable):
            reader.value()
    assert reader.problem() is not None
    _replace(reader.path, reader.contents[1])
    assert (reader.value(), reader.problem()) == (1, None)


def test_a_public_key_that_is_taken_away_is_trusted_no_longer(tmp_path: Path) -> None:
    keys = PublicKeys(tmp_path)
    _replace(keys.path, keys.contents[0])
    assert len(keys.reader.current()) == 1
    keys.path.unlink()
    assert (keys.reader.current(), keys.problem()) == ((), None)


def test_public_keys_whose_folder_cannot_be_listed_stay_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = PublicKeys(tmp_path)
    _replace(keys.path, keys.contents[0])
    assert len(keys.reader.current()) == 1

    def fails(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        for name in ("listdir", "scandir"):
            patched.setattr(os, name, fails)
        assert len(keys.reader.current()) == 1
        assert "Too many open files; the one before stays in force" in (keys.problem() or "")
    assert (len(keys.reader.current()), keys.problem()) == (1, None)


def test_replaced_in_the_same_second_with_the_same_size(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({len(content) for content in reader.contents}) == 1
    look = reread.look

    def coarse(path: Path) -> reread.Look:
        seen = look(path)
        return (seen[0], 0, 0, seen[3]) if seen is not None else None

    monkeypatch.setattr(reread, "look", coarse)
    assert reader.value() == 0
    _replace(reader.path, reader.contents[1])
    assert reader.value() == 1


class Scene:
    """A file on a file system whose clock stands still, with the reader's clock in our hands."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.seconds, self.fails, self.reads = path, 100.0, "", 0
        self.defect: Exception | None = None
        self.changed = 100.0
        monkeypatch.setattr(reread, "look", lambda _path: (1, 1, int(self.changed * 1e9), 1))
        path.write_text("one")
        self.file = reread.Reread(
            "file", lambda: (path,), self.read, OSError, monotonic=lambda: self.seconds, now=lambda: self.seconds
        )

    def read(self) -> str:
        self.reads += 1
        if self.defect:
            raise self.defect
        if self.fails:
            raise OSError(self.fails)
        return self.path.read_text()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path / "file", monkeypatch)


def test_a_write_within_the_grain_of_the_file_system_s_clock_is_seen_with_the_next_grain(scene: Scene) -> None:
    assert scene.file.current() == "one"
    scene.path.write_text("two")
    scene.seconds += reread.GRAIN_SECONDS
    assert scene.file.current() == "two"
    scene.seconds += 3_600
    assert (scene.file.current(), scene.reads) == ("two", 2)


def test_a_disk_that_failed_is_asked_again_though_the_file_looks_the_same(scene: Scene) -> None:
    scene.changed = 0.0
    scene.fails = "Input/output error"
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output error"):
            scene.file.current()
    assert (scene.reads, scene.file.problem) == (1, "Input/output error")
    scene.fails = ""
    scene.seconds += reread.AGAIN_SECONDS
    assert (scene.file.current(), scene.file.problem, scene.reads) == ("one", None, 2)


def test_an_error_that_is_raised_a_thousand_times_grows_no_traceback(scene: Scene) -> None:
    scene.fails = "no"
    depths = []
    for _ in range(1_000):
        with pytest.raises(OSError, match="no") as error:
            scene.file.strict()
        depths.append(len(error.traceback))
    assert max(depths) == depths[0]


def test_who_may_read_it_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    before = reread.look(path)
    path.chmod(0o600)
    assert reread.look(path) != before


def test_a_defect_while_reading_never_leaves_the_old_one_in_force_unsaid(scene: Scene) -> None:
    scene.seconds = 300.0
    assert scene.file.current() == "one"
    scene.changed = 200.0
    scene.defect = ZeroDivisionError("a reader that has a defect")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            scene.file.current()
    scene.defect = None
    scene.path.write_text("two")
    assert scene.file.current() == "two"


def test_what_was_taken_back_is_not_returned_when_another_thread_reads_meanwhile(scene: Scene) -> None:
    class Raced(reread.Reread[str]):
        def current(self) -> str:
            value = super().current()
            scene.fails = ""
            scene.path.write_text("two")
            assert self.refresh(), "another thread, in the wrong moment"
            return value

    file = Raced("file", lambda: (scene.path,), scene.read, OSError, monotonic=lambda: scene.seconds)
    assert file.strict() == "one"
    scene.fails, scene.changed = "No such file or directory", 200.0
    with pytest.raises(OSError, match="No such file or directory"):
        file.strict()
