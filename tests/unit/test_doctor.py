"""`netboot doctor` where there is no cluster, and the parts of it that need none."""

import base64
import itertools
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.kube.authority import Authority, Pair
from netboot.cli import doctor
from netboot.cli.kubeconfigs import diagnosis, token_expiry_ms
from netboot.cli.tls import pair_fault
from netboot.config import load_config
from netboot.confine import landlock
from netboot.kube.connection import connect
from netboot.kube.manifests import manifest_text, manifests
from netboot.stores.bootkey import load_or_create, mark_of
from netboot.stores.proofkey import folder_of, rotate
from tests.commands import Ran, Run
from tests.sites import add_image

URL = "https://join.example:8443"
OURS, OTHERS = Authority("ours"), Authority("others")


@pytest.fixture
def site(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    assert run("init", folder, "--url", "http://192.0.2.1:8080").status == 0
    path = folder / "netboot.yaml"
    path.write_text(path.read_text().replace("127.0.0.1:8081", "127.0.0.1:9"))
    monkeypatch.chdir(folder)
    return folder


def test_a_site_that_is_not_running_yet(run: Run, site: Path) -> None:
    assert run("doctor") == Ran(
        1,
        "ok    site: files: configuration, inventory, keys, token and site bundle\n"
        "ok    service: confinement: this kernel keeps each process to what it needs\n"
        "FAIL  service: running: nothing answers at http://127.0.0.1:9\n"
        "      → start it: `netboot serve`\n"
        "note  clusters: configured: none is configured: machines boot, and join nothing\n"
        "      → add `clusters` and `join` to the configuration\n"
        "\n4 looked at: 1 wrong, 0 warnings\n",
        "",
    )


@pytest.fixture
def answers(site: Path) -> Iterator[dict[str, str]]:
    """Something that answers at the site's address as a service does, with this mark."""
    said = {"site": ""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"ready": True, "degraded": False, "details": {}, **said}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        file = site / "netboot.yaml"
        file.write_text(file.read_text().replace("127.0.0.1:9", f"127.0.0.1:{server.server_port}"))
        try:
            yield said
        finally:
            server.shutdown()
            thread.join()


def test_another_site_s_service_is_not_taken_for_this_one_s(run: Run, site: Path, answers: dict[str, str]) -> None:
    config = load_config(site / "netboot.yaml")
    url = config.management.base_url

    def said() -> list[tuple[str, str, str]]:
        found = json.loads(run("doctor", "--output", "json").out)["diagnoses"]
        return [(one["outcome"], one["words"], one["remedy"]) for one in found if one["name"] == "running"]

    remedy = (
        "stop that one, or give one of the two another port (`management.listen`, and `management.url` where it is "
        "set); then start this one: `netboot serve`"
    )
    other = (
        "refuse",
        f"something else answers at {url}: a service of another site, or with another `data`",
        remedy,
    )
    answers["site"] = mark_of(b"0" * 32)
    assert said() == [other]
    assert not (config.data / "boot-id.key").exists(), "doctor makes nothing"
    key = load_or_create(config.data / "boot-id.key")
    assert said() == [other]
    answers["site"] = ""
    untold = f"whose service answers at {url} cannot be told: it does not say it"
    assert said() == [("unknown", untold, "see its log: it cannot read its key of boot ids")]
    answers["site"] = mark_of(key)
    assert said() == [("ok", f"answers at {url}", "")]
    (config.data / "boot-id.key").write_bytes(b"short")
    outcome, words, remedy = said()[0]
    assert (outcome, remedy) == ("unknown", "ask as the account of the service, or as root")
    assert words.startswith(
        f"whose service answers at {url} cannot be told: {config.data}/boot-id.key is not a boot-id"
    )


def test_what_a_killed_backup_left_is_named(run: Run, site: Path) -> None:
    (site / "data").mkdir(exist_ok=True)
    names = ("data/.netboot-backup-was_ki11", ".netboot-restore-was_ki11", ".netboot-backup-too_new1")
    for name in names:
        (site / name).write_text("a secret")
    for name in names[:2]:
        os.utime(site / name, (0, 0))
    said = [
        line for line in run("doctor", "--quiet").out.splitlines() if str(site / ".netboot") in line or names[0] in line
    ]
    words = "has secrets in it, left by a backup, or its restoring, that was killed"
    assert said == [
        line
        for path in (site / names[1], site / names[0])
        for line in (f"WARN  site: leftovers: {path} {words}", f"      → `rm -r {path}`, as root or as who owns it")
    ]


def test_files_of_the_inventory_that_are_not_read(run: Run, site: Path) -> None:
    inventory = load_config(site / "netboot.yaml").inventory
    (inventory / "old.yml").write_text("machines: []\n")
    said = [text for text in run("doctor", "--quiet").out.splitlines() if text.startswith("WARN")]
    assert said == [f"WARN  site: inventory: not read, for the inventory is {inventory}/*.yaml: {inventory}/old.yml"]


def test_keys_of_archives_that_end_soon(run: Run, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_image(load_config(site / "netboot.yaml"), name="debian-12-node")
    expires = "source kubernetes, https://pkgs.k8s.io/core:/stable:/v1.34/deb: the key "
    line = f"WARN  images: keys of archives: {expires}DE15B14486CD377B9E876E1A234654DA9A296436 (isv:kubernetes "
    at = {"before": 1_793_000_000, "soon": 1_798_000_000, "after": 1_799_000_000}
    said = {}
    for name, seconds in at.items():
        monkeypatch.setattr(doctor, "time", lambda seconds=seconds: seconds)
        said[name] = [text for text in run("doctor", "--quiet").out.splitlines() if text.startswith("WARN  images:")]
    assert said["before"] == []
    assert [text.startswith(line) and " expires on 2026-12-29; take the key" in text for text in said["soon"]] == [True]
    assert [text.startswith(line) and " expired on 2026-12-29; take the key" in text for text in said["after"]] == [
        True
    ]


def test_ipxe_that_is_not_there(run: Run, site: Path) -> None:
    file, inventory = site / "netboot.yaml", next((site / "inventory").glob("*.yaml"))
    file.write_text(re.sub(r"(?m)^(  url: .*)$", r"\1\n  ipxe: ipxe", file.read_text(), count=1))
    (site / "ipxe").mkdir()
    (site / "ipxe/undionly.kpxe").write_bytes(b"some")
    (site / "ipxe/snponly.efi").symlink_to("/dev/zero")
    line = f"cannot be read in {site}/ipxe: install the package ipxe, or set provisioning.ipxe"
    remedy = "      → then restart the service; see docs/dhcp.md"
    assert run("doctor", "--quiet").out.splitlines()[:2] == [f"WARN  service: ipxe: snponly.efi {line}", remedy]
    machine = "machines:\n- {name: dpu-1, architecture: arm64, match: {serial: D1}, profile: default}\n"
    inventory.write_text(inventory.read_text().replace("machines: []", machine))
    newer = "; those of Debian 12 and Ubuntu 24.04 put no ipxe-arm64.efi there"
    both = f"WARN  service: ipxe: snponly.efi, ipxe-arm64.efi {line}{newer}"
    assert run("doctor", "--quiet").out.splitlines()[:2] == [both, remedy]


def test_what_the_kernel_cannot_enforce(run: Run, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 5)
    done = run("doctor", "--quiet")
    assert (
        "WARN  service: confinement: this kernel cannot enforce signals and abstract sockets of other processes "
        "(Linux 6.12)\n      → a newer kernel, or Landlock among its `lsm=`; see docs/operations.md\n" in done.out
    )


def test_a_file_that_no_process_may_read(run: Run, site: Path, tmp_path: Path) -> None:
    file = site / "inventory" / "site.yaml"
    file.rename(tmp_path / "far.yaml")
    file.symlink_to(tmp_path / "far.yaml")
    words = f"{file} leads to {tmp_path}/far.yaml, which no process may read: put the file there itself"
    assert f"WARN  service: confinement: {words}\n" in run("doctor", "--quiet").out


def test_faults_of_the_files_are_among_it(run: Run, site: Path) -> None:
    shutil.rmtree(site / "keys")
    found = json.loads(run("doctor", "-o", "json").out)["diagnoses"]
    assert found[0]["outcome"] == "refuse"
    assert "keys" in found[0]["words"] and found[0]["remedy"]
    (site / "netboot.yaml").write_text("nonsense: true\n")
    done = run("doctor", "--quiet")
    assert done.status == 1
    assert "FAIL  site: netboot.yaml: netboot.yaml:1: nonsense: " in done.out.replace(f"{site}/", "")


def test_a_configuration_that_is_not_there(run: Run, tmp_path: Path) -> None:
    done = run("doctor", "--config", tmp_path / "none.yaml")
    assert done.status == 3
    assert "none.yaml" in done.out + done.err


@pytest.fixture
def placed(tmp_path: Path) -> Callable[[Pair], tuple[Path, Path]]:
    def place(pair: Pair) -> tuple[Path, Path]:
        certificate, key = tmp_path / "join.crt", tmp_path / "join.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        return certificate, key

    return place


def test_a_certificate_that_machines_believe(placed: Callable[[Pair], tuple[Path, Path]], tmp_path: Path) -> None:
    certificate, key = placed(OURS.issue("join", server=("join.example", "192.0.2.1")))
    authority = tmp_path / "ca.crt"
    authority.write_bytes(OTHERS.pair.certificate + OURS.pair.certificate)
    assert pair_fault(URL, certificate, key, authority) == ""
    assert pair_fault("https://192.0.2.1:8443", certificate, key, authority) == ""
    assert pair_fault("https://192.0.2.2", certificate, key, authority) == (
        f"{certificate} is not believed by machines that have {authority}, at https://192.0.2.2: "
        "IP address mismatch, certificate is not valid for '192.0.2.2'."
    )


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (OURS.issue("join", server=("other.example",)), "certificate is not valid for 'join.example'"),
        (OTHERS.issue("join", server=("join.example",)), "unable to get local issuer certificate"),
        (OURS.issue("join"), "is not believed by machines"),
        (Pair(OURS.issue("a").certificate, OURS.issue("b").key), "are not a certificate and its key"),
        (Pair(b"", b""), "are not a certificate and its key"),
    ],
    ids=["another name", "another authority", "a client's", "two halves", "empty"],
)
def test_certificates_that_machines_do_not_believe(
    placed: Callable[[Pair], tuple[Path, Path]], tmp_path: Path, pair: Pair, words: str
) -> None:
    certificate, key = placed(pair)
    authority = tmp_path / "ca.crt"
    authority.write_bytes(OURS.pair.certificate)
    assert words in pair_fault(URL, certificate, key, authority)
    authority.write_text("nothing")
    assert pair_fault(URL, certificate, key, authority)
    authority.unlink()
    assert pair_fault(URL, certificate, key, authority) == f"{authority} cannot be read: No such file or directory"


