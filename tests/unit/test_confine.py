"""What processes are confined to: the table, the kernel's part by itself, and what is said where that falls short."""

import errno
import json
import os
import platform
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from netboot.config import Config, load_config
from netboot.confine import access, landlock, seccomp
from netboot.confine.enter import shortcomings
from netboot.process import Kind
from netboot.processes import supervisor
from tests.processes import environment
from tests.sites import JOINING, make_site
from tests.sockets.join_site import fill_join

KINDS: tuple[str, ...] = get_args(Kind)
IS_ROOT = os.geteuid() == 0
ACCOUNTS = [(0, ""), (0, "dac_override"), (65534, "")] if IS_ROOT else [(os.geteuid(), "")]
"""uid, and a capability that there is not."""
OWN = """\
import json, os, socket, sys
from pathlib import Path
from netboot.confine import landlock, seccomp
read, write, port, version = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
landlock.restrict(landlock.Rules(read=(read,), write=(write,)), version)
def tried(what):
    try: what()
    except OSError as error: return error.errno
    return 0
def connect():
    with socket.socket() as sock: sock.connect(("127.0.0.1", port))
print(json.dumps({
    "read": tried((read / "file").read_bytes),
    "write what it reads": tried(lambda: (read / "file").write_bytes(b"")),
    "write": tried(lambda: (write / "file").write_bytes(b"")),
    "read elsewhere": tried(lambda: open("/etc/passwd")),
    "truncate what it reads": tried(lambda: os.truncate(read / "file", 0)),
    "rename": tried(lambda: (write / "file").rename(write / "folder" / "file")),
    "connect": tried(connect),
    "signal": tried(lambda: os.kill(os.getppid(), 0)),
}))
"""


CAPABLE = """\
import ctypes, json, os, struct, sys
from pathlib import Path
from netboot.confine.access import Access
from netboot.confine.enter import enter
def held():
    lines = [line.split() for line in open("/proc/self/status") if line.startswith("Cap")]
    return {name: int(mask, 16) for name, mask in lines}
libc, bind, uid, none = ctypes.CDLL(None), 10, int(sys.argv[1]), frozenset()
if uid != os.geteuid():  # what systemd does: linux/prctl.h, linux/capability.h
    assert libc.prctl(8, 1, 0, 0, 0) == 0  # PR_SET_KEEPCAPS
    os.setresuid(uid, uid, uid)
    assert libc.capset(struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *[1 << bind] * 3, 0, 0, 0)) == 0
    assert libc.prctl(47, 2, bind, 0, 0) == 0  # PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE
before = held()
enter(Access("boot-0", none, none, none, (Path("/proc"),), (), (), none, False, ()), none)
print(json.dumps([before, held()]))
"""


def _paths(model: type[BaseModel], prefix: str = "") -> set[str]:
    """Dotted keys of everything in a model that is a path."""
    keys: set[str] = set()
    for name, field in model.model_fields.items():
        for kind, star in _kinds(field.annotation):
            key = f"{prefix}{name}{star}"
            if kind is Path:
                keys.add(key)
            elif isinstance(kind, type) and issubclass(kind, BaseModel):
                keys |= _paths(kind, f"{key}.")
    return keys


def _kinds(annotation: Any, star: str = "") -> list[tuple[Any, str]]:
    if get_origin(annotation) is None:
        return [(annotation, star)]
    inner = ".*" if get_origin(annotation) is dict else star
    return [found for argument in get_args(annotation) for found in _kinds(argument, inner)]


def test_every_file_of_the_configuration_is_assigned_to_the_processes_that_need_it() -> None:
    tables = (access.HANDED, access.KUBECONFIGS, access.PUBLIC_KEYS, access.FOLDERS)
    assert _paths(Config) == {key for table in tables for key in table}
    assert sum(map(len, tables)) == len(_paths(Config)), "in one table each"
    assert {kind for table in tables for kinds in table.values() for kind in kinds} == set(KINDS)


