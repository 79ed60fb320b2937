"""Recipes: every fault at once and as a whole message, inheritance, identity."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.errors import RecipeError
from images.formats.overlay import Entry
from images.recipe import inherit
from images.recipe.inherit import SHIPPED, load, merge
from images.recipe.recipe import Recipe
from images.values.strict import FaultsError

MINIMAL = """\
distribution: debian
suite: bookworm
architecture: amd64
sources:
  - url: http://mirror.example/debian
    suites: [bookworm]
    components: [main]
    signed_by: key.asc
kernel:
  package: linux-image-cloud-amd64
packages: [systemd]
budget_mib: 90
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key.asc").write_text("a key")
    return tmp_path


def write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def faults(path: Path) -> str:
    with pytest.raises(FaultsError) as caught:
        load(path)
    return str(caught.value).replace(f"{path.parent}/", "")


def test_a_recipe_with_five_mistakes_reports_all_five(folder: Path) -> None:
    path = write(
        folder,
        """\
distribution: debian
suite: bookworm
architecture: amd46
sources:
  - url: http://mirror.example/debian
    suites: [bookworm]
    components: [main]
    signed_by: keys/none.asc
kernel:
  package: linux-image-cloud-amd64
packges: [systemd]
files:
  /etc/../motd: {content: hello}
budget_mib: 90
""",
    )
    assert faults(path) == (
        "mine.yaml:1: packages: this key is required\n"
        "mine.yaml:3: architecture: must be 'amd64' or 'arm64'\n"
        "mine.yaml:8: sources[0].signed_by: there is no file keys/none.asc\n"
        "mine.yaml:11: packges: unknown key; did you mean 'packages'?\n"
        "mine.yaml:13: files./etc/../motd: "
        "'/etc/../motd' is not an absolute path without '..', '//' or a slash at the end"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("overlay: [nothing]", "13: overlay[0]: there is no folder nothing"),
        ("overlay: [../x]", "13: overlay[0]: '../x' must be relative to the recipe's own folder, without '..'"),
        ("overlay: [/etc]", "13: overlay[0]: '/etc' must be relative to the recipe's own folder, without '..'"),
        ("files: {/a: {source: nothing}}", "13: files./a.source: there is no file nothing"),
        ("files: {/a: {}}", "13: files./a: must have one of content, source and link, and has none"),
        (
            "files: {/a: {content: x, link: /b}}",
            "13: files./a: must have one of content, source and link, and has content and link",
        ),
        ("files: {/a: {link: /b, mode: '0644'}}", "13: files./a: a link has no mode"),
        ("files: {/a: {content: x, mode: 644}}", "13: files./a.mode: must be four octal digits in quotes, like '0644'"),
        (
            "files: {/a: {content: x, mode: '0999'}}",
            "13: files./a.mode: must be four octal digits in quotes, like '0644'",
        ),
        (
            "files: {/a/: {content: x}}",
            "13: files./a/: '/a/' is not an absolute path without '..', '//' or a slash at the end",
        ),
        ("files: {/a: {contnt: x, link: /b}}", "13: files./a.contnt: unknown key; did you mean 'content'?"),
        ("units: {ssh: enable}", "13: units.ssh: 'ssh' is not a systemd unit's whole name, like ssh.service"),
        ("units: {a.service: on}", "13: units.a.service: must be 'enable', 'disable' or 'mask'"),
        ("remove: [usr]", "13: remove[0]: 'usr' is not an absolute path without '..', '//' or a slash at the end"),
        ("remove: [/*]", "13: remove[0]: '/*' may fit whole top-level folders; name what is to go"),
        ("modules: {initrd: [a b]}", "13: modules.initrd[0]: 'a b' is not a kernel module's name"),
        ("modules: {root: some}", "13: modules.root: must be a list of kernel modules, or all"),
        ("container_images: [nothing.tar]", "13: container_images[0]: there is no file nothing.tar"),
        (
            "container_images: [/a.tar]",
            "13: container_images[0]: '/a.tar' must be relative to the recipe's own folder, without '..'",
        ),
        ("join: maybe", "13: join: must be true or false"),
        ("epoch: -1", "13: epoch: must be 0 at least"),
        ("profile: fast", "13: profile: must be 'dev' or 'release'"),
        (
            "base: nothing",
            "13: base: there is no recipe 'nothing'; shipped are " + ", ".join(inherit.shipped()),
        ),
        (
            "base: ./nothing.yaml",
            "13: base: there is no recipe nothing.yaml; shipped are " + ", ".join(inherit.shipped()),
        ),
        ("base: mine.yaml", "13: base: recipes are based on each other in a circle: mine.yaml → mine.yaml"),
    ],
)
def test_one_mistake(folder: Path, line: str, message: str) -> None:
    assert faults(write(folder, f"{MINIMAL}{line}\n")) == f"mine.yaml:{message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[systemd]",
            "[systemd, Not_One]",
            (
                "11: packages[1]: 'Not_One' is not a package "
                "(name, or name=version, or name-{kernel} for the kernel's version)"
            ),
        ),
        ("[systemd]", "[]", "11: packages: must not be empty"),
        (
            "http://mirror.example",
            "http://me:secret@mirror.example",
            (
                "5: sources[0].url: must be a mirror's http:// or https:// address, without user, password or query, "
                "or a folder of this machine as file:///…, without '..'"
            ),
        ),
        (
            "[main]",
            "[]",
            "7: sources[0].components: must not be empty; only a flat repository, with suites: [/], has no components",
        ),
        (
            "  package:",
            "  pakage:",
            (
                "9: kernel.package: this key is required\n"
                "mine.yaml:10: kernel.pakage: unknown key; did you mean 'package'?"
            ),
        ),
        (
            "cloud-amd64\n",
            "cloud-amd64\n  arguments: [quiet, ip=auto6]\n",
            "11: kernel.arguments[1]: 'ip' is for a profile or a class of the inventory; a recipe cannot set it",
        ),
        (
            "cloud-amd64\n",
            "cloud-amd64\n  arguments: [rd.route=x]\n",
            (
                "11: kernel.arguments: "
                "rd.route is dracut's, and not done by this initrd; what it does is in docs/boot-stage.md"
            ),
        ),
        (
            "cloud-amd64\n",
            "cloud-amd64\n  arguments: [netboot.image=x]\n",
            "11: kernel.arguments[0]: 'netboot.image' is set by the service for every boot; leave it out",
        ),
        (
            "http://mirror.example/debian",
            "file:///srv/../root",
            (
                "5: sources[0].url: must be a mirror's http:// or https:// address, without user, password or query, "
                "or a folder of this machine as file:///…, without '..'"
            ),
        ),
        (
            "http://mirror.example/debian",
            "file://host/srv",
            (
                "5: sources[0].url: must be a mirror's http:// or https:// address, without user, password or query, "
                "or a folder of this machine as file:///…, without '..'"
            ),
        ),
        (
            "[bookworm]\n    components",
            "[/]\n    components",
            "7: sources[0].components: must be left out: the suite '/' is flat (it ends in '/') and has no components",
        ),
        (
            "[bookworm]\n    components: [main]\n",
            "[bookworm]\n",
            "5: sources[0].components: must not be empty; only a flat repository, with suites: [/], has no components",
        ),
        (
            "[bookworm]\n    components: [main]\n",
            "[/, bookworm]\n",
            "6: sources[0].suites: has suites that end in '/' (flat) and others; make two sources of them",
        ),
        (
            "    signed_by: key.asc\n",
            "",
            "5: sources[0].signed_by: this key is required",
        ),
        ("key.asc", "/no/such/key.gpg", "8: sources[0].signed_by: there is no file /no/such/key.gpg"),
    ],
)
def test_one_mistake_in_what_every_recipe_has(folder: Path, old: str, new: str, message: str) -> None:
    assert faults(write(folder, MINIMAL.replace(old, new))) == f"mine.yaml:{message}"


