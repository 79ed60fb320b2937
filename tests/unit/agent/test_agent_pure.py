"""The agent's pure parts: what it believes, what it writes, how long it waits."""

import contextlib
import ctypes
import json
import struct
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build.node_files import node_files
from images.node.agent import clock, kubelet, loop, settings, tpm, tpm_command
from images.node.agent.answers import Admission, Taint, read_admission, read_challenge
from images.node.agent.errors import AgentError, AnswerError, NetworkError, RefusedError, RequestError, SettingsError
from images.node.agent.exchange import Facts, prove
from images.node.agent.key import keep
from images.node.agent.net import error_message
from images.node.agent.request import outcome
from lab.kube.authority import Authority
from netboot.join import messages
from netboot.join.attest import attest
from netboot.join.hello import hello
from netboot.join.ports import MARK
from tests.agent_tpm import SoftTpm
from tests.joining import Stage, boot_id, dumps, pinned
from tests.soft_tpm import Machine, new_key
from tokens.errors import MalformedError

ROOT = Path(__file__).parents[3]
CA = Authority("cluster").pair.certificate.decode()
ANSWER: dict[str, Any] = {
    "token": "abcdef.0123456789abcdef",
    "expires_ms": 1_790_000_300_000,
    "node_name": "gpu-001",
    "cluster": "default",
    "apiservers": ["https://192.0.2.1:6443", "https://[2001:db8::1]:6443"],
    "authorities": CA,
    "labels": {"netboot.dev/rack": "a-1", "gpu": ""},
    "taints": ["netboot.dev/unchecked:NoExecute", "a=b:NoExecute"],
    "now_ms": 1_790_000_000_000,
}
CHALLENGE: dict[str, Any] = {
    "assurance": "tpm",
    "state": "c3RhdGU=",
    "credential_blob": "YQ==",
    "encrypted_secret": "YQ==",
    "pcrs": {"sha256": [0, 7]},
    "now_ms": 1,
}


def test_the_agent_and_the_service_understand_each_other() -> None:
    machine = Machine(boot_id("gpu-001"))
    stage = Stage((pinned(machine, node={"labels": {"rack": "r1"}, "taints": ["a=b:NoExecute"]}),))

    def post(path: str, body: Any) -> Any:
        if path == "/v1/join/hello":
            return hello(stage.exchange(), messages.read(dumps(body), messages.Hello), "192.0.2.11").as_json()
        assert path == "/v1/join/attest"
        answer = attest(stage.exchange(), messages.read(dumps(body), messages.Attest), "192.0.2.11").as_json()
        return {**answer, "authorities": CA}

    facts = Facts(machine.boot, {"uuid": None, "serial": None, "macs": ["52:54:00:00:00:01"]})
    admission = prove(post, SoftTpm(machine), new_key(), facts)
    assert (admission.node_name, admission.labels) == ("gpu-001", {"rack": "r1"} | MARK)
    assert list(map(str, admission.taints)) == ["a=b:NoExecute", "netboot.dev/unchecked:NoExecute"]


def test_an_admission() -> None:
    admission = read_admission({**ANSWER, "of a later server": 1})
    assert admission.apiservers == ("https://192.0.2.1:6443", "https://[2001:db8::1]:6443")
    assert admission.taints == (Taint("netboot.dev/unchecked", "", "NoExecute"), Taint("a", "b", "NoExecute"))
    assert "abcdef" not in repr(admission)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("token", "abcdef.0123456789abcde\n"),
        ("token", "ABCDEF.0123456789abcdef"),
        ("expires_ms", True),
        ("expires_ms", 1.5),
        ("node_name", "a\nNODE_LABELS=x"),
        ("node_name", "gpu-001 "),
        ("cluster", "../x"),
        ("apiservers", []),
        ("apiservers", ["http://192.0.2.1:6443"]),
        ("apiservers", ["https://a\n    insecure-skip-tls-verify: true"]),
        ("apiservers", ["https://user@a"]),
        ("authorities", "no PEM"),
        ("authorities", ""),
        ("labels", {"a": "b,c=d"}),
        ("labels", {"a b": "c"}),
        ("labels", {"a": 1}),
        ("taints", ["a"]),
        ("taints", ["a:Never"]),
        ("taints", "a:NoSchedule"),
        ("now_ms", -1),
    ],
)
def test_an_admission_is_refused_for_any_field_and_the_value_is_not_repeated(field: str, value: Any) -> None:
    with pytest.raises(AnswerError) as caught:
        read_admission({**ANSWER, field: value})
    assert str(caught.value).startswith(f"join's answer: {field} ")
    assert "abcdef" not in str(caught.value)


