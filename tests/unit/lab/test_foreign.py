"""What becomes another architecture's: which libraries are exchanged, for which wheels, and what is told by name."""

import struct
from pathlib import Path

import pytest

from images.values.types import Architecture
from lab import elf, foreign, packages
from lab.errors import UnusableError

ANY, ONE = "Tag: py3-none-any\n", "Tag: cp311-cp311-manylinux_2_17_x86_64\nTag: cp311-cp311-manylinux2014_x86_64\n"


def program(machine: int) -> bytes:
    return b"\x7fELF".ljust(18, b"\0") + struct.pack("<H", machine)


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that is Python alone, one that is compiled, one that is part of a namespace: below `root`."""
    monkeypatch.setattr(foreign, "locked", lambda names: " ".join(sorted(names)))
    monkeypatch.setattr(packages, "settle", lambda libraries, place: None)
    return put(
        tmp_path / "root" / packages.HOME / "lib/python3.11/site-packages",
        {
            "plain/__init__.py": "same",
            "plain-1.dist-info/WHEEL": ANY,
            "fast/__init__.py": "old",
            "fast/only_here.py": "old",
            "fast/_c.cpython-311-x86_64-linux-gnu.so": program(elf.X86_64),
            "fast-2.dist-info/WHEEL": ONE,
            "fast-2.dist-info/METADATA": "old",
            "fast.libs/libx-0123.so.1": program(elf.X86_64),
            "space/auth/__init__.py": "same",
            "space/_part/_c.abi3.so": program(elf.X86_64),
        },
    )


def installs(monkeypatch: pytest.MonkeyPatch, files: dict[str, str | bytes]) -> list[list[str]]:
    """pip puts these where it is told to; what it is asked."""
    asked: list[list[str]] = []

    def install(python: str, *arguments: str) -> None:
        asked.append([*arguments[2:], Path(arguments[-1]).read_text()])
        put(Path(arguments[1]), files)

    monkeypatch.setattr(packages, "install", install)
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.18"))
    return asked


def test_what_is_compiled_is_exchanged_and_nothing_else(
    libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new: dict[str, str | bytes] = {
        "bin/fast": "a command",
        "fast/__init__.py": "new",
        "fast/_c.cpython-311-aarch64-linux-gnu.so": program(elf.AARCH64),
        "fast-2.dist-info/WHEEL": "Tag: cp311-cp311-manylinux2014_aarch64\n",
        "fast-2.dist-info/METADATA": "new",
        "fast.libs/libx-4567.so.1": program(elf.AARCH64),
        "space/_part/_c.abi3.so": program(elf.AARCH64),
    }
    asked = installs(monkeypatch, new)
    foreign.become(tmp_path / "root", "arm64")
    ((*options, lock),) = asked
    assert lock == "fast"
    assert options[:4] == [
        "--python-version=3.11",
        "--implementation=cp",
        "--platform=manylinux_2_18_aarch64",
        "--platform=manylinux_2_17_aarch64",
    ]
    assert {"--no-deps", "--only-binary=:all:", "--require-hashes"} <= set(options)
    found = {str(path.relative_to(libraries)): path.read_bytes() for path in libraries.rglob("*") if path.is_file()}
    del new["bin/fast"]
    kept: dict[str, str | bytes] = {
        "plain/__init__.py": "same",
        "plain-1.dist-info/WHEEL": ANY,
        "space/auth/__init__.py": "same",
    }
    assert found == {
        name: content if isinstance(content, bytes) else content.encode() for name, content in (kept | new).items()
    }


def test_what_is_of_this_machine_all_the_same_is_told_by_name(
    libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installs(monkeypatch, {"fast/__init__.py": "new", "fast/_c.so": program(elf.X86_64)})
    with pytest.raises(UnusableError) as caught:
        foreign.become(tmp_path / "root", "arm64")
    assert str(caught.value) == "not for arm64, though its wheel says so: fast/_c.so"
    assert (libraries / "plain/__init__.py").exists()


@pytest.mark.parametrize(
    ("names", "native", "wanted"),
    [("", "arm64", ["arm64"]), ("arm64", "amd64", ["arm64"]), ("arm64 amd64", "amd64", ["amd64", "arm64"])],
)
def test_what_is_asked_for(
    names: str, native: str, wanted: list[Architecture], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "native", lambda: native)
    assert foreign.wanted(names) == wanted


def test_an_architecture_that_nothing_is_made_for() -> None:
    with pytest.raises(UnusableError) as caught:
        foreign.wanted("arm64 riscv64")
    assert str(caught.value) == "ARCH=riscv64: packages and images are made for amd64 and arm64"


def test_platforms_of_wheels() -> None:
    assert foreign.platforms("arm64", "2.18") == [
        "manylinux_2_18_aarch64",
        "manylinux_2_17_aarch64",
        "manylinux2014_aarch64",
        *(f"manylinux_2_{minor}_aarch64" for minor in range(16, 11, -1)),
        "manylinux2010_aarch64",
        *(f"manylinux_2_{minor}_aarch64" for minor in range(11, 4, -1)),
        "manylinux1_aarch64",
        "linux_aarch64",
    ]