def test_a_keyring_without_a_known_ending(folder: Path) -> None:
    (folder / "key.txt").write_text("a key")
    found = faults(write(folder, MINIMAL.replace("key.asc", "key.txt")))
    assert found == (
        "mine.yaml:8: sources[0].signed_by: 'key.txt' must end in .asc (armoured public keys) or .gpg (binary): "
        "apt goes by the name"
    )


def test_mistakes_of_a_recipe_and_of_its_base_are_all_reported(folder: Path) -> None:
    write(folder, MINIMAL + "epoch: -1\nunknown: 1\n", "base.yaml")
    found = faults(write(folder, "base: ./base.yaml\nbudget_mib: 0\npackages: [A]\nsuite: 'x y'\n"))
    assert [line.partition(": ")[0] for line in found.splitlines()] == [
        "base.yaml:13",
        "base.yaml:14",
        "mine.yaml:2",
        "mine.yaml:3",
        "mine.yaml:4",
    ]


def test_a_circle_of_bases_names_it(folder: Path) -> None:
    write(folder, "base: ./mine.yaml\n", "b.yaml")
    found = faults(write(folder, MINIMAL + "base: b.yaml\n"))
    assert found == "b.yaml:1: base: recipes are based on each other in a circle: mine.yaml → b.yaml → mine.yaml"