def token(claims: object) -> str:
    return "e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".c2ln"


def test_when_a_token_expires() -> None:
    assert token_expiry_ms(token({"exp": 1_790_000_000})) == 1_790_000_000_000
    for without in ("", "opaque", token({}), token([]), token({"exp": "soon"}), "a.b.c", token({"exp": 1e400})):
        assert token_expiry_ms(without) is None


@pytest.mark.parametrize(
    ("hours", "in_file", "outcome"), [(1, True, "ok"), (-1, True, "refuse"), (1, False, "warn"), (-1, False, "refuse")]
)
def test_a_token_that_a_kubelet_renews_is_in_order_to_its_end(
    site: Path, hours: int, in_file: bool, outcome: str
) -> None:
    path = kubeconfig(site, "inventory")
    text = token({"exp": time.time() + hours * 3600})
    (site / "secrets/token").write_text(text)
    path.write_text(path.read_text().replace("token: opaque", "tokenFile: token" if in_file else f"token: {text}"))
    path.chmod(0o600)
    connection = connect(path)
    assert [each.outcome for each in diagnosis("inventory", "inventory", path, connection)] == [outcome]


@given(st.text())
def test_a_token_of_any_form_raises_nothing(text: str) -> None:
    token_expiry_ms(text)
    token_expiry_ms(f"a.{text}.c")