@pytest.mark.parametrize("version", range(1, landlock.abi() + 1))
def test_what_each_version_of_landlock_enforces(tmp_path: Path, version: int) -> None:
    """An older kernel's rules, on this one: what it lacks stays open, and all the rest is kept."""
    for name in ("read", "write/folder"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "read" / "file").write_bytes(b"some")
    port = "9"  # nobody listens
    command = [sys.executable, "-c", OWN, str(tmp_path / "read"), str(tmp_path / "write"), port, str(version)]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(ran.stdout) == {
        "read": 0,
        "write what it reads": errno.EACCES,
        "write": 0,
        "read elsewhere": errno.EACCES,
        "truncate what it reads": errno.EACCES if version >= 3 else 0,
        "rename": 0 if version >= 2 else errno.EXDEV,
        "connect": errno.EACCES if version >= 4 else errno.ECONNREFUSED,
        "signal": errno.EPERM if version >= 6 else 0,
    }


@pytest.mark.parametrize(("uid", "less"), ACCOUNTS)
def test_capabilities_that_were_given_are_given_up_by_whichever_account(uid: int, less: str) -> None:
    """As AmbientCapabilities=CAP_NET_BIND_SERVICE of the unit, which the supervisor needs for its listeners; root may
    have fewer than it would keep. Who is no root, and was given none, has none before either."""
    prefix = ["setpriv", f"--bounding-set=-{less}"] if less else []
    command = [*prefix, sys.executable, "-c", CAPABLE, str(uid)]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    before, after = json.loads(ran.stdout)
    assert before["CapAmb:"] == (1 << 10 if uid and IS_ROOT else 0)
    files = 1 << 3 | (0 if less else 1 << 1)  # CAP_FOWNER, CAP_DAC_OVERRIDE (linux/capability.h)
    kept = files if uid == 0 else 0
    assert after == {"CapInh:": 0, "CapPrm:": kept, "CapEff:": kept, "CapBnd:": before["CapBnd:"], "CapAmb:": 0}


def test_what_a_kernel_cannot_enforce_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = [
        "which files it reads and writes, and tracing (Linux 5.13)",
        "which files the processes that write the store read and write (Linux 5.19)",
        "truncating files that it may only read (Linux 6.2)",
        "which TCP ports it connects to (Linux 6.7)",
        "signals and abstract sockets of other processes (Linux 6.12)",
    ]
    lacks = {0: 5, 1: 4, 2: 3, 3: 2, 4: 1, 5: 1, 6: 0, 9: 0}
    assert {version: landlock.missing(version) for version in lacks} == {
        version: everything[5 - count :] for version, count in lacks.items()
    }
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert shortcomings() == [*everything, "system calls (on x86-64 and 64-bit ARM alone)"]