@pytest.mark.parametrize("field", sorted(ANSWER))
def test_an_admission_without_a_field(field: str) -> None:
    with pytest.raises(AnswerError, match=f"there is no {field}"):
        read_admission({name: value for name, value in ANSWER.items() if name != field})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("assurance", "none", "join's answer: assurance is not what it should be"),
        ("state", "====", "join's answer: state is not up to 8192 bytes in base64"),
        ("state", "A" * 20_000, "join's answer: state is not up to 8192 bytes in base64"),
        ("credential_blob", None, "join's answer: credential_blob is not up to 1024 bytes in base64"),
        ("pcrs", {}, "join's answer: pcrs does not name banks that we know"),
        ("pcrs", {"md5": [0]}, "join's answer: pcrs does not name banks that we know"),
        ("pcrs", {"sha256": [True]}, "join's answer: pcrs are not lists of numbers"),
        ("pcrs", {"sha256": [7, 0]}, "join's answer: pcrs are not in ascending order from 0 to 23"),
        ("pcrs", {"sha256": [24]}, "join's answer: pcrs are not in ascending order from 0 to 23"),
    ],
)
def test_a_challenge_is_refused_for_any_field(field: str, value: Any, words: str) -> None:
    with pytest.raises(AnswerError) as caught:
        read_challenge({**CHALLENGE, field: value})
    assert str(caught.value) == words


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(sorted(ANSWER)) | st.text(), inner),
    max_leaves=20,
)


@given(json_values, st.sampled_from(sorted({*ANSWER, *CHALLENGE})))
def test_whatever_is_answered_is_read_or_refused(value: Any, field: str) -> None:
    for read, good in ((read_admission, ANSWER), (read_challenge, CHALLENGE)):
        for body in (value, {**good, field: value}):
            with contextlib.suppress(AnswerError):
                read(body)
    error_message(json.dumps(value).encode())
    with contextlib.suppress(AnswerError, RequestError):
        outcome({"status": value})


@given(st.binary(max_size=200))
def test_whatever_a_tpm_answers_is_read_or_refused(data: bytes) -> None:
    device = tpm.Device(lambda _message: data, pause=lambda _seconds: None)
    for ask in (device.identity, lambda: device._pcrs("sha256", (0,)), lambda: device.activate(b"a", b"b")):
        with contextlib.suppress(AgentError, MalformedError):
            ask()


def test_it_says_joining_before_it_imports_cryptography() -> None:
    code = "import sys, images.node.agent.__main__; print({name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "http" in done.stdout
    assert "cryptography" not in done.stdout


def test_a_busy_tpm_is_asked_again_and_a_broken_one_is_said() -> None:
    answers = [0x922, 0x908, 0x90A, 0x101]
    paused: list[float] = []
    device = tpm.Device(lambda _message: struct.pack(">HII", 0x8001, 10, answers.pop(0)), pause=paused.append)
    with pytest.raises(AgentError) as caught:
        device.identity()
    assert str(caught.value) == (
        "the TPM is in failure mode: power the machine off and on; if it stays so, the TPM is broken (response 0x101)"
    )
    assert paused == [0.02, 0.05, 0.1]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0x185, "has its endorsement hierarchy disabled: enable it in the firmware's set-up (response 0x185)"),
        (0x9A2, "has a password on its endorsement hierarchy: clear it (response 0x9a2)"),
        (0x921, "is locked out after wrong passwords: wait, or clear the lock-out (response 0x921)"),
        (0x143, "refuses a command (response 0x143)"),
    ],
)
def test_response_codes_in_words(code: int, words: str) -> None:
    assert tpm_command.meaning(code) == f"the TPM {words}"


@pytest.mark.parametrize(
    ("failures", "error", "least", "most"),
    [
        (1, NetworkError("x"), 1, 2),
        (3, NetworkError("x"), 4, 8),
        (6, NetworkError("x"), 30, 60),
        (5000, NetworkError("x"), 30, 60),
        (9, RefusedError("x", 410), 0.5, 1),
        (1, RefusedError("x", 503, 120.0), 120, 150),
        (9, RefusedError("x", 429, 1.0), 30, 60),
        (2, OSError("x"), 2, 4),
    ],
)
def test_waiting(failures: int, error: Exception, least: float, most: float) -> None:
    assert loop.waiting(failures, error, lambda: 0.0) == least
    assert loop.waiting(failures, error, lambda: 1.0) == most


