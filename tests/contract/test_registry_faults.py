"""A registry that fails, by the command line: what is said, and that nothing is half-written anywhere."""

import base64
import datetime
import hashlib
import io
import ipaddress
import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from images.artifact.keyring import KeyRing
from images.artifact.signing import SigningKey
from images.registry.artifact import OCI_MANIFEST
from images.registry.retry import RetryPolicy
from images.store.store import Store
from lab.registry import Registry, Tls, registry
from netboot.config import Config
from tests.commands import Run, caller
from tests.processes import environment, wait_for
from tests.registries import IMPATIENT, Proxy, faulty, proxy, repository
from tests.sites import add_image, make_site

PASSWORD = "open-sesame-of-a-test"
HTPASSWD = "builder:$2b$04$abcdefghijklmnopqrstuur8xT6Erayvc20SN/yKmwfWIXh/4hTMW\n"
ABSENT = "Remedy: see that name and tag are right, and that the image was pushed there\n"
DENIED = "Remedy: log in with --username or --credentials: docs/registry.md\n"
DAMAGED = "Remedy: push or export the image there again, from a store where `netboot image verify` finds nothing\n"
UNREACHABLE = "Remedy: see that it runs and can be reached from here, then try again\n"
PATHS = {"incoming", "blobs", "images", "channels", "refs", "bundles", "site", "tmp", "lock"}


class Scene:
    """A site with one image, another with the same keys and an empty store, a registry behind a proxy."""

    def __init__(self, folder: Path, real: Registry, before: Proxy, run: Run) -> None:
        self.folder, self.real, self.before, self.call = folder, real, before, run
        self.site, self.other = make_site(folder / "site"), make_site(folder / "other")
        self.digest = add_image(self.site)
        self.place = f"{before.address}/site/images"

    @property
    def short(self) -> str:
        return self.digest[:12]

    @property
    def root(self) -> str:
        return Store(self.site.store).manifest(self.digest).artifacts.root.sha256

    def run(self, *arguments: str, at: Config | None = None) -> tuple[int, str, str]:
        """A command of the first site, or at another's store with the first one's keys."""
        store = (at or self.site).store
        done = self.call("image", *arguments, "--store", store, "--keys", self.site.keys)
        return done.status, done.out, done.err

    def push(self, tag: str = "stable") -> None:
        status, _, err = self.run("push", self.digest, f"{self.place}:{tag}")
        assert status == 0, err

    def pull(self, tag: str = "stable") -> tuple[int, str, str]:
        return self.run("pull", f"{self.place}:{tag}", at=self.other)

    def assert_nothing_came(self) -> None:
        """Not into the store, and nothing is left beside it."""
        store = Store(self.other.store)
        assert store.digests() == ()
        assert not (store.root / "blobs").exists() or list((store.root / "blobs").iterdir()) == []
        assert {one.name for one in store.root.iterdir()} <= PATHS
        assert not (store.root / "incoming").exists() or list((store.root / "incoming").iterdir()) == []


@pytest.fixture
def scene(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "no-docker"))
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    monkeypatch.setattr("netboot.cli.publish.retry", lambda: IMPATIENT)
    with faulty(tmp_path / "registry") as (real, before):
        yield Scene(tmp_path, real, before, caller(capsys))


def test_push_pull_and_promote(scene: Scene) -> None:
    status, out, _ = scene.run("push", "tiny", f"{scene.place}:candidate", "--output", "json")
    pushed = json.loads(out)
    assert status == 0
    assert pushed["tags"] == [scene.digest, "candidate"]
    assert pushed["sent"] == Store(scene.site.store).image(scene.digest).size

    digest = pushed["digest"]
    assert scene.run("promote", f"{scene.place}:candidate", f"{scene.place}:stable") == (
        0,
        f"{scene.place}:stable is image {scene.short} now\n",
        "",
    )
    key = KeyRing(scene.site.keys).trusted()[0].id
    said = f"image {scene.short} (tiny, amd64) is in the store: signed by key {key}, every byte verified"
    assert scene.run("pull", f"{scene.place}@{digest}", at=scene.other) == (0, f"{said}; 0.0 MiB fetched\n", "")
    assert Store(scene.other.store).digests() == (scene.digest,)


