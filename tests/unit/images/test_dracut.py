"""An initrd by dracut: what a recipe may say of it, what of dracut's archive stays, what is known of its packages."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build import initrd
from images.build.documents import parts
from images.build.dracut import ARCHIVE, COPYRIGHTS, FOLDER, PACKAGES, framed, settled
from images.build.gates.checks import identity, sources, tools
from images.build.sources import Mirror
from images.build.steps import bootstrap, dracut
from images.errors import CommandError, LockError, RecipeError
from images.formats import cpio
from images.formats.debian import Package
from images.formats.overlay import Entry
from images.recipe.dracut import Dracut
from images.recipe.inherit import load
from images.recipe.pinning import lock_of
from tests.unit.images.gate_facts import facts
from tests.unit.images.test_recipe import MINIMAL, faults, write

MIRROR = Mirror("http://m.example/d", ("a",), ("main",), b"key", ".asc", ("1" * 64,), 1000)
WANTED = Dracut(modules=("multipath",), packages=("multipath-tools",), arguments=("rd.multipath=default",))
CONF = Entry("/etc/multipath.conf", content=b"defaults {}")
INPUTS = dracut.Inputs("bookworm", "amd64", (MIRROR,), WANTED, ("usr-is-merged",), 1000, (CONF,))
STATUS = """\
Package: {name}
Status: install ok installed
Architecture: amd64
Version: 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key.asc").write_text("a key")
    return tmp_path


def test_an_heir_says_more_of_dracut(folder: Path) -> None:
    write(folder, MINIMAL + "dracut: {modules: [iscsi], packages: [open-iscsi]}\n", "base.yaml")
    heir = load(write(folder, "base: base.yaml\ndracut: {modules: [multipath], arguments: ['ip=ib0:dhcp']}\n"))
    assert heir.dracut == Dracut(modules=("iscsi", "multipath"), packages=("open-iscsi",), arguments=("ip=ib0:dhcp",))
    assert load(write(folder, "base: base.yaml\ndracut: null\n")).dracut is None
    assert load(write(folder, MINIMAL)).dracut is None
    assert load(write(folder, MINIMAL + "dracut: {}\n")).dracut == Dracut()


def test_what_dracut_may_not_be_told_is_refused_with_its_line(folder: Path) -> None:
    text = "dracut:\n  modules: [multi_path]\n  arguments:\n"
    said = (
        "rd.shell",
        "rd.break=mount",
        "netboot.image=1",
        "root=/dev/sda",
        "rd.iscsi.password=x",
        "netroot=iscsi:u:p@h::::t",
    )
    path = write(folder, MINIMAL + text + "".join(f"  - {word}\n" for word in said))
    free, open_to_all = (
        "is none that dracut may be told here; leave it out",
        "would be a secret in a file that everybody",
    )
    every = "is said to every initrd by dracut (rd.neednet=1 rd.shell=0 rd.emergency=reboot); leave it out"
    assert faults(path).splitlines() == [
        "mine.yaml:14: dracut.modules[0]: 'multi_path' is not the name of a module of dracut's",
        f"mine.yaml:16: dracut.arguments[0]: 'rd.shell' {every}",
        f"mine.yaml:17: dracut.arguments[1]: 'rd.break' {free}",
        f"mine.yaml:18: dracut.arguments[2]: 'netboot.image' {free}",
        f"mine.yaml:19: dracut.arguments[3]: 'root' {free}",
        f"mine.yaml:20: dracut.arguments[4]: 'rd.iscsi.password' {open_to_all} on the boot network can read",
        f"mine.yaml:21: dracut.arguments[5]: 'netroot' {open_to_all} on the boot network can read",
    ]


def test_a_lock_and_dracut_do_not_go_together(folder: Path) -> None:
    (folder / "a.lock").write_text("{}")
    recipe = load(write(folder, MINIMAL + "dracut: {}\nlock: a.lock\n"))
    with pytest.raises(LockError) as caught:
        lock_of(recipe)
    assert str(caught.value) == (
        "a lock does not have the packages that dracut's initrd is made of: no lock, or no dracut"
    )