ADMISSION = Admission(
    token="abcdef.0123456789abcdef",
    expires_ms=2,
    node_name="gpu-001",
    cluster="default",
    apiservers=("https://192.0.2.1:6443",),
    authorities=CA,
    labels={"rack": "a-1", "gpu": ""},
    taints=(Taint("netboot.dev/unchecked", "", "NoExecute"), Taint("a", "b", "NoExecute")),
    now_ms=1,
)


def test_the_kubeconfig() -> None:
    assert kubelet.kubeconfig("https://192.0.2.1:6443") == (
        "apiVersion: v1\n"
        "kind: Config\n"
        "clusters:\n"
        "- name: cluster\n"
        "  cluster:\n"
        "    server: https://192.0.2.1:6443\n"
        "    certificate-authority: /etc/kubernetes/pki/ca.crt\n"
        "users:\n"
        "- name: node\n"
        "  user:\n"
        "    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n"
        "    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem\n"
        "contexts:\n"
        "- name: node\n"
        "  context:\n"
        "    cluster: cluster\n"
        "    user: node\n"
        "current-context: node\n"
    )


def test_the_kubelets_environment_and_drop_in() -> None:
    taints = "NODE_TAINTS=netboot.dev/unchecked:NoExecute,a=b:NoExecute\n"
    assert kubelet.environment(ADMISSION, {}) == f"NODE_NAME=gpu-001\nNODE_LABELS=gpu=,rack=a-1\n{taints}"
    image = {"rack": "the image's", "nvidia.com/gpu.deploy.driver": "pre-installed"}
    assert kubelet.environment(ADMISSION, image) == (
        f"NODE_NAME=gpu-001\nNODE_LABELS=gpu=,nvidia.com/gpu.deploy.driver=pre-installed,rack=a-1\n{taints}"
    )
    assert json.loads(kubelet.drop_in(ADMISSION)) == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "registerWithTaints": [
            {"key": "netboot.dev/unchecked", "value": "", "effect": "NoExecute"},
            {"key": "a", "value": "b", "effect": "NoExecute"},
        ],
    }


def left_by_the_initrd(root: Path, env: str, site: Any) -> Path:
    run = root / "run/netboot"
    run.mkdir(parents=True)
    (run / "boot.env").write_text(env)
    (run / "site.json").write_text(site if isinstance(site, str) else json.dumps(site))
    return root


ENV = "BOOT=01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f\nIMAGE=x\nREPORT=http://192.0.2.1:8080\nMAC=\nNAME=\n"
SITE: dict[str, Any] = {"join_url": "https://j:8443/", "join_authorities": [CA], "issued": 5}


def test_settings(tmp_path: Path) -> None:
    known = settings.read_settings(left_by_the_initrd(tmp_path, ENV, SITE))
    assert (known.join_url, known.report, known.mac) == ("https://j:8443", "http://192.0.2.1:8080", "")


def test_a_site_without_join(tmp_path: Path) -> None:
    lines: list[str] = []
    loop.Agent(left_by_the_initrd(tmp_path, ENV, {"join_url": None}), say=lines.append).run()
    assert lines == ["this site's bundle names no join_url, so there is nothing to join"]