@pytest.mark.parametrize("text", ["", "- a\n", "just text\n"])
def test_what_is_no_mapping(folder: Path, text: str) -> None:
    assert "mine.yaml:1: " in faults(write(folder, text))


def test_an_heir_replaces_adds_and_keeps(folder: Path) -> None:
    (folder / "base").mkdir()
    (folder / "base/key.asc").write_text("base key")
    (folder / "base/one").mkdir()
    (folder / "base/one/motd").write_text("one")
    (folder / "two").mkdir()
    (folder / "two/motd").write_text("two")
    (folder / "base/x").write_text("of base")
    write(
        folder,
        MINIMAL
        + "name: the-base\noverlay: [one]\nunits: {a.service: enable, b.service: mask}\nremove: [/usr/a]\n"
        + "files: {/etc/x: {source: x, mode: '0600'}, /etc/y: {content: y}}\n"
        + "modules: {initrd: [e1000], root: [ext4]}\n",
        "base/base.yaml",
    )
    path = write(
        folder,
        "base: ./base/base.yaml\npackages: [udev, systemd, dbus]\nbudget_mib: 120\noverlay: [two]\n"
        "modules: {root: all}\n"
        "units: {b.service: enable}\nfiles: {/etc/x: {content: mine}}\nkernel: {arguments: [quiet]}\n",
    )
    recipe = load(path)
    assert recipe.name == "mine"
    assert recipe.packages == ("systemd", "udev", "dbus")
    assert (recipe.budget_mib, recipe.suite, recipe.kernel.package) == (120, "bookworm", "linux-image-cloud-amd64")
    assert recipe.kernel.arguments == ("quiet",)
    assert (recipe.modules.initrd, recipe.modules.root) == (("e1000",), None)
    assert recipe.units == {"a.service": "enable", "b.service": "enable"}
    assert recipe.sources[0].signed_by.read_text() == "base key"
    assert recipe.entries() == (
        Entry("/etc/x", 0o644, b"mine"),
        Entry("/etc/y", 0o644, b"y"),
        Entry("/motd", 0o644, b"two"),
    )


ARGUMENTS = "kernel: {arguments: [panic=30, hugepages=4, hugepagesz=2M, hugepages=4, console=ttyS0, quiet]}\n"


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        ("{arguments: [panic=0]}", "hugepages=4 hugepagesz=2M hugepages=4 console=ttyS0 quiet panic=0"),
        ("{arguments: [hugepages=9]}", "panic=30 hugepagesz=2M console=ttyS0 quiet hugepages=9"),
        ("{remove_arguments: [quiet, console]}", "panic=30 hugepages=4 hugepagesz=2M hugepages=4"),
        (
            "{remove_arguments: [hugepages, hugepagesz, console, panic], arguments: [console=ttyS1]}",
            "quiet console=ttyS1",
        ),
    ],
)
def test_an_heir_replaces_and_removes_the_kernels_arguments_by_name(folder: Path, kernel: str, arguments: str) -> None:
    write(folder, "base: ./base.yaml\n" + ARGUMENTS, "middle.yaml")
    write(folder, MINIMAL, "base.yaml")
    recipe = load(write(folder, f"base: ./middle.yaml\nkernel: {kernel}\n"))
    assert " ".join(recipe.kernel.arguments) == arguments
    assert recipe.kernel.remove_arguments == ()


