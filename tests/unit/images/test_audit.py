"""Known vulnerabilities: what the files say, what it means for an image's packages, and the command as it is called."""

import io
import json
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact import advisories
from images.artifact.advisories import Advisory, BadDataError
from images.artifact.audit import Source, judge, sources, verdicts
from images.build.documents import parts, sbom
from images.errors import CorruptError
from images.formats.debian import Origin, Package
from images.store.store import Store
from images.values.debian_versions import earlier
from tests.commands import Run
from tests.unit.images import samples
from tests.unit.images.samples import KEY

FIXTURES = Path(__file__).parent / "advisories"
SUBJECT = sbom.Subject("sample", "e" * 64, "debian", "bookworm", "amd64", 1_700_000_000)


def package(name: str, version: str, source: str = "", source_version: str = "") -> Package:
    return Package(name, version, "amd64", source or name, source_version or version)


PACKAGES = (
    package("libssl3", "3.0.11-1~deb12u2", "openssl"),
    package("zlib1g", "1:1.2.13.dfsg-1", "zlib"),
    package("linux-image-6.1.0-9-amd64", "6.1.192-1", "linux-signed-amd64", "6.1.192+1"),
    package("bash", "5.2-1"),
    package("kubelet", "1.34.4-1.1"),
)


def origin(publisher: str) -> tuple[Origin, ...]:
    return (Origin(publisher, "1" * 64, "pool/a.deb", 1),)


def bill(*others: parts.Part) -> bytes:
    """A bill of materials as builds write it; the kubelet is another publisher's."""
    origins = {one.identity: origin("Kubernetes" if one.name == "kubelet" else "Debian") for one in PACKAGES}
    return sbom.sbom(SUBJECT, PACKAGES, origins, {}, parts=others)


def read(name: str, distribution: str, suite: str) -> list[Advisory]:
    return list(advisories.read(FIXTURES / name, distribution, suite, lambda step: None))


def test_sources_are_the_bills_and_a_kernels_is_linux_whoever_signed_it() -> None:
    assert sources(bill()) == (
        Source("bash", "5.2-1", "debian"),
        Source("kubelet", "1.34.4-1.1", "kubernetes"),
        Source("linux", "6.1.192-1", "debian"),
        Source("openssl", "3.0.11-1~deb12u2", "debian"),
        Source("zlib", "1:1.2.13.dfsg-1", "debian"),
    )


def test_what_a_driver_was_compiled_from_is_a_source_of_the_image() -> None:
    of = package("nvidia-open-kernel-dkms", "535.1-1", "nvidia-open-gpu-kernel-modules")
    files = (("/usr/lib/nvidia.ko", "2" * 64),)
    driver = parts.Part("driver", "nvidia", files, "535", parts.Source(of, origin("Debian")))
    assert Source("nvidia-open-gpu-kernel-modules", "535.1-1", "debian") in sources(bill(driver))


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"components": [{"type": "library"}]}', b"[" * 100_000])
def test_a_bill_that_is_none(damaged: bytes) -> None:
    with pytest.raises(CorruptError, match=r"^the image's bill of materials is not as builds write it: build the"):
        sources(damaged)


def test_what_debians_tracker_says_of_a_suite() -> None:
    assert read("tracker.json", "debian", "bookworm") == [
        Advisory("CVE-2024-0727", "openssl", (("", "3.0.13-1~deb12u1"),), "not yet assigned"),
        Advisory("CVE-2099-10001", "openssl", (), "not yet assigned"),
        Advisory("CVE-2099-9", "openssl", None, "not yet assigned"),
        Advisory("CVE-2099-2", "zlib", (("", ""),), "unimportant", "Minor issue ignored"),
        Advisory("CVE-2099-3", "linux", (("", "6.1.200-1"),), "high"),
    ]