def test_promote_moves_a_tag_and_no_bytes(scene: Scene) -> None:
    scene.push("stable")
    newer = add_image(scene.site, salt="newer")
    scene.run("push", newer, f"{scene.place}:candidate")
    scene.before.asked.clear()
    assert scene.run("promote", newer, f"{scene.place}:stable") == (
        0,
        f"{scene.place}:stable is image {newer[:12]} now; it was {scene.short}\n",
        "",
    )
    assert [one for one in scene.before.asked if one[0] in {"POST", "PATCH"}] == []
    assert (
        scene.run("promote", newer, f"{scene.before.address}/production/images:stable")[0] == 3
    )  # not there by digest
    elsewhere = f"{scene.before.address}/production/images:stable"
    assert scene.run("promote", f"{scene.place}:stable", elsewhere) == (
        0,
        f"{elsewhere} is image {newer[:12]} now\n",
        "",
    )
    assert [one[1].partition("?")[2][:6] for one in scene.before.asked if one[0] == "POST"] == ["mount="] * 7


def test_promote_verifies_first(scene: Scene) -> None:
    """An image that somebody else has signed and pushed."""
    stranger = SigningKey.generate()
    (scene.folder / "strangers").mkdir()
    strange = add_image(scene.site, salt="strange", key=stranger)
    (scene.folder / "strangers" / f"{stranger.public.id}.pub").write_bytes(stranger.public.to_bytes())
    done = scene.call(
        *("image", "push", strange, f"{scene.place}:candidate"),
        *("--store", scene.site.store, "--keys", scene.folder / "strangers"),
    )
    assert done.status == 0, done.err
    words = f"Error: signed by key {stranger.public.id}, which is not trusted here (see `netboot key list`)\n"
    assert scene.run("promote", f"{scene.place}:candidate", f"{scene.place}:stable") == (4, "", words)
    assert scene.pull("stable") == (3, "", f"Error: {scene.place} has no tag stable\n{ABSENT}")
    assert scene.pull("candidate") == (4, "", words)
    assert scene.run("push", strange, f"{scene.place}:stable") == (4, "", words)
    scene.assert_nothing_came()


def test_absent_is_not_cannot_tell_is_not_denied(scene: Scene) -> None:
    scene.push()
    assert scene.pull("nightly") == (3, "", f"Error: {scene.place} has no tag nightly\n{ABSENT}")
    scene.before.fault = lambda _method, _path: 503
    assert scene.pull() == (
        5,
        "",
        f"Error: {scene.place} cannot answer right now: status 503 for tag stable (tried 3 times)\n{UNREACHABLE}",
    )
    scene.before.fault = lambda _method, _path: 403
    assert scene.pull() == (
        4,
        "",
        f"Error: {scene.place} does not allow tag stable: this account may not, ask who keeps it\n",
    )
    scene.assert_nothing_came()


def test_nobody_answers(scene: Scene) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and not listening: nobody else's meanwhile
        address = f"127.0.0.1:{held.getsockname()[1]}"
        status, _, err = scene.run("pull", f"{address}/site/images:stable", at=scene.other)
    assert (status, err) == (
        5,
        f"Error: {address}/site/images cannot be reached: Connection refused (tried 3 times)\n{UNREACHABLE}",
    )
    scene.assert_nothing_came()