def test_an_argument_that_nobody_has_cannot_be_removed(folder: Path) -> None:
    write(folder, MINIMAL, "base.yaml")
    write(folder, "base: ./base.yaml\n" + ARGUMENTS, "middle.yaml")
    found = faults(write(folder, "base: ./middle.yaml\nkernel:\n  remove_arguments: [quiet, quite, a=b]\n"))
    inherited = "inherited are panic=30 hugepages=4 hugepagesz=2M console=ttyS0 quiet"
    assert found == (
        f"mine.yaml:3: kernel.remove_arguments[1]: no argument 'quite' is inherited; {inherited}\n"
        "mine.yaml:3: kernel.remove_arguments[2]: must be an argument's name, without = and a value"
    )


TWO = MINIMAL.replace(
    "kernel:\n",
    """\
  - name: extra
    url: https://extra.example/core:/stable:/v1/deb
    suites: [/]
    signed_by: key.asc
kernel:
""",
)


def test_an_heirs_source_takes_the_place_of_the_one_of_its_name(folder: Path) -> None:
    write(folder, TWO, "base.yaml")
    (folder / "mine").mkdir()
    (folder / "mine/other.asc").write_text("another key")
    text = "base: ../base.yaml\nsources:\n  - {name: extra, url: 'file:///srv/x', suites: [/], signed_by: other.asc}\n"
    recipe = load(write(folder, text, "mine/heir.yaml"))
    assert [(source.url, source.components) for source in recipe.sources] == [
        ("http://mirror.example/debian", ("main",)),
        ("file:///srv/x", ()),
    ]
    assert recipe.sources[1].signed_by.read_text() == "another key"


def test_a_source_without_that_name_is_one_more(folder: Path) -> None:
    write(folder, TWO, "base.yaml")
    text = "base: base.yaml\nsources: [{name: more, url: 'http://x.example', suites: [/], signed_by: key.asc}]\n"
    assert [source.name for source in load(write(folder, text)).sources] == [None, "extra", "more"]


def test_two_sources_of_one_name(folder: Path) -> None:
    one = "  - {name: extra, url: 'http://x.example', suites: [/], signed_by: key.asc}\nkernel:\n"
    found = faults(write(folder, TWO.replace("kernel:\n", one)))
    assert found == "mine.yaml:4: sources: two sources are named 'extra', and one would take the other's place"


def test_an_overlay_keeps_executable_bits_and_links(folder: Path) -> None:
    (folder / "over/bin").mkdir(parents=True)
    (folder / "over/bin/run").write_text("#!/bin/sh\n")
    (folder / "over/bin/run").chmod(0o750)
    (folder / "over/link").symlink_to("/absolute")
    recipe = load(write(folder, MINIMAL + "overlay: [over]\n"))
    assert recipe.entries() == (
        Entry("/bin/run", 0o755, b"#!/bin/sh\n"),
        Entry("/link", link="/absolute"),
    )


def test_what_is_no_file_cannot_be_in_an_overlay(folder: Path) -> None:
    import os

    (folder / "over").mkdir()
    os.mkfifo(folder / "over/pipe")
    recipe = load(write(folder, MINIMAL + "overlay: [over]\n"))
    with pytest.raises(RecipeError) as caught:
        recipe.entries()
    assert (
        str(caught.value)
        == f"{folder}/over/pipe is neither a file, a link nor a folder; an overlay can hold nothing else"
    )


