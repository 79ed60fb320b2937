"""Locks: their one form, whom they fit, and what is said when they cannot be kept."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.build.context import Context
from images.build.sources import Mirror
from images.build.steps import bootstrap, drivers
from images.errors import LockError
from images.formats.debian import Identity, Origin
from images.recipe import lockfile, pinning
from images.recipe.inherit import find, load
from images.recipe.lockfile import Lock, LockedSource

BASH, LIBC, I386 = ("bash", "5.2-1", "amd64"), ("tzdata", "2026a", "all"), ("libc6", "2.36", "i386")
GCC = ("gcc", "12", "amd64")
A, B = "a" * 64, "b" * 64


def origin(sha256: str) -> tuple[Origin, ...]:
    return (Origin("Debian", sha256, "pool/x.deb", 1),)


THERE: dict[Identity, tuple[Origin, ...]] = {BASH: origin(A), LIBC: origin(B)}


def lock(there: dict[Identity, tuple[Origin, ...]] = THERE, *wanted: str, compiles: tuple[str, ...] = ()) -> Lock:
    return Lock(
        recipe="sample",
        suite="bookworm",
        architecture="amd64",
        created=7,
        wanted=wanted or ("bash",),
        packages=lockfile.locked([LIBC, BASH, I386], there),
        build_wanted=compiles,
        build_packages=lockfile.locked([GCC], there) if compiles else (),
        sources=(LockedSource(url="http://m.example/debian", suite="bookworm", inrelease="1" * 64),),
    )


def test_a_lock_is_a_line_for_each_package_and_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_bytes(lock().to_bytes())
    assert (
        path.read_text()
        == f"""\
{{
 "architecture": "amd64",
 "created": 7,
 "packages": [
  {{"architecture": "amd64", "name": "bash", "sha256": "{A}", "version": "5.2-1"}},
  {{"architecture": "i386", "name": "libc6", "sha256": null, "version": "2.36"}},
  {{"architecture": "all", "name": "tzdata", "sha256": "{B}", "version": "2026a"}}
 ],
 "recipe": "sample",
 "schema": "netboot.dev/lock/v1",
 "sources": [
  {{"inrelease": "{"1" * 64}", "suite": "bookworm", "url": "http://m.example/debian"}}
 ],
 "suite": "bookworm",
 "wanted": [
  "bash"
 ]
}}
"""
    )
    assert lockfile.read(path) == lock()


@given(st.binary(max_size=100) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_no_lock(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.lock"
    path.write_bytes(data)
    with pytest.raises(LockError, match="is not a lock as `netboot image lock` writes it"):
        lockfile.read(path)


@pytest.mark.parametrize("package", ["bash,evil", "bash\nPin: x", "-y", "Bash"])
def test_nothing_but_a_package_reaches_apts_command_line(tmp_path: Path, package: str) -> None:
    text = lock().to_bytes().decode().replace('"name": "bash"', f'"name": "{package}"'.replace("\n", "\\n"))
    (tmp_path / "x.lock").write_text(text)
    with pytest.raises(LockError, match=r"packages\.0\.name"):
        lockfile.read(tmp_path / "x.lock")


def test_what_apt_is_told() -> None:
    assert lockfile.include(lock()) == ("bash=5.2-1", "libc6:i386=2.36", "tzdata=2026a")
    assert lockfile.preferences(lock()) == (
        "Package: bash\nPin: version 5.2-1\nPin-Priority: 1001\n\n"
        "Package: libc6:i386\nPin: version 2.36\nPin-Priority: 1001\n\n"
        "Package: tzdata\nPin: version 2026a\nPin-Priority: 1001\n"
    )
    mirror = Mirror("http://m.example/d", ("a",), ("main",), b"key", ".asc", ("1" * 64,), 1000)
    inputs = bootstrap.Inputs("bookworm", "amd64", (mirror,), ("bash",), 7, lock=lock())
    argv = bootstrap.argv(inputs, Path("/c/root"), Path("/c/n.sources"))
    assert "--include=bash=5.2-1,libc6:i386=2.36,tzdata=2026a" in argv
    assert '--setup-hook=install -D -m 0644 /c/netboot-lock "$1/etc/apt/preferences.d/netboot-lock"' in argv
    assert "Check-Valid-Until: no\n" in bootstrap.sources_file((mirror,), Path("/k"), locked=True)
    assert "Check-Valid-Until" not in bootstrap.sources_file((mirror,), Path("/k"))
    assert bootstrap.STEP.key(inputs) != bootstrap.STEP.key(
        bootstrap.Inputs("bookworm", "amd64", (mirror,), ("bash",), 7)
    )


def message(work: object, *arguments: object) -> str:
    with pytest.raises(LockError) as caught:
        work(*arguments)  # type: ignore[operator]
    return str(caught.value)


def test_a_lock_that_does_not_fit_says_so() -> None:
    made = lock(THERE, "bash", "vim")
    lockfile.check_recipe(made, "bookworm", "amd64", ("vim", "bash"))
    assert message(lockfile.check_recipe, made, "bookworm", "amd64", ("bash", "nano", "dash")) == (
        "the lock does not fit the recipe: the recipe has dash, nano, which the lock does not know; "
        "the lock has vim, which the recipe has not. Lock anew: `netboot image lock`"
    )
    assert message(lockfile.check_recipe, made, "trixie", "arm64", ("bash", "vim")) == (
        "the lock is for bookworm amd64, the recipe says trixie arm64; lock anew: `netboot image lock`"
    )


def test_what_compiles_modules_is_locked_by_itself(tmp_path: Path) -> None:
    made = lock(THERE, compiles=("linux-image-amd64", "vendor-dkms"))
    (tmp_path / "x.lock").write_bytes(made.to_bytes())
    assert lockfile.read(tmp_path / "x.lock") == made
    assert lockfile.include(made.of_build()) == ("gcc=12",)
    lockfile.check_recipe(made, "bookworm", "amd64", ("bash",), ("linux-image-amd64", "vendor-dkms"))
    assert message(
        lockfile.check_recipe, made, "bookworm", "amd64", ("bash",), ("linux-image-amd64", "other-dkms")
    ) == (
        "the lock does not fit the recipe: the recipe has to compile other-dkms, which the lock does not know; "
        "the lock has to compile vendor-dkms, which the recipe has not. Lock anew: `netboot image lock`"
    )
    mirror = Mirror("http://m.example/d", ("a",), ("main",), b"key", ".asc", ("1" * 64,), 1000)
    recipe = load(find("debian-12-gpu"))
    inputs = drivers.build_root(drivers.STEP.inputs(Context(recipe, {}, (mirror,), lock=made), {}))
    assert "--include=gcc=12" in bootstrap.argv(inputs, Path("/c/root"), Path("/c/n.sources"))
    assert bootstrap.STEP.inputs(Context(recipe, {}, (mirror,), lock=made), {}).lock == made


def test_what_the_mirrors_have_no_more_is_named() -> None:
    there = {**THERE, I386: origin(A)}
    lockfile.check_lists(lock(there), there)
    assert message(lockfile.check_lists, lock(there), {BASH: origin(A)}) == (
        "the mirrors do not have any more what the lock asks for: libc6=2.36:i386, tzdata=2026a:all; "
        "take them from a mirror of that day (a snapshot service's address as the source's url), "
        "or lock anew: `netboot image lock`"
    )
    assert message(lockfile.check_lists, lock(there), {**there, BASH: origin(B)}) == (
        "the mirrors have other files of the same versions than were locked: bash=5.2-1:amd64; "
        "whoever publishes them has replaced them: find out why before you lock anew (`netboot image lock`)"
    )
    many = Lock.model_validate(
        lock().model_dump(by_alias=True)
        | {"packages": [{"name": f"p{n:02}", "version": "1", "architecture": "all"} for n in range(13)]}
    )
    assert "p09=1:all and 3 more; take them" in message(lockfile.check_lists, many, {})


def test_a_package_whose_digest_no_list_told_is_held_by_its_version() -> None:
    lockfile.check_lists(lock(), {**THERE, I386: origin("c" * 64)})


def test_one_mirror_of_two_with_another_file_is_not_trusted_to_be_the_right_one() -> None:
    both = (*origin(A), *origin(B))
    assert "bash=5.2-1:amd64" in message(lockfile.check_lists, lock(), {**THERE, I386: (), BASH: both})


def test_more_or_less_than_locked_is_refused() -> None:
    lockfile.check_installed(lock(), [I386, BASH, LIBC])
    assert message(lockfile.check_installed, lock(), [BASH, LIBC, ("vim", "9", "amd64")]) == (
        "what was installed is not what the lock says: missing libc6=2.36:i386, and beyond it vim=9:amd64; "
        "take them from a mirror of that day (a snapshot service's address as the source's url), "
        "or lock anew: `netboot image lock`"
    )


RECIPE = """\
base: debian-12-minimal
lock: x.lock
"""


def test_a_recipe_names_its_lock_and_is_another_recipe_with_another(tmp_path: Path) -> None:
    path = tmp_path / "sample.yaml"
    path.write_text("base: debian-12-minimal\n")
    plain = load(path)
    assert pinning.lock_of(plain) is None
    (tmp_path / "x.lock").write_bytes(lock(THERE, *plain.installs()).to_bytes())
    path.write_text(RECIPE)
    recipe = load(path)
    assert recipe.lock == tmp_path / "x.lock"
    assert pinning.lock_of(recipe) == lock(THERE, *plain.installs())
    first = recipe.identity((), ())
    assert first != plain.identity((), ())
    (tmp_path / "x.lock").write_bytes(lock({}, *plain.installs()).to_bytes())
    assert load(path).identity((), ()) != first
    heir = tmp_path / "deeper/heir.yaml"
    heir.parent.mkdir()
    heir.write_text("base: ../sample.yaml\npackages: [vim]\n")
    inherited = load(heir).lock
    assert inherited
    assert inherited.resolve() == tmp_path / "x.lock"
    heir.write_text("base: ../sample.yaml\npackages: [vim]\nlock: null\n")
    assert load(heir).lock is None
    path.write_text(RECIPE + "packages: [vim]\n")
    assert message(pinning.lock_of, load(path)) == (
        "the lock does not fit the recipe: the recipe has vim, which the lock does not know. "
        "Lock anew: `netboot image lock`"
    )