@pytest.mark.parametrize(
    ("env", "site", "words"),
    [
        ("BOOT=x\n", SITE, "{run}/boot.env names no boot"),
        (ENV.replace("http:", "ftp:"), SITE, "REPORT is not a plain URL"),
        (ENV, "[]", "{run}/site.json is not a site bundle"),
        (ENV, "{", "{run}/site.json is not a site bundle"),
        (ENV, {**SITE, "join_url": "http://j"}, "the site bundle's join_url is not https"),
        (ENV, {**SITE, "join_url": "https://j\n"}, "join_url is not a plain URL"),
        (
            ENV,
            {**SITE, "join_authorities": []},
            "the site bundle has a join_url but no join_authorities: sign a new one",
        ),
        (ENV, {**SITE, "issued": "5"}, "the site bundle does not say when it was issued"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, env: str, site: Any, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.read_settings(left_by_the_initrd(tmp_path, env, site))
    assert str(caught.value) == words.format(run=tmp_path / "run/netboot")


def test_hints_are_of_real_cards_only(tmp_path: Path) -> None:
    for name, kind, real in (("eth0", "1", True), ("lo", "772", False), ("br0", "1", False), ("ib0", "32", True)):
        card = tmp_path / "sys/class/net" / name
        card.mkdir(parents=True)
        (card / "type").write_text(f"{kind}\n")
        (card / "address").write_text("52:54:00:12:34:56\n")
        if real:
            (card / "device").mkdir()
    dmi = tmp_path / "sys/class/dmi/id"
    dmi.mkdir(parents=True)
    (dmi / "product_serial").write_text("S1\n")
    assert settings.hints(tmp_path) == {"uuid": None, "serial": "S1", "macs": ["52:54:00:12:34:56"]}


def test_a_broken_key_is_made_anew_and_a_good_one_kept(tmp_path: Path) -> None:
    path = tmp_path / "join.key"
    path.write_text("damaged")
    made = keep(path)
    assert keep(path).private_numbers() == made.private_numbers()
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_below_the_floor_is_believed() -> None:
    moved: list[float] = []
    lines: list[str] = []
    one = clock.Clock(lines.append, 1000.0, lambda: 5000.0, moved.append)
    one.raise_to_floor()
    one.correct(999.0, "a liar")
    one.correct(4950.0, "join")
    assert moved == []
    one.correct(datetime(2026, 1, 1, tzinfo=UTC).timestamp(), "join")
    assert lines == ["the clock said 1970-01-01 01:23:20, now 2026-01-01 00:00:00: that is join's time"]


def test_what_nobody_has_signed_never_puts_the_clock_back() -> None:
    """Not even to where it is above the floor: a certificate that has expired would be valid again."""
    moved: list[float] = []
    one = clock.Clock(lambda _: None, 1000.0, lambda: 5000.0, moved.append)
    for seconds in (999.0, 1001.0, 4000.0, 5059.0):
        one.advance(seconds, "whoever answers")
    assert moved == []
    one.advance(5061.0, "whoever answers")
    assert moved == [5061.0]


@pytest.mark.parametrize("files", [None, "run/systemd/timesync", "run/chrony", "run/ptp4l"])
@pytest.mark.parametrize("disciplined", [True, False])
def test_a_time_service_is_seen(tmp_path: Path, files: str | None, disciplined: bool) -> None:
    """One that holds the clock, whichever it is, by the kernel's word; one that has not yet, by its files."""
    if files is not None:
        (tmp_path / files).mkdir(parents=True)
    known = files in ("run/systemd/timesync", "run/chrony")
    expected = "synchronised" if disciplined else "running" if known else "none"
    assert clock.time_service(tmp_path, lambda: disciplined) == expected


@pytest.mark.parametrize(
    ("state", "error", "said"), [(0, 12_000, True), (5, 15_999_999, True), (5, 16_000_000, False), (-1, 0, False)]
)
def test_it_is_the_kernel_that_says_whether_the_clock_is_held(
    monkeypatch: pytest.MonkeyPatch, state: int, error: int, said: bool
) -> None:
    class Libc:
        def adjtimex(self, timex: ctypes.Array[ctypes.c_char]) -> int:
            assert timex.raw == bytes(clock.TIMEX_BYTES)  # asked, and nothing set
            struct.pack_into("@Illl", timex, 0, 0, 0, 0, error)
            return state

    monkeypatch.setattr(ctypes, "CDLL", lambda _name: Libc())
    assert clock.disciplined() is said


def test_the_kernel_answers_where_no_memory_may_be_made_executable() -> None:
    """As the agent's unit has it (`MemoryDenyWriteExecute`; here PR_SET_MDWE of Linux 6.3, which exec keeps)."""
    asks = "from images.node.agent.clock import disciplined; print(disciplined())"
    enters = "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); "
    enters += f"os.execv(sys.executable, [sys.executable, '-c', {asks!r}])"
    run = subprocess.run([sys.executable, "-c", enters], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (run.stdout.strip(), run.stderr) == (str(clock.disciplined()), "")


def test_a_clock_that_cannot_be_set_is_said() -> None:
    lines: list[str] = []
    clock.Clock(lines.append, 1000.0, lambda: 1.0).raise_to_floor()
    assert lines == ["the clock says 1970-01-01 00:00:01, and cannot be set: it is not this root's"]


def test_what_an_image_gets() -> None:
    entries = {entry.path: entry for entry in node_files()}
    assert "/usr/lib/systemd/system/netboot-join.service" in entries
    assert {"/usr/lib/netboot/node/agent/__main__.py", "/usr/lib/netboot/tokens/wire.py"} < set(entries)
    executable = {path for path, entry in entries.items() if entry.mode == 0o755}
    assert executable == {"/usr/lib/systemd/system-generators/netboot-active-generator"}
    assert all(entries[path].mode == 0o644 for path in entries.keys() - executable)
    assert not any("tests" in path or path.endswith(".pyc") for path in entries)