def test_identity_changes_with_everything_that_decides(folder: Path) -> None:
    (folder / "over").mkdir()
    (folder / "over/a").write_text("a")
    path = write(folder, MINIMAL + "overlay: [over]\n")

    def identity(steps: tuple[str, ...] = ("s",), keys: tuple[bytes, ...] = (b"k",)) -> str:
        return load(path).identity(steps, keys)

    seen = [identity(), identity(steps=("t",)), identity(keys=(b"l",))]
    (folder / "over/a").write_text("b")
    seen.append(identity())
    (folder / "over/a").chmod(0o755)
    seen.append(identity())
    (folder / "key.asc").write_text("another key")
    seen.append(identity())
    write(folder, MINIMAL + "overlay: [over]\nepoch: 1\n")
    seen.append(identity())
    assert len(set(seen)) == len(seen)


def test_identity_knows_container_images_and_not_where_a_local_repository_lies(folder: Path) -> None:
    (folder / "a.tar").write_text("one")
    local = MINIMAL.replace("http://mirror.example/debian", "file:///srv/one")
    first = load(write(folder, local + "container_images: [a.tar]\n")).identity((), ())
    moved = local.replace("/srv/one", "/srv/two")
    assert load(write(folder, moved + "container_images: [a.tar]\n")).identity((), ()) == first
    (folder / "a.tar").write_text("two")
    assert load(write(folder, local + "container_images: [a.tar]\n")).identity((), ()) != first
    assert load(write(folder, local + "join: true\n")).identity((), ()) not in {
        first,
        load(write(folder, local)).identity((), ()),
    }


def test_identity_does_not_depend_on_where_the_recipe_lies_or_on_comments(tmp_path: Path) -> None:
    seen = set()
    for name, text in (("one", MINIMAL), ("two", f"# a comment\n{MINIMAL}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key.asc").write_text("a key")
        seen.add(load(write(tmp_path / name, text)).identity(("s",), ()))
    assert len(seen) == 1


@pytest.mark.parametrize("name", inherit.shipped())
def test_shipped_recipes_are_sound(name: str) -> None:
    recipe = load(inherit.find(name))
    assert recipe.name == name
    assert {"busybox-static", "signify-openbsd"} <= set(recipe.packages)
    assert "virtio_net" in recipe.modules.initrd
    assert recipe.entries()


def test_which_recipes_are_shipped() -> None:
    assert inherit.shipped() == (
        "debian-12-arm64",
        "debian-12-cpu",
        "debian-12-gpu",
        "debian-12-minimal",
        "debian-12-node",
        "debian-12-node-demo",
        "ubuntu-24.04-cpu",
        "ubuntu-24.04-dpu",
        "ubuntu-24.04-gpu",
        "ubuntu-24.04-minimal",
        "ubuntu-24.04-node",
        "ubuntu-24.04-node-demo",
    )
    assert len((SHIPPED / "debian-12-minimal.yaml").read_text().splitlines()) < 60


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(values, values)
def test_merging_is_idempotent_and_the_heir_wins(base: object, child: object) -> None:
    merged = merge(base, child)
    assert merge(merged, child) == merged
    if not isinstance(child, list | dict):
        assert merged == child


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_lists_keep_the_order_of_the_base_and_have_no_duplicates(base: list[int], child: list[int]) -> None:
    merged = merge(base, child)
    assert merged == list(dict.fromkeys([*base, *child]))


@given(st.dictionaries(st.text(max_size=3), values), st.dictionaries(st.text(max_size=3), values))
def test_a_mapping_has_the_keys_of_both(base: dict[str, object], child: dict[str, object]) -> None:
    assert merge(base, child).keys() == base.keys() | child.keys()


@given(values)
def test_any_document_is_a_recipe_or_has_faults(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    import yaml

    path = tmp_path_factory.mktemp("recipe") / "any.yaml"
    path.write_text(
        yaml.safe_dump({"base": "debian-12-minimal", "files": value, "units": value, "remove": value}), encoding="utf-8"
    )
    try:
        assert isinstance(load(path), Recipe)
    except FaultsError as error:
        assert error.faults