def test_the_package_carries_the_files_of_deploy() -> None:
    files = sorted((Path(__file__).parents[2] / "deploy" / "kubernetes").glob("*.yaml"))
    assert len(files) == 13
    assert manifest_text() == "---\n".join(file.read_text() for file in files)


def test_another_namespace_is_everywhere() -> None:
    assert not {"netboot", "netboot-leaders"} & {one["metadata"].get("namespace") for one in manifests("machines")}
    kinds = [one["metadata"]["name"] for one in manifests("machines") if one["kind"] == "Namespace"]
    assert kinds == ["machines", "machines-leaders"]
    subjects = {
        one["namespace"] for doc in manifests("machines") for one in doc.get("subjects", ()) if "namespace" in one
    }
    assert subjects == {"machines"}
    specs = [one.get("spec", {}) for one in manifests("machines")]
    assert [spec["paramRef"]["namespace"] for spec in specs if "paramRef" in spec] == ["machines"] * 2
    assert "system:serviceaccount:netboot" not in manifest_text("machines")


def test_a_store_that_nobody_else_can_look_into(run: Run, site: Path) -> None:
    (site / "data").mkdir(exist_ok=True)
    (site / "store/blobs").mkdir(parents=True, exist_ok=True)
    (site / "store").chmod(0o755)
    (site / "store/blobs").chmod(0o750)
    words = f"another account, a file server's for one, cannot look into {site}/store/blobs"
    assert f"WARN  service: store: {words}\n      → `chmod -R a+rX {site}/store`, if one shall\n" in run("doctor").out
    (site / "store/blobs").chmod(0o755)
    assert "ok    service: store: " in run("doctor").out