def test_what_osv_says_of_a_release_by_record_list_and_archives(tmp_path: Path) -> None:
    pam = Advisory("CVE-2024-22365", "pam", (("", "1.4.0-11ubuntu2.4"),), "medium")
    gcrypt = Advisory("CVE-2024-2236", "libgcrypt20", (("", ""),))
    assert read("pam.osv.json", "ubuntu", "noble") == [pam]
    assert read("pam.osv.json", "ubuntu", "jammy") == read("pam.osv.json", "debian", "bookworm") == []
    texts = {name: (FIXTURES / name).read_bytes() for name in ("pam.osv.json", "libgcrypt.osv.json")}
    (tmp_path / "list.json").write_text(json.dumps([json.loads(text) for text in texts.values()]))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive, tarfile.open(tmp_path / "all.tar.xz", "w:xz") as tar:
        for name, text in {**texts, "README": b"no record"}.items():
            archive.writestr(name, text)
            member = tarfile.TarInfo(f"osv/cve/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    told: list[int] = []
    for name in ("list.json", "all.zip", "all.tar.xz"):
        found = advisories.read(tmp_path / name, "ubuntu", "noble", told.append)
        assert list(found) == [pam, gcrypt], name
    assert sum(told) > (tmp_path / "list.json").stat().st_size


def osv(**changes: Any) -> dict[str, Any]:
    affected = {
        "package": {"ecosystem": "Ubuntu:24.04:LTS", "name": "a"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2"}]}],
    }
    return {"id": "USN-1-1", "affected": [{**affected, **changes}]}


def test_records_that_say_less_or_more() -> None:
    def said(record: Any) -> list[Advisory]:
        return list(advisories.of_osv(record, "ubuntu", "noble"))

    assert said(osv()) == [Advisory("USN-1-1", "a", (("", "2"),))]
    assert said(osv() | {"withdrawn": "2024-01-01T00:00:00Z"}) == []
    assert said(osv() | {"upstream": ["CVE-2024-1"]})[0].id == "CVE-2024-1"
    pro = said(osv(package={"ecosystem": "Ubuntu:Pro:24.04:LTS", "name": "a"}))
    assert pro == [Advisory("USN-1-1", "a", (("", "2"),), note="the fix is in Ubuntu Pro")]
    assert said(osv(package={"ecosystem": "Ubuntu:Pro:FIPS:24.04:LTS", "name": "a"})) == []
    events = [{"introduced": "1"}, {"fixed": "2"}, {"introduced": "3"}]
    assert said(osv(ranges=[{"type": "ECOSYSTEM", "events": events}]))[0].ranges == (("1", "2"), ("3", ""))
    last = [{"introduced": "0"}, {"last_affected": "2"}]
    assert said(osv(ranges=[{"type": "ECOSYSTEM", "events": last}]))[0].ranges is None
    assert said(osv(ranges=[{"type": "GIT", "events": [{"introduced": "0"}]}]))[0].ranges is None


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.json", b"no json", "is neither Debian's security tracker's JSON nor OSV, or it is cut short"),
        ("a.json", b'{"openssl": {"CVE-1": {}', "is no JSON: Expecting ',' delimiter"),
        ("a.json", b'{"openssl": {"CVE-1": {}}}', "'openssl' has no entries as Debian's security tracker has them"),
        ("a.json", b'{"openssl": {}', "is neither Debian's security tracker's JSON nor OSV, or it is cut short"),
        ("a.json", b'{"id": 7}', "a record is not as OSV has them"),
        ("a.json", b'{"id": ', "is no JSON: Expecting value"),
        ("a.json", b"\xff\xfe", "cannot be read: 'utf-8' codec can't decode byte 0xff in position 0"),
        ("a.json", b'{"metadata": {"@context": "https://openvex.dev/ns/v0.2.0"}, "statements": []}', "is OpenVEX, "),
    ],
)
def test_data_that_is_none_is_refused_with_what_it_is(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(BadDataError) as caught:
        list(advisories.read(tmp_path / name, "debian", "bookworm", lambda step: None))
    assert words in str(caught.value)


def test_archives_that_are_damaged(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "whole.tar.xz", "w:xz") as tar:
        tar.add(FIXTURES / "pam.osv.json", "pam.json")
    (tmp_path / "cut.tar.xz").write_bytes((tmp_path / "whole.tar.xz").read_bytes()[:200])
    with pytest.raises(BadDataError, match=r"cut\.tar\.xz"):
        list(advisories.read(tmp_path / "cut.tar.xz", "ubuntu", "noble", lambda step: None))


@given(
    st.recursive(
        st.none() | st.text(max_size=3) | st.integers(),
        lambda some: (
            st.lists(some, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "affected", "package", "ranges", "releases", "bookworm", "status"]),
                some,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_or_refused(value: Any) -> None:
    with suppress(BadDataError):
        assert all(isinstance(one, Advisory) for one in advisories.of_osv(value, "debian", "bookworm"))
    with suppress(BadDataError):
        assert all(isinstance(one, Advisory) for one in advisories.of_tracker("a", value, "bookworm"))


PAIRS = {
    ("1.0~rc1-1", "1.0-1"): True,
    ("1.0-1", "1.0-1"): False,
    ("1:0.9-1", "1.0-1"): False,
    ("3.0.9-1~deb12u1", "3.0.10-1"): True,
    ("6.8.0-151.151", "6.8.0-31.31"): False,
    ("2+b1", "2"): False,
}


def test_versions_are_compared_as_dpkg_does() -> None:
    told: list[int] = []
    assert earlier([*PAIRS, *PAIRS], told.append) == PAIRS
    assert told == [len(PAIRS)]
    many = {(str(number), "300"): number < 300 for number in range(450)}
    assert earlier(many, told.append) == many


def judged(version: str, *ranges: tuple[str, str]) -> tuple[str, str]:
    source = Source("a", version, "debian")
    order = earlier([(version, end) for one in ranges for end in one if end], lambda step: None)
    found = judge(source, Advisory("CVE-2099-1", "a", ranges), order)
    return found.state, found.fixed


@pytest.mark.parametrize(
    ("version", "ranges", "state"),
    [
        ("1", [("", "2")], ("affected", "2")),
        ("2", [("", "2")], ("fixed", "2")),
        ("2", [("", "")], ("affected", "")),
        ("1", [("2", "3")], ("not-affected", "")),
        ("2", [("2", "3")], ("affected", "3")),
        ("5", [("1", "2"), ("4", "6")], ("affected", "6")),
        ("3", [("1", "2"), ("4", "6")], ("fixed", "2")),
        ("9", [("1", "2"), ("4", "6")], ("fixed", "6")),
        ("9", [], ("not-affected", "")),
    ],
)
def test_what_a_version_is(version: str, ranges: list[tuple[str, str]], state: tuple[str, str]) -> None:
    assert judged(version, *ranges) == state


def test_what_nobody_knows_is_unknown_and_rows_come_by_number_once() -> None:
    known = {"a": [Advisory(name, "a", None) for name in ("CVE-2099-10", "CVE-2099-9", "CVE-2099-9", "USN-1-1")]}
    found = verdicts([Source("a", "1", "debian")], known, {})
    assert [(row.id, row.state) for row in found] == [
        ("CVE-2099-9", "unknown"),
        ("CVE-2099-10", "unknown"),
        ("USN-1-1", "unknown"),
    ]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site whose only image has the bill of materials above."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "netboot.yaml").write_text("site: lab\nprovisioning: {url: http://192.0.2.1:8080}\n")
    files = samples.parts(tmp_path / "parts", "one")
    (tmp_path / "parts/sbom").write_bytes(bill())
    files["sbom"] = tmp_path / "parts/sbom"
    data = samples.manifest(files).to_bytes()
    Store(tmp_path / "store").add_image(data, KEY.sign(data), files)
    return tmp_path


def test_the_command_for_people_and_for_programs(site: Path, run: Run) -> None:
    done = run("image", "audit", "sample", "--data", FIXTURES / "tracker.json")
    assert done.status == 6
    assert [line.split() for line in done.out.splitlines()[1:5]] == [
        ["CVE-2099-3", "linux", "6.1.192-1", "affected", "6.1.200-1", "high"],
        ["CVE-2024-0727", "openssl", "3.0.11-1~deb12u2", "affected", "3.0.13-1~deb12u1", "not", "yet", "assigned"],
        ["CVE-2099-9", "openssl", "3.0.11-1~deb12u2", "unknown", "not", "yet", "assigned"],
        ["CVE-2099-2", "zlib", "1:1.2.13.dfsg-1", "affected", "unimportant"],
    ]
    assert done.out.splitlines()[5:-1] == [
        "",
        "sample: 4 source packages looked up; 3 affected, 1 unknown, 0 fixed, 1 not-affected",
        "not looked up, for they are not the distribution's: kubelet (kubernetes)",
    ]
    assert "CVE-2099-10001" in run("image", "audit", "sample", "--all", "--data", FIXTURES / "tracker.json").out
    value = run("image", "audit", "sample", "--data", FIXTURES / "tracker.json", "-o", "json").json
    assert value["summary"] == {"affected": 3, "unknown": 1, "fixed": 0, "not-affected": 1}
    assert (value["sources"], value["with_entries"]) == (4, 3)
    assert value["not_looked_up"] == [{"name": "kubelet", "version": "1.34.4-1.1", "publisher": "kubernetes"}]
    assert value["vulnerabilities"][-1] == {
        "id": "CVE-2099-2",
        "package": "zlib",
        "version": "1:1.2.13.dfsg-1",
        "state": "affected",
        "fixed": "",
        "urgency": "unimportant",
        "note": "Minor issue ignored",
    }


@pytest.mark.parametrize(
    ("entry", "status"),
    [
        ({"status": "open"}, 7),
        ({"status": "undetermined"}, 5),
        ({"status": "resolved", "fixed_version": "1"}, 5),
        ({"status": "resolved", "fixed_version": "99"}, 6),
    ],
)
def test_exit_statuses_keep_the_outcomes_apart(site: Path, run: Run, entry: dict[str, str], status: int) -> None:
    """5 where all is fixed too: of the kubelet nobody has told anything."""
    (site / "data.json").write_text(json.dumps({"bash": {"CVE-2099-1": {"releases": {"bookworm": entry}}}}))
    assert run("image", "audit", "sample", "--data", site / "data.json").status == status


def test_data_of_another_release_is_no_answer(site: Path, run: Run) -> None:
    done = run("image", "audit", "sample", "--data", FIXTURES / "pam.osv.json")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        f"Error: {FIXTURES}/pam.osv.json says nothing of debian bookworm, which the image is of: no answer can be had "
        "from it (docs/audit.md says which files there are)\n"
    )


def test_an_image_without_a_bill_of_materials(site: Path, run: Run) -> None:
    digest = samples.add(Store(site / "store"), site / "more", "two", name="other")
    done = run("image", "audit", "other", "--data", FIXTURES / "tracker.json")
    assert (done.status, done.err) == (
        3,
        f"Error: image {digest[:12]} has no bill of materials: the netboot that built it made none; build it again\n",
    )