ENTRIES = st.lists(
    st.tuples(st.from_regex(r"[a-z]{1,6}(/[a-z]{1,6})?", fullmatch=True), st.binary(max_size=40)),
    unique_by=lambda item: item[0].partition("/")[0],
    max_size=6,
)


@given(ENTRIES)
def test_what_is_written_is_read_again(files: list[tuple[str, bytes]]) -> None:
    made = [cpio.directory("d", 0o700), cpio.symlink("l", "to"), cpio.character_device("n", 5, 1)]
    made += [cpio.file(f"f{path}", data, 0o640) for path, data in files]
    found = {entry.path: entry for entry in cpio.read(cpio.archive(made))}
    assert [found[entry.path] for entry in made] == made


@given(st.binary(max_size=300))
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^no entry at byte|is not all there$"):
        list(cpio.read(data))


def test_a_file_of_two_names_is_refused() -> None:
    data = bytearray(cpio.archive([cpio.file("a", b"1")]))
    data[6 + 4 * 8 : 6 + 5 * 8] = b"00000002"
    with pytest.raises(ValueError, match=r"^'a' has 2 names$"):
        list(cpio.read(bytes(data)))


def test_ours_go_where_dracut_has_its_own_and_what_is_another_each_time_goes() -> None:
    theirs = cpio.archive(
        [
            cpio.symlink("lib", "usr/lib"),
            cpio.file("usr/lib/netboot/words.sh", b"old"),
            cpio.file("var/cache/ldconfig/aux-cache", b"inodes"),
            cpio.file("init", b"dracut's", 0o755),
        ],
        mtime=5,
    )
    assert settled(theirs) == settled(settled(theirs)) != theirs
    ours = [cpio.file("lib/netboot/words.sh", b"ours"), cpio.file("etc/netboot/keys/a.pub", b"key")]
    found = {entry.path: entry.data for entry in framed(settled(theirs), ours) if entry.data}
    assert found == {
        "lib": b"usr/lib",
        "usr/lib/netboot/words.sh": b"ours",
        "init": b"dracut's",
        "etc/netboot/keys/a.pub": b"key",
    }


def test_what_is_ours_in_it_is_the_stage_and_the_hooks() -> None:
    names = {path for path, _ in initrd.stage_files(debug=False, dracut=True)}
    common = {path for path, _ in initrd.stage_files(debug=False)} - {"/init"}
    assert names - common == {
        "/lib/netboot/dracut.sh",
        "/lib/dracut/hooks/cmdline/85-netboot.sh",
        "/lib/dracut/hooks/mount/50-netboot.sh",
        "/lib/dracut/hooks/emergency/99-netboot.sh",
    }
    assert common <= names


def test_it_reads_the_same_parts_as_init() -> None:
    lines = [
        next(line for line in path.read_text().splitlines() if line.startswith("for part in "))
        for path in (initrd.STAGE / "init", FOLDER / "stage.sh")
    ]
    assert lines[0] == lines[1]