def _verdict(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel does with a call, by the filter: 0, or an errno. A small interpreter of classic BPF."""
    data = struct.pack("<iIQ6Q", number, arch, 0, *(arguments + (0,) * 6)[:6])
    place = value = 0
    while True:
        code, then, otherwise, operand = struct.unpack_from("=HBBI", program, 8 * place)
        place += 1
        if code == 0x06:
            return operand & 0xFFFF if operand != 0x7FFF0000 else 0
        if code == 0x20:
            value = struct.unpack_from("<I", data, operand)[0]
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            place += then if holds else otherwise


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_the_filter_on_both_architectures(name: str) -> None:
    machine = seccomp._MACHINES[name]
    pid = 77

    def verdict(call: str, *arguments: int, network: bool = True, own: int | None = None) -> int:
        return _verdict(seccomp._program(machine, network, own), machine.arch, machine.calls[call], *arguments)

    assert {call for call in seccomp._NEVER if verdict(call) == 0} == set()
    assert [verdict("socket", domain, 1, 0) for domain in (1, 2, 10, 16)] == [0, 0, 0, 0]
    assert [verdict("socket", *how) for how in ((2, 1, 262), (2, 1, 132), (43, 1, 0))] == [1, 1, 1]
    assert [verdict("socket", domain, 1, 0, network=False) for domain in (1, 2, 10, 16)] == [1, 1, 1, 1]
    assert [verdict("socket", 2, 2, 0), verdict("socket", 2, 2 | 0o2000000, 17)] == [0, 0], "names are looked up"
    stream, datagram, raw, packets = 1, 2, 3, 5
    for flags in (0, 0o4000, 0o2000000, 0o2004000):
        kinds = [kind | flags for kind in (stream, packets, datagram, raw)]
        assert [verdict("socket", 1, kind, 0) for kind in kinds] == [0, 0, 1, 1]
        for network in (True, False):
            assert [verdict("socketpair", 1, kind, 0, network=network) for kind in kinds] == [0, 0, 1, 1]
    assert [verdict("connect", network=network) for network in (True, False)] == [0, 1]
    assert verdict("sendto", 3, 0, 1, 0x4000) == 0 and verdict("sendto", 3, 0, 1, 0x20004000) == 1
    assert verdict("sendmsg", 3, 0, 0x20000000) == 1 and verdict("sendmmsg", 3, 0, 1, 0x20000000) == 1
    assert [verdict("kill", target, 9, own=pid) for target in (pid, 1, 2**32 - 1)] == [0, 1, 1]
    assert verdict("tgkill", pid, 80, 9, own=pid) == 0 and verdict("tgkill", 1, 1, 9, own=pid) == 1
    assert verdict("kill", 1, 9) == 0, "a server signals the process below it; whom else, Landlock says"
    assert [verdict("prlimit64", target) for target in (0, pid, 1)] == [0, 1, 1], "a limit of nothing ends a process"
    assert [verdict("setpriority", 0, target, 19) for target in (0, pid)] == [0, 1]
    whole = seccomp._program(machine, True, None)
    assert _verdict(whole, 0x40000003, 1) == 1, "32-bit calls have other numbers"
    assert _verdict(whole, machine.arch, 0x40000000 | 41) == 1, "so have those of x32"


def _site(root: Path) -> Config:
    make_site(root)
    file = root / "netboot.yaml"
    file.write_text(
        file.read_text()
        + 'join: {listen: "127.0.0.1:1", url: "https://127.0.0.1:1"}\n'
        + 'clusters: {a: {endpoints: ["https://192.0.2.1:7443"], authority: tls/ca.crt, approver: secrets/a},\n'
        + '           b: {endpoints: ["https://192.0.2.2"], authority: tls/ca.crt, approver: secrets/b}}\n'
    )
    fill_join(root)
    return load_config(file)


def test_a_secret_in_a_folder_that_others_read_is_named(tmp_path: Path) -> None:
    config = _site(tmp_path)
    assert access.exposed(config) == []
    wrong = config.model_copy(
        update={"management": config.management.model_copy(update={"token_file": config.data / "t"})}
    )
    assert access.exposed(wrong) == [
        f"management.token_file ({config.data}/t) lies in data, which other processes read: move it elsewhere"
    ]


def test_an_approver_has_the_kubeconfig_of_its_own_cluster_alone(tmp_path: Path) -> None:
    config = _site(tmp_path)
    allowed = access.access_of("approver", "approver-b", "b", config)
    assert allowed.kubeconfigs == {tmp_path / "secrets" / "b"}
    assert not allowed.handed
    assert allowed.connect == frozenset({53, 443, 6443, 7443})
    assert access.access_of("boot", "boot-0", "", config).connect == frozenset()


def test_the_inventory_is_written_by_who_faces_operators_where_the_configuration_says_so_and_by_nobody_else(
    tmp_path: Path,
) -> None:
    config = _site(tmp_path)
    writable = config.model_copy(update={"inventory_writable": True})
    for kind in KINDS:
        assert config.inventory not in access.access_of(kind, kind, "", config).write
        assert (config.inventory in access.access_of(kind, kind, "", writable).write) == (kind == "management")


def test_an_inventory_behind_a_link_is_read_when_the_link_is_turned(tmp_path: Path) -> None:
    """As git-sync and Kubernetes' volumes do it."""
    config = _site(tmp_path / "site")
    (tmp_path / "git" / "one").mkdir(parents=True)
    (tmp_path / "git" / "now").symlink_to("one")
    linked = config.model_copy(update={"inventory": tmp_path / "git" / "now"})
    assert tmp_path / "git" in access.access_of("controllers", "controllers", "", linked).read
    beside = tmp_path / "site" / "now"
    beside.symlink_to("inventory")
    linked = config.model_copy(update={"inventory": beside})
    read = access.access_of("controllers", "controllers", "", linked).read
    assert beside in read and tmp_path / "site" not in read, "its secrets are there"


READS = """\
import sys
from pathlib import Path
from netboot.config import load_config
from netboot.confine.access import access_of
from netboot.confine.enter import enter
from netboot.stores.inventory import read_inventory

config = load_config(Path(sys.argv[1]))
enter(access_of("controllers", "controllers", "", config), frozenset())
print(len(read_inventory(config).machines), len(list(config.join.tpm_roots.iterdir())))
"""


def test_folders_that_are_links_to_elsewhere_are_read(tmp_path: Path) -> None:
    _site(tmp_path / "site")
    (tmp_path / "links").mkdir()
    (tmp_path / "elsewhere" / "roots").mkdir(parents=True)
    (tmp_path / "elsewhere" / "roots" / "maker.pem").touch()
    (tmp_path / "site" / "inventory").rename(tmp_path / "elsewhere" / "inventory")
    inventory = tmp_path / "elsewhere" / "inventory" / "site.yaml"
    inventory.write_text(JOINING)
    for name in ("inventory", "roots"):
        (tmp_path / "links" / name).symlink_to(tmp_path / "elsewhere" / name)
    file = tmp_path / "site" / "netboot.yaml"
    text = file.read_text().replace("join: {", f"join: {{tpm_roots: {tmp_path}/links/roots, ")
    file.write_text(f"inventory: {tmp_path}/links/inventory\n{text}")
    command = [sys.executable, "-c", READS, str(file)]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr) == ("3 1\n", "")
    config = load_config(file)
    assert access.strays(config) == []
    inventory.rename(tmp_path / "far.yaml")
    inventory.symlink_to(tmp_path / "far.yaml")
    leads = f"{tmp_path}/links/inventory/site.yaml leads to {tmp_path}/far.yaml"
    assert access.strays(config) == [f"{leads}, which no process may read: put the file there itself"]


