"""The documents of an image: whole, the same for the same tree, and about every installed package."""

import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.model.bom import Bom
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.manifest import Artifact, ContainerImage
from images.build.documents import licences, listing, provenance, sbom
from images.build.step import Product
from images.build.steps import documents
from images.errors import CorruptError
from images.formats import debian
from images.formats.debian import Origin, Package
from images.values.digests import canonical
from tests.unit.images.debian_tree import STATUS, tree

SUBJECT = sbom.Subject("sample", "e" * 64, "debian", "bookworm", "amd64", 1_700_000_000)
WEB = ContainerImage(name="localhost/web:1", digest="7" * 64, size=5)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def run_step(folder: Path, name: str = "out") -> Path:
    base, configured, kernel = (
        tree(folder)
        if not (folder / "base").exists()
        else tuple(Product(str(n), folder / part) for n, part in enumerate(("base", "configured", "kernel")))
    )
    out = folder / name
    out.mkdir()
    releases = (("http://deb.example/debian/", "bookworm", "1" * 64), ("file:", "/", "2" * 64))
    steps, tools = (("bootstrap", 1, "3" * 64),), {"zstd": "zstd 1.5", "mksquashfs": "mksquashfs 4.5"}
    inputs = documents.Inputs(base, configured, kernel, SUBJECT, {"name": "sample"}, steps, tools, releases, (WEB,))
    documents.documents(inputs, out, lambda line: None)
    return out


def test_the_same_tree_has_the_same_documents(tmp_path: Path) -> None:
    first, second = run_step(tmp_path), run_step(tmp_path, "again")
    names = {path.name for path in first.iterdir()}
    assert names == {"config", "files", "sbom", "licences", "predicate.json"}
    assert {name: (second / name).read_bytes() for name in names} == {
        name: (first / name).read_bytes() for name in names
    }
    assert (first / "config").read_text() == "CONFIG_A=y\n# CONFIG_B is not set\n"
    assert documents.artifacts(Product("", first)).keys() == {"config", "files", "sbom", "licences"}


def test_a_kernel_without_a_configuration_has_no_such_artifact(tmp_path: Path) -> None:
    tree(tmp_path)
    (tmp_path / "configured/root/boot/config-6.1").unlink()
    assert "config" not in documents.artifacts(Product("", run_step(tmp_path)))


def test_every_path_of_the_root_is_listed(tmp_path: Path) -> None:
    found = {entry.pop("path"): entry for entry in lines(run_step(tmp_path) / "files")}
    there = [path.relative_to(tmp_path / "kernel/root") for path in (tmp_path / "kernel/root").rglob("*")]
    assert set(found) == {"/", *(f"/{path}" for path in there)}
    owner = {"uid": os.getuid(), "gid": os.getgid()}
    digest = hashlib.sha256(b"xxx").hexdigest()
    assert found["/usr/bin/x"] == {"kind": "file", "mode": "4755", "size": 3, "sha256": digest, **owner}
    assert found["/bin"] == {"kind": "link", "mode": "0777", "target": "usr/bin", **owner}
    assert found["/pipe"]["kind"] == "pipe"
    assert list(found).index("/usr/share") < list(found).index("/usr.d"), "a folder's content comes before its brother"


