"""The peers: matchbox, built from its Go module (version and checksums in bench/matchbox), and nginx with sendfile."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.serving import HOST, AbsentError, BenchError, Server, serving, tail
from lab.site import free_port
from lab.toolchain import NoGoError, find_go

_MODULE = Path(__file__).with_name("matchbox")
_PACKAGE = "github.com/poseidon/matchbox"


def matchbox_version() -> str:
    """The version that bench/matchbox/go.mod pins."""
    match = re.search(rf"{re.escape(_PACKAGE)} (v\S+)", (_MODULE / "go.mod").read_text())
    if match is None:
        raise BenchError(f"bench/matchbox/go.mod does not pin {_PACKAGE}")
    return match[1]


def build_matchbox(cache: Path) -> Path:
    """The matchbox binary, built once per pin and kept in `cache`; go.sum verifies every module that enters it.

    Raises:
        AbsentError: no Go here, or the build failed (the message says how).
    """
    version = matchbox_version()
    pin = hashlib.sha256((_MODULE / "go.mod").read_bytes() + (_MODULE / "go.sum").read_bytes()).hexdigest()[:12]
    binary = cache.absolute() / f"matchbox-{version}-{pin}"
    if binary.exists():
        return binary
    try:
        go = find_go(cache)
    except NoGoError as error:
        raise AbsentError(f"matchbox cannot be built: {error}") from None
    cache.mkdir(parents=True, exist_ok=True)
    fresh = binary.with_name(f"{binary.name}.{os.getpid()}")
    argv = [str(go), "build", "-mod=readonly", "-trimpath", "-o", str(fresh)]
    argv += ["-ldflags", f"-s -w -X {_PACKAGE}/matchbox/version.Version={version}", f"{_PACKAGE}/cmd/matchbox"]
    env = os.environ | {"GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    done = subprocess.run(argv, cwd=_MODULE, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-5:])
        raise AbsentError(f"matchbox: its build failed (are its modules within reach?):\n{last}")
    fresh.rename(binary)
    return binary


@contextlib.contextmanager
def matchbox(binary: Path, folder: Path, macs: Sequence[str]) -> Iterator[Server]:
    """matchbox with one group per MAC, all of one profile. Its request log is off, which is its best."""
    for name in ("groups", "profiles", "assets", "ignition", "cloud", "generic"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    boot = {
        "kernel": "/assets/vmlinuz",
        "initrd": ["/assets/initrd.img"],
        "args": ["initrd=initrd.img", "console=ttyS0", "quiet"],
    }
    (folder / "profiles/node.json").write_text(json.dumps({"id": "node", "name": "node", "boot": boot}))
    for number, mac in enumerate(macs):
        group = {"id": f"node-{number}", "name": f"node-{number}", "profile": "node", "selector": {"mac": mac}}
        (folder / f"groups/node-{number}.json").write_text(json.dumps(group))
    port = free_port(HOST)
    argv = [str(binary), f"-address={HOST}:{port}", f"-data-path={folder}", f"-assets-path={folder}/assets"]
    with serving(
        f"matchbox({len(macs)})", [*argv, "-log-level=warn"], port, folder / "log", ready=f"/ipxe?mac={macs[0]}"
    ) as server:
        yield server


_NGINX = """\
daemon off;
{user}worker_processes auto;
error_log stderr warn;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  default_type application/octet-stream;
  client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp;
  server {{ listen {host}:{port}; location /v1/ {{ alias {store}/; }} }}
}}
"""


def nginx_version() -> str:
    """`nginx/1.22.1`, or an empty string where there is none."""
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if binary is None:
        return ""
    banner = subprocess.run([binary, "-v"], capture_output=True, text=True, check=False).stderr
    return banner.rpartition(" ")[2].strip()


@contextlib.contextmanager
def nginx(store: Path, folder: Path, blob: str) -> Iterator[Server]:
    """nginx serving the very same files of the store, with sendfile and a worker per core.

    Raises:
        AbsentError: nginx is not installed.
    """
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if binary is None:
        raise AbsentError("nginx: not installed here; run ./setup.sh")
    (folder / "tmp").mkdir(parents=True)
    port = free_port(HOST)
    user = "user root;\n" if os.geteuid() == 0 else ""  # its default account may not read the site's folder
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(user=user, folder=folder, store=store, host=HOST, port=port))
    argv = [binary, "-p", str(folder), "-c", str(config), "-e", "stderr"]
    try:
        with serving("nginx", argv, port, folder / "log", ready=f"/v1/{blob}") as server:
            yield server
    except BenchError as error:
        raise BenchError(f"{error}\n{tail(folder / 'log')}") from error