def test_a_source_tree_gives_its_packages_and_not_the_site_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = _site(tmp_path / "site")
    (tmp_path / "netboot").mkdir()
    (tmp_path / "netboot" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "site"), "relative", os.devnull])
    own = [path for path in access.system(config) if path.is_relative_to(tmp_path)]
    assert own == [tmp_path / "netboot"]


def test_the_supervisor_opens_what_a_kubeconfig_names_now(tmp_path: Path) -> None:
    config = _site(tmp_path)
    allowed = access.access_of("approver", "approver-a", "a", config)
    secrets = tmp_path / "secrets"
    named = {"certificate-authority": "ca.pem"}, {"tokenFile": "token", "client-key": "/run/key"}
    assert not supervisor._may(allowed, secrets / "token"), "there is no kubeconfig yet"
    (secrets / "a").write_text(
        json.dumps(
            {
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": named[0]}],
                "users": [{"name": "u", "user": named[1]}],
            }
        )
    )
    wanted = [secrets / "a", secrets / "ca.pem", secrets / "token", Path("/run/key")]
    assert [supervisor._may(allowed, path) for path in wanted] == [True] * 4
    others = [secrets / "b", secrets / "sealing.keys", secrets / "token.old", tmp_path / "keys" / "x.pub"]
    assert [supervisor._may(allowed, path) for path in others] == [False] * 4


def test_of_keys_the_public_ones_alone_are_opened(tmp_path: Path) -> None:
    config = _site(tmp_path)
    allowed = access.access_of("controllers", "controllers", "", config)
    assert supervisor._may(allowed, config.keys / "5f2c41d09be7a688.pub")
    assert not supervisor._may(allowed, config.keys / "5f2c41d09be7a688.key")
    assert not supervisor._may(access.access_of("boot", "boot-0", "", config), config.keys / "5f2c41d09be7a688.pub")


def test_the_service_says_at_start_what_is_not_enforced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 5)
    config = _site(tmp_path)
    config.data.mkdir(exist_ok=True)
    wrong = config.model_copy(update={"keys": config.store / "keys"})
    with supervisor._walls(wrong):
        pass
    lack = "this kernel cannot enforce signals and abstract sockets of other processes (Linux 6.12)"
    exposed = f"keys ({config.store}/keys) lies in store, which other processes read: move it elsewhere"
    assert caplog.messages == [f"processes are not confined: {problem}" for problem in (lack, exposed)]