def test_extended_attributes_and_names_that_are_no_text(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/a\xff\n"
    Path(os.fsdecode(odd)).write_bytes(b"")
    os.setxattr(odd, "user.netboot", b"\x01")
    out = io.BytesIO(b"".join(map(canonical, listing.entries(tmp_path))))
    entries = list(listing.read(out))
    assert [(entry["path"], entry.get("attributes")) for entry in entries] == [
        ("/", None),
        ("/a\udcff\n", {"user.netboot": "01"}),
    ]


@given(st.sets(st.text("ab./\n\udcff", min_size=1, max_size=4), max_size=12))
def test_a_listing_is_read_in_its_order_and_in_no_other(names: set[str]) -> None:
    paths = sorted((f"/{name}" for name in names), key=listing.order)
    entries = [{"path": path, "kind": "folder", "mode": "0755"} for path in paths]
    data = [canonical(entry) for entry in entries]
    assert list(listing.read(io.BytesIO(b"".join(data)))) == entries
    if len(data) > 1:
        with pytest.raises(CorruptError) as caught:
            list(listing.read(io.BytesIO(b"".join(reversed(data)))))
        assert str(caught.value) == "line 2 of the listing of files is not one: build the image again"


LISTED = """
import sys
from pathlib import Path
from images.build.documents import listing
print(sys.getfilesystemencoding(), listing.write(Path(sys.argv[1]), Path(sys.argv[2])))
"""


def test_a_listing_is_the_same_whatever_the_locale_makes_of_names(tmp_path: Path) -> None:
    """ca-certificates has such a name; so has whoever builds by another locale another image."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for raw in ("NetLock_Főtanúsítvány.pem".encode(), b"latin-\xe9", b"a", b"z"):
        (tree / os.fsdecode(raw)).symlink_to(os.fsdecode(raw))
    said = []
    for name, locale in (("utf-8", {"LC_ALL": "C.UTF-8"}), ("ascii", {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"})):
        argv = [sys.executable, "-c", LISTED, str(tree), str(tmp_path / name)]
        done = subprocess.run(argv, env=locale | {"PYTHONUTF8": "0"}, capture_output=True, text=True, check=True)
        said.append(done.stdout)
    assert said == ["utf-8 5\n", "ascii 5\n"]
    assert (tmp_path / "ascii").read_bytes() == (tmp_path / "utf-8").read_bytes()
    assert [entry["path"] for entry in lines(tmp_path / "utf-8")][3] == "/latin-\udce9"


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_are_no_listing(data: bytes) -> None:
    with pytest.raises(CorruptError):
        list(listing.read(io.BytesIO(data)))


def test_the_bill_has_every_installed_package(tmp_path: Path) -> None:
    out = run_step(tmp_path)
    value = json.loads((out / "sbom").read_bytes())
    found = {part["name"]: part for part in value["components"]}
    assert found.keys() == {"gcc-12-base", "kubelet", "libgcc-s1", "tzdata", "localhost/web"}
    assert {name: part.get("purl") for name, part in found.items()} == {
        "gcc-12-base": "pkg:deb/debian/gcc-12-base@12.2.0-14?arch=amd64&distro=bookworm&upstream=gcc-12",
        "kubelet": "pkg:deb/the-kubernetes-authors/kubelet@1.34.4-1.1?arch=amd64&distro=bookworm",
        "libgcc-s1": "pkg:deb/debian/libgcc-s1@12.2.0-14%2Bb1?arch=amd64&distro=bookworm&upstream=gcc-12%4012.2.0-14",
        "tzdata": "pkg:deb/debian/tzdata@2026a-0?arch=all&distro=bookworm",
        "localhost/web": None,
    }
    licence = [{"license": {"id": "GPL-2.0-only"}}, {"license": {"id": "MIT"}}]
    for name in ("gcc-12-base", "libgcc-s1"):  # the second by the first, which is of the same source
        assert found[name]["licenses"] == [*licence, {"license": {"name": "GPL-3+ with GCC exception"}}]
    assert "licenses" not in found["kubelet"], "a text that nobody but a person can read says nothing for certain"
    assert found["kubelet"]["hashes"] == [{"alg": "SHA-256", "content": "d" * 64}]
    assert "hashes" not in found["tzdata"], "no list of apt's has it"
    assert (value["specVersion"], value["metadata"]["timestamp"]) == ("1.6", "2023-11-14T22:13:20+00:00")
    assert (out / "sbom").read_bytes() == canonical(value)


def test_the_library_reads_the_bill_back(tmp_path: Path) -> None:
    value = json.loads((run_step(tmp_path) / "sbom").read_bytes())
    bom = Bom.from_json(value)  # type: ignore[attr-defined]
    assert {part.name for part in bom.components} == {"gcc-12-base", "kubelet", "libgcc-s1", "tzdata", "localhost/web"}
    assert bom.validate()
    (all_of_it,) = [one for one in bom.dependencies if one.ref.value == "image"]
    assert len(all_of_it.dependencies) == 5


def test_a_bills_serial_number_is_of_its_content() -> None:
    package = Package("a", "1", "all", "a", "1")

    def serial(version: str) -> str:
        changed = Package("a", version, "all", "a", version)
        number: str = json.loads(sbom.sbom(SUBJECT, [changed], {}, {}))["serialNumber"]
        return number

    assert serial("1") == json.loads(sbom.sbom(SUBJECT, [package], {}, {}))["serialNumber"]
    assert serial("1") != serial("2")


def test_licences_are_listed_with_what_is_known_of_them(tmp_path: Path) -> None:
    found = {entry["package"]: entry for entry in lines(run_step(tmp_path) / "licences")}
    dep5 = {
        "file": "/usr/share/doc/gcc-12-base/copyright",
        "form": "dep-5",
        "licences": ["Expat", "GPL-2 or Expat", "GPL-3+ with GCC exception"],
        "refers_to": ["GPL-3"],
    }
    for name in ("gcc-12-base", "libgcc-s1"):
        assert {key: found[name][key] for key in dep5} == dep5
    assert (found["kubelet"]["form"], found["kubelet"]["refers_to"]) == ("text", ["Apache-2.0"])
    assert (found["tzdata"]["form"], found["tzdata"]["file"], found["tzdata"]["licences"]) == ("none", None, [])


@pytest.mark.parametrize(
    ("name", "identifiers"),
    [
        ("GPL-2+", ["GPL-2.0-or-later"]),
        ("LGPL-2.1", ["LGPL-2.1-only"]),
        ("LGPL-2", ["LGPL-2.0-only"]),
        ("GPL-2.1", [None]),
        ("GPL", [None]),
        ("GPL-2+ or Expat, and BSD-3-clause", ["GPL-2.0-or-later", "MIT", "BSD-3-Clause"]),
        ("GPL-2+ with Autoconf exception", [None]),
        ("public-domain", [None]),
        ("MIT", [None]),
    ],
)
def test_short_names_become_spdx_identifiers_only_where_that_is_certain(
    name: str, identifiers: list[str | None]
) -> None:
    assert [licences.spdx(atom) for atom in licences.atoms(name)] == identifiers


def test_spdx_identifiers_are_of_spdxs_list() -> None:
    from cyclonedx.spdx import is_supported_id

    gnu = [
        licences.spdx(f"{family}-{version}{later}")
        for family in ("GPL", "LGPL", "AGPL", "GFDL")
        for version in ("1", "2", "2.1", "3")
        for later in ("", "+")
    ]
    assert [name for name in (*licences.SPDX.values(), *filter(None, gnu)) if not is_supported_id(name)] == []


def test_provenance_is_an_in_toto_statement_about_every_artifact(tmp_path: Path) -> None:
    predicate = json.loads((run_step(tmp_path) / "predicate.json").read_bytes())
    part = Artifact(sha256="9" * 64, size=1)
    made = provenance.statement({"root": part, "kernel": part}, predicate)
    value = json.loads(made)
    assert made == canonical(value)
    assert (value["_type"], value["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    assert value["subject"] == [{"name": name, "digest": {"sha256": "9" * 64}} for name in ("kernel", "root")]
    definition = value["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {"identity": "e" * 64, "recipe": {"name": "sample"}}
    assert definition["internalParameters"] == {
        "steps": [{"name": "bootstrap", "version": 1, "identity": "3" * 64}],
        "tools": [
            {"name": "mksquashfs", "version": "mksquashfs 4.5"},
            {"name": "zstd", "version": "zstd 1.5"},
        ],
    }
    assert definition["resolvedDependencies"] == [
        {
            "name": "InRelease of bookworm",
            "uri": "http://deb.example/debian/dists/bookworm/InRelease",
            "digest": {"sha256": "1" * 64},
        },
        {"name": "InRelease of /", "uri": "file:", "digest": {"sha256": "2" * 64}},
        {
            "uri": "pkg:deb/debian/gcc-12-base@12.2.0-14?arch=amd64&distro=bookworm&upstream=gcc-12",
            "digest": {"sha256": "a" * 64},
            "annotations": {"path": "pool/gcc-12-base.deb", "source": "gcc-12", "source_version": "12.2.0-14"},
        },
        {
            "uri": "pkg:deb/the-kubernetes-authors/kubelet@1.34.4-1.1?arch=amd64&distro=bookworm",
            "digest": {"sha256": "d" * 64},
            "annotations": {"path": "./k.deb", "source": "kubelet", "source_version": "1.34.4-1.1"},
        },
        {
            "uri": "pkg:deb/debian/libgcc-s1@12.2.0-14%2Bb1?arch=amd64&distro=bookworm&upstream=gcc-12%4012.2.0-14",
            "digest": {"sha256": "b" * 64},
            "annotations": {"path": "pool/libgcc-s1.deb", "source": "gcc-12", "source_version": "12.2.0-14"},
        },
        {
            "uri": "pkg:deb/debian/tzdata@2026a-0?arch=all&distro=bookworm",
            "annotations": {"source": "tzdata", "source_version": "2026a-0"},
        },
    ]


def test_two_mirrors_with_different_files_of_one_version_are_both_named(tmp_path: Path) -> None:
    lists = tree(tmp_path)[0] / "root/var/lib/apt/lists"
    text = (lists / "deb.example_debian_dists_bookworm_main_binary-amd64_Packages").read_text()
    (lists / "other_Packages").write_text(text.replace("a" * 64, "f" * 64))
    found = debian.origins(lists, frozenset({("gcc-12-base", "12.2.0-14", "amd64")}))
    path, size = "pool/gcc-12-base.deb", 7
    assert found == {
        ("gcc-12-base", "12.2.0-14", "amd64"): (
            Origin("Debian", "a" * 64, path, size),
            Origin("", "f" * 64, path, size),
        )
    }
    (made,) = provenance.package_dependencies(
        SUBJECT, [Package("gcc-12-base", "12.2.0-14", "amd64", "gcc-12", "12.2.0-14")], found
    )
    assert made["annotations"]["sha256_one_of"] == ["a" * 64, "f" * 64]
    assert "digest" not in made


def test_what_is_installed_is_what_dpkg_says_is() -> None:
    assert [package.identity for package in debian.installed(STATUS)] == [
        ("gcc-12-base", "12.2.0-14", "amd64"),
        ("kubelet", "1.34.4-1.1", "amd64"),
        ("libgcc-s1", "12.2.0-14+b1", "amd64"),
        ("tzdata", "2026a-0", "all"),
    ]


@given(st.text("ab:\n \t-.", max_size=60))
def test_any_text_has_paragraphs_of_fields(text: str) -> None:
    for fields in debian.paragraphs(text):
        assert fields
        assert all(":" not in name and name.strip() == name for name in fields)


def test_one_file_in_two_lists_is_one_origin(tmp_path: Path) -> None:
    """Debian's point releases have what security had, under another path."""
    lists = tree(tmp_path)[0] / "root/var/lib/apt/lists"
    text = (lists / "deb.example_debian_dists_bookworm_main_binary-amd64_Packages").read_text()
    (lists / "other_Packages").write_text(text.replace("pool/", "pool/updates/"))
    wanted = ("gcc-12-base", "12.2.0-14", "amd64")
    found = debian.origins(lists, frozenset({wanted}))
    assert found == {wanted: (Origin("Debian", "a" * 64, "pool/gcc-12-base.deb", 7),)}
