"""A small tree as dpkg and apt leave one: two packages of one source, one of another publisher, one that is gone."""

import os
from pathlib import Path

from images.build.step import Product

STATUS = """\
Package: gcc-12-base
Status: install ok installed
Maintainer: GCC <gcc@example.org>
Architecture: amd64
Source: gcc-12
Version: 12.2.0-14
Description: base
 Version: 9 (a later line of a field is no field)

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: kubelet
Status: install ok installed
Maintainer: Kubernetes <k8s@example.org>
Architecture: amd64
Version: 1.34.4-1.1
Homepage: https://kubernetes.io

Package: libgcc-s1
Status: install ok installed
Maintainer: GCC <gcc@example.org>
Architecture: amd64
Source: gcc-12 (12.2.0-14)
Version: 12.2.0-14+b1

Package: tzdata
Status: install ok installed
Architecture: all
Version: 2026a-0

"""
LIST = """\
Package: gcc-12-base
Architecture: amd64
Version: 12.2.0-14
Filename: pool/gcc-12-base.deb
Size: 7
SHA256: {a}

Package: libgcc-s1
Architecture: amd64
Version: 12.2.0-14+b1
Filename: pool/libgcc-s1.deb
Size: 8
SHA256: {b}

Package: libgcc-s1
Architecture: amd64
Version: 13
SHA256: {c}
"""
DEP5 = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: gcc

Files: *
Copyright: somebody
License: GPL-3+ with GCC exception
 The text, and
 License: of-a-text

Files: a
License: GPL-2 or Expat

License: Expat
 Permission is hereby granted; see /usr/share/common-licenses/GPL-3.
"""


def tree(folder: Path) -> tuple[Product, Product, Product]:
    """The products of bootstrap, configure and kernel."""
    base, configured, kernel = (folder / name for name in ("base", "configured", "kernel"))
    lists = base / "root/var/lib/apt/lists"
    lists.mkdir(parents=True)
    host = "deb.example_debian_dists_bookworm"
    (lists / f"{host}_InRelease").write_text("-----BEGIN PGP SIGNED MESSAGE-----\n\nOrigin: Debian\nCodename: x\n")
    (lists / f"{host}_main_binary-amd64_Packages").write_text(LIST.format(a="a" * 64, b="b" * 64, c="c" * 64))
    (lists / "_srv_kube_._InRelease").write_text("Origin: The Kubernetes Authors\n")
    kubelet = "Package: kubelet\nVersion: 1.34.4-1.1\nArchitecture: amd64\nFilename: ./k.deb\nSize: 9\nSHA256: "
    (lists / "_srv_kube_._Packages").write_text(f"{kubelet}{'d' * 64}")
    (lists / "empty_Packages").write_text("")
    (configured / "root/boot").mkdir(parents=True)
    (configured / "root/boot/config-6.1").write_text("CONFIG_A=y\n# CONFIG_B is not set\n")
    root = kernel / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text(STATUS)
    for name, text in (("gcc-12-base", DEP5), ("kubelet", "See /usr/share/common-licenses/Apache-2.0.\n")):
        (root / f"usr/share/doc/{name}").mkdir(parents=True)
        (root / f"usr/share/doc/{name}/copyright").write_text(text)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/x").write_bytes(b"x" * 3)
    (root / "usr/bin/x").chmod(0o4755)
    (root / "usr.d").mkdir()
    (root / "bin").symlink_to("usr/bin")
    os.mkfifo(root / "pipe")
    (kernel / "version").write_text("6.1\n")
    return Product("1", base), Product("2", configured), Product("3", kernel)
