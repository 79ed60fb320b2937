"""Which certificates are renewed, against a real control plane: those of the boot in force, and none for long."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from lab.kube import cluster as lab
from lab.kube.accounts import apply_manifests, kubeconfigs
from lab.kube.binaries import find
from lab.kube.cluster import Cluster, cluster
from netboot.join.enrolment import Act, Release
from netboot.join.errors import ClusterUnavailableError
from netboot.kube.clusters import reach
from tests.cluster.conftest import CACHE
from tests.cluster.joining import RECORDS, SECONDS, Site
from tests.kubelets import THIEF, client, pem, renewal, serving
from tests.processes import wait_for
from tests.records import boot_id

pytestmark = pytest.mark.cluster
OTHER_BOOT = ("Denied", "NetbootOtherBoot")
DAY = 86_400


@pytest.fixture(scope="module")
def site(control_plane: Cluster, accounts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose approver runs, and which knows how long certificates live."""
    made = Site(control_plane, accounts, tmp_path_factory.mktemp("renewals"))
    with made.approver():
        made.certificate(made.ask_by(made.joined("n-01"), serving("n-01", sans=["n-01"])))
        yield made
    made.close()


def lifetime(certificate: bytes) -> float:
    read = x509.load_pem_x509_certificate(certificate)
    return (read.not_valid_after_utc - read.not_valid_before_utc).total_seconds()


def test_a_key_stolen_in_a_boot_renews_in_that_boot_alone(site: Site) -> None:
    first = site.joined("n-02")
    renewed = site.ask_by(first, renewal("n-02", pem=pem("n-02", THIEF)))
    stolen = site.holder(site.certificate(renewed), THIEF)
    assert site.decision(site.ask_by(stolen, serving("n-02", sans=["n-02"])))[0] == "Approved"
    site.issue("n-02", THIEF, number=2)  # it has proven itself in its next boot, and has no certificate yet
    for session in (first, stolen):
        for csr in (renewal("n-02"), serving("n-02", sans=["n-02"])):
            assert site.decision(site.ask_by(session, csr))[:2] == OTHER_BOOT
    second = site.joined("n-02", THIEF, number=2)
    kind, reason, words = site.decision(site.ask_by(first, renewal("n-02")))
    assert (kind, reason) == OTHER_BOOT
    assert f"is not on record as one of boot {boot_id('n-02', 2)}, in which machine n-02 proved itself last" in words
    assert site.decision(site.ask_by(second, renewal("n-02")))[0] == "Approved"


def test_a_key_stolen_before_a_release_renews_no_more(site: Site) -> None:
    """Even where the machine proves itself with the same key in the same boot."""
    stolen = site.joined("n-03")
    site.enrolments.apply([("n-03", Release())], Act("operator", "to be sure"), 2)
    assert site.decision(site.ask_by(stolen, renewal("n-03")))[:2] == ("Denied", "NetbootNotAllowed")
    again = site.joined("n-03", generation=1)
    assert site.decision(site.ask_by(stolen, renewal("n-03")))[:2] == OTHER_BOOT
    assert site.decision(site.ask_by(again, renewal("n-03")))[0] == "Approved"


def test_who_has_no_certificate_of_ours_gets_none(site: Site) -> None:
    """A node's name by impersonation, so without a certificate at all."""
    site.joined("n-04")
    words = "the apiserver does not say with which certificate node n-04 asks (Kubernetes 1.32 and newer do)"
    assert site.decision(site.ask_as_node(renewal("n-04"), "impersonated")) == (*OTHER_BOOT, words)


def test_another_tpm_ends_the_old_board_s_renewals_and_its_token(site: Site) -> None:
    old, token = site.joined("n-05"), site.issue("n-06")
    site.publish(n_05="f" * 64, n_06="f" * 63 + "e")
    words = "machine {} proved itself by another TPM than is on record now; reboot it"
    kind, reason, said = site.decision(site.ask_by(old, renewal("n-05")))
    assert (kind, reason) == ("Denied", "NetbootNotAllowed")
    assert said.endswith(words.format("n-05"))
    assert site.decision(site.ask_by(old, serving("n-05", sans=["n-05"])))[0] == "Denied"
    said = site.decision(site.ask(token, client("n-06"), "outstanding"))[2]
    assert said.endswith(words.format("n-06"))
    site.publish()


def test_what_a_renewal_may_ask_for_and_what_it_gets(site: Site) -> None:
    """A kubelet names no limit, and gets the cluster's, which is known to be a day."""
    node = site.joined("n-07")
    assert lifetime(site.certificate(site.ask_by(node, renewal("n-07")))) == DAY
    short = site.certificate(site.ask_by(node, renewal("n-07", expiration_seconds=3600)))
    assert lifetime(short) <= 3900
    for seconds in (DAY + 1, 31_536_000):
        words = f"expirationSeconds must be between 600 and 86400, it is {seconds}"
        long = site.ask_by(node, renewal("n-07", expiration_seconds=seconds))
        assert site.decision(long) == ("Denied", "NetbootMalformed", words)


@contextlib.contextmanager
def signing_for(own: Cluster, duration: str) -> Iterator[None]:
    """Its controller-manager started with another `--cluster-signing-duration`."""
    manager: subprocess.Popen[bytes] = own.processes["kube-controller-manager"]
    manager.kill()
    manager.wait(60)
    argv = [one for one in map(str, list(manager.args)) if "signing-duration" not in one]  # type: ignore[arg-type]
    lab._start(own, "kube-controller-manager", [*argv, f"--cluster-signing-duration={duration}"])
    yield


def test_nothing_is_approved_where_certificates_live_for_a_year(tmp_path: Path) -> None:
    """The first serving certificate shows it; the issuer is told, and an operator sets it right."""
    with cluster(find(CACHE), tmp_path / "cluster") as own:
        apply_manifests(own)
        (tmp_path / "site").mkdir()
        site = Site(own, kubeconfigs(own, tmp_path / "kubeconfigs"), tmp_path / "site")
        findings = reach("default", site.config.clusters["default"])[0].preflight
        with site.approver(), signing_for(own, "8760h"):
            findings()  # nothing is known yet
            node = site.joined("n-01")
            waits = site.ask_by(node, renewal("n-01"))
            site.certificate(site.ask_by(node, serving("n-01", sans=["n-01"])))
            words = "and 24 h is the most: it cannot be revoked"
            wait_for(lambda: words in site.status().message, SECONDS)
            token = site.issue("n-02")
            held = [
                waits,
                site.ask(token, client("n-02"), "first"),
                site.ask_by(node, renewal("n-01", expiration_seconds=3600)),
            ]
            before = site.status().unavailable
            wait_for(lambda: site.status().unavailable > before + 3, SECONDS)
            assert [site.conditions(name) for name in held] == [[]] * 3
            unfit = reach("default", site.config.clusters["default"])[0].preflight
            with pytest.raises(ClusterUnavailableError, match=words):
                unfit()
            with signing_for(own, "24h"):
                site.admin("DELETE", RECORDS.replace("?", "/netboot-signing?"))
                site.certificate(held[1])
                site.certificate(site.ask_by(node, serving("n-01", sans=["n-01"])))
                assert lifetime(site.certificate(waits)) == DAY
                wait_for(lambda: site.status().ok, SECONDS)
        site.close()