def test_a_registry_that_answers_500_half_of_the_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Push and pull both come through, by trying again; the draws are seeded, and so are the tries."""
    told: list[str] = []
    patient = RetryPolicy(sleep=lambda _seconds: None, tell=told.append)
    monkeypatch.setattr("netboot.cli.publish.retry", lambda: patient)
    draw = random.Random(7)
    scene.before.fault = lambda _method, _path: 500 if draw.random() < 0.5 else None
    scene.push()
    assert scene.pull()[0] == 0
    assert Store(scene.other.store).digests() == (scene.digest,)
    assert len(told) > 5
    assert all("cannot answer right now: status 500 for" in words for words in told)


def test_a_transfer_that_breaks_off_goes_on_where_it_was(scene: Scene) -> None:
    scene.push()
    size = Store(scene.site.store).manifest(scene.digest).artifacts.root.size
    scene.before.cut, scene.before.cut_of = [700, 300], scene.root
    assert size > 1000
    scene.before.asked.clear()
    assert scene.pull()[0] == 0
    ranges = [asked for _, path, asked in scene.before.asked if path.endswith(scene.root)]
    assert ranges == ["", "bytes=700-", "bytes=1000-"]


def test_a_transfer_that_breaks_off_where_ranges_are_not_known(scene: Scene) -> None:
    scene.push()
    scene.before.ranges, scene.before.cut, scene.before.cut_of = False, [700], scene.root
    assert scene.pull()[0] == 0
    assert Store(scene.other.store).digests() == (scene.digest,)


def test_a_truncated_blob_in_the_registry(scene: Scene) -> None:
    """The pull says so; so does the next push, which cannot mend it: the registry takes what it has for whole."""
    scene.push()
    blob = scene.real.blob(scene.root)
    blob.write_bytes(blob.read_bytes()[:10])
    size = Store(scene.site.store).manifest(scene.digest).artifacts.root.size
    damaged = f"root (blob {scene.root[:12]}) of {scene.place} is damaged: it has 10 bytes there, {size} were signed"
    assert scene.pull() == (1, "", f"Error: {damaged}\n{DAMAGED}")
    remedy = "remove that blob from the registry's storage, then push the image again"
    for command in (("push", scene.digest), ("promote", f"{scene.place}:stable")):
        assert scene.run(*command, f"{scene.place}:other") == (1, "", f"Error: {damaged}; {remedy}\n")
    scene.assert_nothing_came()
    blob.unlink()
    scene.push()
    assert scene.pull()[0] == 0


def test_a_push_that_fails_leaves_the_tag_where_it_was(scene: Scene) -> None:
    scene.push()
    newer = add_image(scene.site, salt="newer")
    scene.before.fault = lambda method, path: 500 if method == "PUT" and "/blobs/" in path else None
    status, _, err = scene.run("push", newer, f"{scene.place}:stable")
    kernel = Store(scene.site.store).manifest(newer).artifacts.kernel.sha256[:12]
    assert (status, err) == (
        5,
        (
            f"Error: {scene.place} cannot answer right now: status 500 for kernel (blob {kernel}) (tried 6 times)\n"
            f"{UNREACHABLE}"
        ),
    )
    scene.before.fault = lambda _method, _path: None
    assert scene.pull()[0] == 0
    assert Store(scene.other.store).digests() == (scene.digest,)


def test_what_is_no_image_of_ours(scene: Scene) -> None:
    """A tag of a container image."""
    with repository(scene.real) as client:
        config = json.dumps({"architecture": "amd64"}).encode()
        sha256 = hashlib.sha256(config).hexdigest()
        client.push_bytes(config, sha256, "config")
        entry = {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": f"sha256:{sha256}",
            "size": len(config),
        }
        body = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": entry, "layers": []}
        client.put_manifest("nginx", json.dumps(body).encode())
    what = f"is no image of netboot's but {OCI_MANIFEST}: push one with `netboot image push`"
    assert scene.pull("nginx") == (1, "", f"Error: {scene.place}:nginx {what}\n")


def test_an_image_of_another_architecture_can_be_pulled(scene: Scene) -> None:
    """Whether machines can boot it is the channel's business."""
    arm = add_image(scene.site, name="arm", architecture="arm64")
    scene.run("push", arm, f"{scene.place}:arm")
    status, out, _ = scene.pull("arm")
    assert (status, out.split(" is in")[0]) == (0, f"image {arm[:12]} (arm, arm64)")


def test_ctrl_c_leaves_nothing(scene: Scene) -> None:
    scene.push()
    asked: list[str] = []

    def interrupt(method: str, path: str) -> None:
        if method == "GET" and path.endswith(scene.root):
            asked.append(path)
            wait_for(lambda: child.poll() is not None, 120)

    scene.before.fault = interrupt
    arguments = ["image", "pull", f"{scene.place}:stable", "--store", scene.other.store, "--keys", scene.site.keys]
    child = subprocess.Popen(
        [sys.executable, "-m", "netboot.cli.main", *map(str, arguments)],
        env=environment(),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: bool(asked), 120)
        assert len(list((scene.other.store / "incoming").iterdir())) == 1
        child.send_signal(2)
        _, err = child.communicate(timeout=120)
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, err) == (130, "\ninterrupted\n")
    scene.assert_nothing_came()


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[tuple[Registry, Path]]:
    """A registry with TLS and a login; its authority."""
    tls = _certificate(tmp_path)
    with registry(tmp_path / "locked", tls=tls, htpasswd=HTPASSWD) as real:
        yield real, tls.certificate