def test_a_key_of_proofs_that_is_gone_or_open_to_others(run: Run, site: Path) -> None:
    def said() -> list[str]:
        found = json.loads(run("doctor", "--output", "json").out)["diagnoses"]
        return [each["words"] for each in found if each["name"] == "proof_key"]

    config = load_config(site / "netboot.yaml")
    assert said() == []
    rotate(config.proof_key, folder_of(config))
    assert said() == []
    config.proof_key.chmod(0o644)
    [words] = said()
    assert words.startswith(f"others can read the key of proofs {config.proof_key} (mode 0644)")
    config.proof_key.unlink()
    [words] = said()
    assert words.startswith(f"the key of proofs {config.proof_key} is gone: ")


def kubeconfig(site: Path, role: str) -> Path:
    """One that can be read, of an API server that is not there."""
    path = site / f"secrets/{role}.kubeconfig"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:9', certificate-authority: ../tls/ca.crt}}]\n"
        "users: [{name: a, user: {token: opaque}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
    )
    path.chmod(0o600)
    return path


def test_one_cause_is_one_failure_with_a_remedy(run: Run, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven there were for four causes, and three without a remedy: files that are not there, and a service."""
    shutil.rmtree(site)
    assert run("init", site, "--url", "http://192.0.2.1:8080", "--join-url", URL).status == 0
    config = (site / "netboot.yaml").read_text().replace("127.0.0.1:8081", "127.0.0.1:9")
    monkeypatch.chdir(site)
    cluster = 'clusters: {default: {authority: tls/ca.crt, endpoints: ["https://127.0.0.1:9"]}}\n'
    (site / "netboot.yaml").write_text(config + cluster)

    def failures() -> list[str]:
        lines = run("doctor").out.replace(f"{site}/", "").splitlines()
        return [f"{line}\n{then}" for line, then in itertools.pairwise(lines) if line.startswith("FAIL")]

    service = "FAIL  service: running: nothing answers at http://127.0.0.1:9\n      → start it: `netboot serve`"
    missing = [
        f"FAIL  site: {role}.kubeconfig: secrets/{role}.kubeconfig: clusters.default.{role}: secrets/{role}.kubeconfig "
        "cannot be read (No such file or directory): make it with `netboot cluster kubeconfigs`\n"
        "      → correct it; `netboot config check` says when it is right"
        for role in ("issuer", "approver", "nodes")
    ]
    assert failures() == [*missing, service]
    for role in ("issuer", "approver", "nodes"):
        kubeconfig(site, role)
    assert failures() == [
        service,
        (
            "FAIL  cluster default: apiserver, as the issuer and the approver and the nodes: cannot be told: the "
            "apiserver 127.0.0.1:9 cannot be reached: Connection refused\n      → is it up, and reached from here? "
            "`kubectl --kubeconfig secrets/issuer.kubeconfig get --raw /readyz` asks it, too"
        ),
    ]
