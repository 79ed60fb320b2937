"""A real registry, Debian's `docker-registry`, on loopback with a storage folder of its own."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.processes import child
from lab.site import free_port

_CONFIG = """\
version: 0.1
log: {{level: info, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {storage}}}
  delete: {{enabled: true}}
http:
  addr: 127.0.0.1:{port}
  secret: of-the-lab
  relativeurls: true
{more}"""
_TLS = "  tls: {{certificate: {certificate}, key: {key}}}\n"
_LOGIN = "auth:\n  htpasswd: {{realm: lab, path: {path}}}\n"
READY_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Registry:
    """A running registry. `address`: host and port, as in a reference; `storage`: its folder."""

    address: str
    storage: Path

    def blob(self, sha256: str) -> Path:
        """Where the bytes of a blob lie."""
        return self.storage / "docker/registry/v2/blobs/sha256" / sha256[:2] / sha256 / "data"


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate and key, PEM files."""

    certificate: Path
    key: Path


@contextlib.contextmanager
def registry(folder: Path, *, tls: Tls | None = None, htpasswd: str | None = None) -> Iterator[Registry]:
    """A registry for the length of a block; its storage in `folder` stays. `htpasswd`: the content of such a file."""
    storage = folder / "storage"
    storage.mkdir(parents=True, exist_ok=True)
    port = free_port("127.0.0.1")
    more = _TLS.format(certificate=tls.certificate, key=tls.key) if tls else ""
    if htpasswd is not None:
        (folder / "htpasswd").write_text(htpasswd)
        more += _LOGIN.format(path=folder / "htpasswd")
    (folder / "registry.yml").write_text(_CONFIG.format(storage=storage, port=port, more=more))
    argv = ["docker-registry", "serve", str(folder / "registry.yml")]
    with child("docker-registry", argv, folder / "registry.log") as running:
        running.output.wait_for(r"listening on", READY_SECONDS)
        yield Registry(f"127.0.0.1:{port}", storage)
