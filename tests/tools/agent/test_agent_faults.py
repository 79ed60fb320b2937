"""What the agent does when something answers that should not, or not in that way: it says so, waits, and joins."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from images.node.agent.key import keep, spki
from images.node.agent.net import LONGEST
from images.node.agent.request import PATH, csr_pem
from lab.kube.authority import Authority
from tests.agent_tpm import BOOT, soft
from tests.agents import Fault, Handler, Site, Told, b64, machine, serving, sign
from tests.soft_tpm import new_key

pytestmark = pytest.mark.tools
HELLO, ATTEST = "/v1/join/hello", "/v1/join/attest"
JOINED = "joined as n1; the kubelet may start"


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path, site: Site) -> Path:
    return machine(tmp_path, site)


def joined(root: Path, **parts: Any) -> Told:
    told = Told()
    told.agent(root, **{"open_tpm": soft, **parts}).run()
    assert told.lines[-1] == JOINED
    return told


def causes(told: Told) -> list[str]:
    """What went wrong, without how long it waited for."""
    return [line.split("; trying again in ")[0] for line in told.lines if "; trying again in " in line]


def status(code: int, body: Any = b"", **headers: str) -> Fault:
    return lambda handler: handler.answer(code, body, **headers)


def test_a_join_service_of_another_authority_is_not_spoken_to(tmp_path: Path, site: Site) -> None:
    root = machine(tmp_path, site, join_authorities=[Authority("stranger").pair.certificate.decode()])

    class Corrected(Told):
        def pause(self, seconds: float) -> None:
            super().pause(seconds)
            right = [site.authority.pair.certificate.decode()]
            bundle = {"join_url": site.url, "join_authorities": right, "issued": 7}
            (root / "run/netboot/site.json").write_text(json.dumps(bundle))

    told = Corrected()
    told.agent(root, open_tpm=soft).run()
    assert causes(told) == [f"{site.url} is not who it should be: unable to get local issuer certificate"]
    assert len([path for _, path, _ in site.asked if path == HELLO]) == 1, "nothing was said to a stranger"


def test_a_name_that_is_not_in_the_certificate_is_not_spoken_to(tmp_path: Path, site: Site) -> None:
    root = machine(tmp_path, site, join_url=site.url.replace("127.0.0.1", "localhost"))
    told = Told()
    with pytest.raises(AssertionError):
        told.agent(root, open_tpm=soft).run()
    assert "is not who it should be" in told.lines[0]
    assert all(path != HELLO for _, path, _ in site.asked)


def test_busy_then_free(site: Site, root: Path) -> None:
    body = {"error": {"code": "busy", "message": "the cluster does not answer", "remedy": "wait"}}
    site.faults[HELLO] = [status(503, body, Retry_After="120")]
    told = joined(root)
    assert causes(told) == [f"{site.url} answered 503: the cluster does not answer; wait"]
    assert 120 <= told.pauses[0] <= 150


def test_a_server_that_says_to_come_back_in_a_year_is_mistaken(site: Site, root: Path) -> None:
    site.faults[HELLO] = [status(429, b"", Retry_After="31536000")]
    assert 900 <= joined(root).pauses[0] <= 1125


ANSWERS: list[tuple[str, str, Fault, str]] = [
    ("garbage", HELLO, status(200, b"\x00\xffgarbage"), "{url} answered what is no JSON"),
    ("nothing", HELLO, status(204), "join's answer: there is no assurance"),
    ("nested", HELLO, status(200, b"[" * 200_000), "{url} answered what is no JSON"),
    ("oversize", HELLO, status(200, bytes(LONGEST + 1)), f"{{url}} answered more than {LONGEST} bytes"),
    (
        "redirect",
        ATTEST,
        status(307, b"", Location="http://127.0.0.1:1/"),
        "{url} answered 307: a redirect, and redirects are not followed",
    ),
    (
        "unknown",
        HELLO,
        status(404, {"error": {"message": "no machine has this TPM"}}),
        "{url} answered 404: no machine",
    ),
    ("drawing", HELLO, status(500, {"error": {"message": "a\x1b[2J\nb"}}), "{url} answered 500: a [2J b"),
    ("hang up", HELLO, Handler.hang_up, "cannot reach {url}: "),
    ("stale", ATTEST, status(410, {"error": {"message": "expired"}}), "{url} answered 410: expired"),
    ("token of two lines", ATTEST, status(200, {"token": "abcdef.\n"}), "join's answer: there is no apiservers"),
]


@pytest.mark.parametrize(("path", "fault", "words"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_an_answer_that_is_none_is_said_and_waited_out(
    site: Site, root: Path, path: str, fault: Fault, words: str
) -> None:
    site.faults[path] = [fault]
    told = joined(root)
    assert len(causes(told)) == 1
    assert causes(told)[0].startswith(words.format(url=site.url))


def test_a_failure_is_reported_in_words_once(site: Site, root: Path) -> None:
    site.faults[HELLO] = [status(404, {"error": {"message": "who?"}}) for _ in range(3)]
    joined(root)
    events = [body for _, path, body in site.asked if path == f"/v1/boots/{BOOT}/events"]
    assert [(event["phase"], event["detail"]) for event in events] == [
        ("Joining", ""),
        ("Failed", f"{site.url} answered 404: who?"),
    ]
    assert (events[0]["mac"], events[0]["machine"]) == ("52:54:00:12:34:56", "n1")


def test_a_boot_service_that_is_away_keeps_nobody_from_joining(tmp_path: Path, site: Site) -> None:
    site.report_url = "http://127.0.0.1:1"
    joined(machine(tmp_path, site))


def test_a_machine_without_a_tpm_says_so_and_gives_its_nonce(site: Site, root: Path) -> None:
    site.assurance = "nonce"
    (root / "run/netboot/nonce").write_text("c2VhbGVk\n")
    joined(root, open_tpm=lambda _root: nullcontext(None))
    hello, attest = (next(body for _, path, body in site.asked if path == one) for one in (HELLO, ATTEST))
    assert (hello["tpm"], hello["nonce"], attest["tpm"]) == (None, "c2VhbGVk", None)


def test_a_server_cannot_ask_a_tpm_of_a_machine_without_one(site: Site, root: Path) -> None:
    site.assurance = "nonce"
    answer = {"assurance": "tpm", "state": "AA==", "now_ms": 1, "credential_blob": "AA==", "encrypted_secret": "AA=="}
    site.faults[HELLO] = [status(200, {**answer, "pcrs": {"sha256": [0]}})]
    assert causes(joined(root, open_tpm=lambda _root: nullcontext(None))) == [
        "join asks for a TPM, and this machine has none"
    ]


def test_a_restarted_agent_carries_on_with_the_same_key_and_a_joined_one_does_nothing(site: Site, root: Path) -> None:
    told = Told()
    site.faults[PATH] = [status(403, {"message": "no"}) for _ in range(20)]
    with pytest.raises(AssertionError):  # as good as killed: it had its token
        told.agent(root, open_tpm=soft).run()
    site.faults.clear()
    joined(root)
    assert len(site.spkis) == 2
    assert site.spkis[0] == site.spkis[1]
    key = root / "run/netboot/join.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert spki(load_pem_private_key(key.read_bytes(), None)) == site.spkis[0]  # type: ignore[arg-type]

    before, again = len(site.asked), Told()
    again.agent(root, open_tpm=soft).run()
    assert again.lines == ["this boot has joined already"]
    assert len(site.asked) == before


def test_a_denied_request_is_said_with_its_reason_and_begun_again(site: Site, root: Path) -> None:
    site.deny = "n1 may not join now"

    class Allowed(Told):
        def pause(self, seconds: float) -> None:
            super().pause(seconds)
            site.deny = ""

    told = Allowed()
    told.agent(root, open_tpm=soft).run()
    assert causes(told) == ["the certificate request was denied (NotThisNode: n1 may not join now)"]
    assert len(site.issued) == 2


def test_an_api_server_that_has_not_heard_of_the_token_yet(site: Site, root: Path) -> None:
    site.faults[PATH] = [status(401, {"message": "Unauthorized"}) for _ in range(3)]
    told = joined(root)
    assert causes(told) == []
    assert len(site.issued) == 1, "no second token for that"


def test_api_servers_are_tried_in_turn_with_the_same_token(site: Site, root: Path) -> None:
    site.apiservers = ["https://127.0.0.1:1", site.url]
    told = joined(root)
    assert len(site.issued) == 1
    assert any(line.startswith("cannot reach https://127.0.0.1:1: ") for line in told.lines)
    assert f"server: {site.url}\n" in (root / "etc/kubernetes/kubelet.kubeconfig").read_text()


def test_a_request_whose_answer_was_lost_is_not_made_twice(site: Site, root: Path) -> None:
    def lost(handler: Handler) -> None:
        token = handler.token()
        assert token is not None
        handler.site.ask_certificate(handler.site.asked[-1][2], token)
        handler.hang_up()

    site.faults[PATH] = [lost, status(409, {"message": "already exists"})]
    joined(root)
    assert len(site.requests) == 1
    assert len(site.issued) == 1


@pytest.mark.parametrize(("node", "own_key"), [("n2", True), ("n1", False)])
def test_a_certificate_for_another_node_or_key_is_not_used(site: Site, root: Path, node: str, own_key: bool) -> None:
    key = keep(root / "run/netboot/join.key")
    certificate = sign(site.cluster.pair, csr_pem(node, key if own_key else new_key()))
    site.watched = {"type": "MODIFIED", "object": {"status": {"certificate": b64(certificate)}}}

    def with_its_own_request(handler: Handler) -> None:
        body = handler.site.asked[-1][2]
        assert site.watched is not None
        site.watched["object"]["spec"] = body["spec"]
        handler.answer(201, {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}})

    site.faults[PATH] = [with_its_own_request]
    assert causes(joined(root)) == ["the certificate that was signed is not for this node and its key"]


def test_a_clock_in_1970_gets_the_images_time_before_tls_and_joins_own_after(site: Site, root: Path) -> None:
    (root / "usr").mkdir()
    set_to: list[float] = []
    time = [3.0]

    def set_clock(seconds: float) -> None:
        set_to.append(seconds)
        time[0] = seconds

    told = joined(root, now=lambda: time[0], set_clock=set_clock)
    built = (root / "usr").stat().st_mtime
    assert set_to[0] == built
    assert told.lines[0].startswith("the clock said 1970-01-01 00:00:03, now 20")
    assert told.lines[0].endswith(": this image was built then, so it cannot be earlier")
    assert len(set_to) == 1, "join's clock is not a minute from it"


NOT_YET, EXPIRED = 9, 10
"""OpenSSL's codes."""