class Root:
    """In the place of mmdebstrap and of dracut: packages, and an archive of a program and a script."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.says: tuple[str, ...] = ()
        self.refuses: CommandError | None = None
        monkeypatch.setattr(bootstrap, "bootstrap", self.bootstrap)
        monkeypatch.setattr(dracut, "run", self.run)
        monkeypatch.setattr(os, "lchown", lambda *_: None)  # root's alone; that files are root's is in tests/tools

    def bootstrap(self, inputs: bootstrap.Inputs, out: Path, say: object) -> None:
        self.asked = inputs
        root = out / "root"
        info = root / "var/lib/dpkg/info"
        for path in (info, root / "var/lib/apt/lists", root / "usr/lib/dracut/modules.d", root / "usr/sbin"):
            path.mkdir(parents=True)
        (root / "sbin").symlink_to("usr/sbin")
        (root / "usr/sbin/multipathd").write_bytes(b"1")
        lists = {
            "multipath-tools": "/.\n/sbin\n/sbin/multipathd\n",
            "other": "/usr/sbin/multipathd\n",
            "perl": "/usr/sbin\n",
        }
        for name, text in (*lists.items(), ("dracut-core", "/usr/bin/dracut\n")):
            (info / f"{name}.list").write_text(text)
            (root / f"usr/share/doc/{name}").mkdir(parents=True)
            (root / f"usr/share/doc/{name}/copyright").write_text(f"of {name}")
        (root / "var/lib/dpkg/status").write_text(
            "\n".join(STATUS.format(name=name) for name in ("dracut-core", *lists))
        )

    def run(self, argv: list[object], **options: object) -> str:
        words = [str(word) for word in argv]
        if words[0] != "unshare":
            return ""
        self.command, self.options = words, options
        say = options["on_line"]
        assert callable(say)
        for line in self.says:
            say(line)
        if self.refuses:
            raise self.refuses
        root = Path(words[words.index("chroot") + 1])
        self.configuration = (root / "etc/multipath.conf").read_bytes()
        self.module = (root / "usr/lib/dracut/modules.d/95netboot/module-setup.sh").read_text()
        (root / ARCHIVE).write_bytes(cpio.archive([cpio.file("usr/sbin/multipathd", b"1"), cpio.file("init", b"#!")]))
        return ""


def test_what_dracut_is_asked_for_and_what_is_known_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = Root(monkeypatch)
    dracut.dracut(INPUTS, tmp_path, lambda _: None)
    assert root.asked.packages == (
        *("busybox-static", "dracut-core", "dracut-network", "iproute2", "mount", "multipath-tools"),
        *("procps", "signify-openbsd", "usr-is-merged"),
    )
    said = dict(zip(root.command, root.command[1:], strict=False))
    assert said["--modules"] == "dash base udev-rules network network-legacy netboot multipath"
    assert said["--kernel-cmdline"] == "rd.neednet=1 rd.shell=0 rd.emergency=reboot rd.multipath=default"
    assert {"--no-hostonly", "--no-kernel", "--reproducible", "--no-early-microcode", "--net"} <= set(root.command)
    assert root.module == (FOLDER / "module-setup.sh").read_text()
    assert root.configuration == CONF.content
    document = json.loads((tmp_path / PACKAGES).read_bytes())
    assert [one["name"] for one in document["packages"]] == ["dracut-core", "multipath-tools", "other"]
    assert document["owners"] == {"/usr/sbin/multipathd": ["multipath-tools", "other"]}
    assert (tmp_path / COPYRIGHTS / "usr/share/doc/other/copyright").read_text() == "of other"
    assert not (tmp_path / COPYRIGHTS / "usr/share/doc/perl").exists()
    core = Package("dracut-core", "1", "amd64", "dracut-core", "1")
    assert [one.package.name for one in parts.only_in(document, [core])] == ["multipath-tools", "other"]


def test_what_dracut_does_not_do_is_told_in_its_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = Root(monkeypatch)
    root.says = (
        "dracut: *** Including module: dash ***",
        "dracut: dracut module 'iscsy' cannot be found or installed.",
    )
    with pytest.raises(RecipeError) as caught:
        dracut.dracut(INPUTS, tmp_path / "one", lambda _: None)
    assert str(caught.value) == "dracut: dracut module 'iscsy' cannot be found or installed."
    root.refuses = CommandError("dracut", 1, "no space left")
    with pytest.raises(RecipeError) as caught:
        dracut.dracut(INPUTS, tmp_path / "two", lambda _: None)
    assert str(caught.value) == "dracut: no space left"


def test_gates_look_at_packages_and_files_of_the_initrd_too(tmp_path: Path) -> None:
    plain = facts(tmp_path)
    stranger = ("multipath-tools", "0.9-1", "amd64")
    assert [one.cause for one in sources.check(replace(plain, early_packages=(stranger,)))] == [
        "the package multipath-tools 0.9-1 (amd64) is in none of the recipe's signed sources"
    ]
    there = replace(plain, early_paths=("/usr/sbin/iscsid", "/etc/iscsid"))
    assert [(one.cause, one.remedy) for one in tools.check(there)] == [
        (
            "the initrd lacks the kernel module iscsi_tcp, which its /usr/sbin/iscsid asks for",
            "add iscsi_tcp to modules.initrd",
        )
    ]
    named = [
        path for path in ("/etc/iscsi/initiatorname.iscsi", "/etc/machine-id", "/init") if identity.names_one(path)
    ]
    assert named == ["/etc/iscsi/initiatorname.iscsi", "/etc/machine-id"]