def test_a_login_over_tls(scene: Scene, locked: tuple[Registry, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    real, authority = locked
    place = f"{real.address}/site/images"
    other = _certificate(scene.folder / "other").certificate
    status, _, err = scene.run("push", scene.digest, f"{place}:stable", "--authority", str(other))
    remedy = "give the authority of its certificate (--authority)"
    assert (status, err) == (1, f"Error: {place} is not believed: self-signed certificate; {remedy}\n")
    how = ("--authority", str(authority))
    status, _, err = scene.run("push", scene.digest, f"{place}:stable", *how)
    kernel = Store(scene.site.store).manifest(scene.digest).artifacts.kernel.sha256[:12]
    remedy = "log in with `docker login`, or give --username and the password on stdin"
    assert (status, err) == (4, f"Error: {place} wants a login for blob {kernel}: {remedy}\n")
    login = scene.folder / "login.json"
    wrong, right = (base64.b64encode(f"builder:{word}".encode()).decode() for word in ("guess", PASSWORD))
    login.write_text(json.dumps({"auths": {place.partition("/")[0]: {"auth": wrong}}}))
    status, _, err = scene.run("push", scene.digest, f"{place}:stable", *how, "--credentials", str(login))
    assert (status, err) == (4, f"Error: {place} does not accept the login of 'builder' for blob {kernel}\n{DENIED}")
    login.write_text(json.dumps({"auths": {place.partition("/")[0]: {"auth": right}}}))
    status, _, err = scene.run("push", scene.digest, f"{place}:stable", *how, "--credentials", str(login))
    assert (status, err) == (0, "")
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
    status, _, err = scene.run("pull", f"{place}:stable", *how, "--username", "builder", at=scene.other)
    assert (status, err) == (0, "")
    assert Store(scene.other.store).digests() == (scene.digest,)
    assert PASSWORD not in (real.storage.parent / "registry.log").read_text()


def test_a_token_from_the_registry_s_token_service(scene: Scene, tmp_path: Path) -> None:
    """As hubs, Harbor and clouds do it: a login for a token, the token for each request."""
    tls, login = _certificate(tmp_path), tmp_path / "login.json"
    how = ("--authority", str(tls.certificate), "--credentials", str(login))
    with proxy(scene.real.address, tls) as hub:
        hub.login, place = f"builder:{PASSWORD}", f"{hub.address}/site/images"
        for word in ("guess", PASSWORD):
            auth = base64.b64encode(f"builder:{word}".encode()).decode()
            login.write_text(json.dumps({"auths": {hub.address: {"auth": auth}}}))
            status, _, err = scene.run("push", scene.digest, f"{place}:stable", *how)
            if word != PASSWORD:
                kernel = Store(scene.site.store).manifest(scene.digest).artifacts.kernel.sha256[:12]
                refused = f"Error: {place} does not accept the login of 'builder' for blob {kernel}\n{DENIED}"
                assert (status, err) == (4, refused)
        assert (status, err) == (0, "")
        status, _, err = scene.run("pull", f"{place}:stable", *how, at=scene.other)
        assert (status, err) == (0, "")
        assert [path for _, path, _ in hub.asked if "token" in path] == [
            "/token?service=lab&scope=repository%3Asite%2Fimages%3Apull%2Cpush"
        ] * 3
    assert Store(scene.other.store).digests() == (scene.digest,)


def test_no_password_in_plain_http(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with registry(tmp_path / "locked", htpasswd=HTPASSWD) as real:
        monkeypatch.setattr("sys.stdin", io.StringIO(PASSWORD + "\n"))
        place = f"{real.address}/site/images"
        status, _, err = scene.run("pull", f"{place}:stable", "--username", "builder", at=scene.other)
    assert (status, err) == (
        4,
        (
            f"Error: {place} wants a login, and is reached in plain HTTP, where passwords do not travel: leave out "
            "--plain-http, or give --authority for a registry on this machine\n"
        ),
    )


def _certificate(folder: Path) -> Tls:
    """Of 127.0.0.1, signed by itself."""
    folder.mkdir(exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry of a test")])
    day, now = datetime.timedelta(days=1), datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "registry.crt").write_bytes(made.public_bytes(pem))
    plain = serialization.NoEncryption()
    (folder / "registry.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return Tls(folder / "registry.crt", folder / "registry.key")