@pytest.fixture
def disbelieved(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Let TLS find this fault in join's certificate, so many times."""
    wrap, left = ssl.SSLContext.wrap_socket, [0]

    def arrange(code: int, times: int) -> None:
        def refuse(context: ssl.SSLContext, *args: Any, **more: Any) -> ssl.SSLSocket:
            if more.get("server_side") or left[0] == 0:
                return wrap(context, *args, **more)
            left[0] -= 1
            error = ssl.SSLCertVerificationError(1, "certificate verify failed")
            error.verify_code, error.verify_message = code, "of its dates"
            raise error

        left[0] = times
        monkeypatch.setattr(ssl.SSLContext, "wrap_socket", refuse)

    return arrange


def test_a_certificate_that_is_not_valid_yet_asks_the_boot_service_for_the_time(
    site: Site, root: Path, disbelieved: Callable[[int, int], None]
) -> None:
    disbelieved(NOT_YET, 1)
    set_to: list[float] = []
    told = joined(root, now=lambda: 1000.0, set_clock=set_to.append)
    assert causes(told) == [f"the certificate of {site.url} is not valid yet by this machine's clock"]
    assert abs(set_to[0] - site.now_ms / 1000) < 300
    assert f"that is {site.report_url}'s time" in told.lines[0]


@pytest.mark.parametrize("code", [NOT_YET, EXPIRED])
def test_no_plain_answer_puts_the_clock_back_to_when_a_certificate_was_valid(
    site: Site, root: Path, disbelieved: Callable[[int, int], None], code: int
) -> None:
    """The thief of an old key of join's answers in place of the boot service as well, with the Date of then."""
    disbelieved(code, 2)
    set_to: list[float] = []
    told = joined(root, now=lambda: site.now_ms / 1000 + 86_400, set_clock=set_to.append)
    fault = "is not valid yet" if code == NOT_YET else "has expired"
    assert len(causes(told)) == 2
    assert causes(told)[0].startswith(f"the certificate of {site.url} {fault} by this machine's clock")
    in_the_clear = [line for line in told.lines if f"that is {site.report_url}'s time" in line]
    assert in_the_clear == [], "join's own, in TLS, may be taken"


def test_a_certificate_that_has_expired_asks_nobody_for_the_time(
    site: Site, root: Path, disbelieved: Callable[[int, int], None]
) -> None:
    """Later than now it has expired all the more."""
    disbelieved(EXPIRED, 1)
    set_to: list[float] = []
    told = joined(root, now=lambda: 1000.0, set_clock=set_to.append)
    why = "has expired by this machine's clock, which no plain answer may put back: renew it, or set the clock"
    assert causes(told) == [f"the certificate of {site.url} {why}"]
    assert [line.split(": ")[-1] for line in told.lines if line.startswith("the clock")] == ["that is join's time"]
    assert len(set_to) == 1


@pytest.mark.parametrize("service", ["run/systemd/timesync", "run/chrony"])
@pytest.mark.parametrize("synchronised", [True, False])
def test_a_time_service_comes_before_the_boot_service(
    site: Site, root: Path, disbelieved: Callable[[int, int], None], synchronised: bool, service: str
) -> None:
    (root / service).mkdir(parents=True)
    disbelieved(NOT_YET, 7)
    set_to: list[float] = []
    told = joined(root, now=lambda: 1000.0, set_clock=set_to.append, disciplined=lambda: synchronised)
    assert len(causes(told)) == 7
    taken = [line.split(": ")[-1] for line in told.lines if line.startswith("the clock said")]
    plain = f"that is {site.report_url}'s time"
    assert taken == ([] if synchronised else [plain, plain, "that is join's time"])
    assert len(set_to) == len(taken)


def test_no_file_holds_the_token_and_no_line(site: Site, root: Path) -> None:
    told = joined(root)
    token = site.issued[0].reveal()
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) >= 8
    for path in files:
        assert token not in path.read_text(errors="replace"), path
        assert token.split(".")[1] not in path.read_text(errors="replace"), path
    assert token.split(".")[1] not in "\n".join(told.lines)
