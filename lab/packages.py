"""netboot as what is installed: a wheel, and a Debian package with its own locked Python environment.

`python -m lab.packages wheel|man FOLDER`, behind `make wheel` and `make man`; behind `make deb` is `lab.deb`. The same
tree gives the same bytes: times are those of SOURCE_DATE_EPOCH, or of the last commit.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import man_pages
from lab.lock import LOCK, locked
from lab.work import ROOT, work_folder

OURS = ("netboot", "images", "ipxe", "tokens")
HOME = Path("usr/lib/netboot")
"""Of the environment, in the root of a host: its Python finds itself by that path."""
PYTHON = "/usr/bin/python3"
"""The distribution's, whose version the package depends on."""
UNIT = ROOT / "deploy/netboot.service"
PLACES = {
    "/opt/netboot/": f"/{HOME}/",
    "/srv/netboot/data": "/var/lib/netboot/data",
    "/srv/netboot/store": "/var/lib/netboot/store",
    "/srv/netboot/shared-keys": "/var/lib/netboot/shared-keys",
    "/srv/netboot": "/etc/netboot",
}
"""Where a package has what the unit names."""
SHELLS = {
    "bash": "usr/share/bash-completion/completions/netboot",
    "zsh": "usr/share/zsh/vendor-completions/_netboot",
    "fish": "usr/share/fish/vendor_completions.d/netboot.fish",
}
_COMMAND = f"#!/{HOME}/bin/python3\nimport sys\nfrom netboot.cli.main import main\n\nsys.exit(main())\n"
_CONTROL = ROOT / "deploy/debian"


def wheel(folder: Path) -> Path:
    """A wheel of a copy of the tree's packages, made in `folder` with nothing but setuptools."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = folder / "tree"
    for package in OURS:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "netboot/docs").mkdir()
    for page in (ROOT / "docs").glob("*.md"):  # those that messages name, for `netboot docs`
        shutil.copy(page, tree / "netboot/docs")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    _run([sys.executable, "-c", "from setuptools import build_meta; build_meta.build_wheel('..')"], tree)
    shutil.rmtree(tree)
    (built,) = folder.glob("netboot-*.whl")
    return built


def environment(folder: Path, built: Path) -> None:
    """A virtual environment with a wheel of ours, and what the lock names, each file by its hash."""
    lock = built.with_name(LOCK)
    lock.write_text(locked(), encoding="utf-8")
    _run([PYTHON, "-m", "venv", str(folder)])
    python = f"{folder}/bin/python3"
    install(python, "--require-hashes", "-r", str(lock))
    install(python, "--no-deps", "--no-index", str(built))
    lock.unlink()


def install(python: str, *arguments: str) -> None:
    """By its pip, without bytecode.

    Raises:
        subprocess.CalledProcessError: with what pip said, on our standard error.
    """
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    _run([*pip, *arguments])


def laid_out(folder: Path, built: Path) -> Path:
    """What is in the Debian package, below `folder/root`, for this machine's architecture."""
    root = folder / "root"
    environment(root / HOME, built)
    _bare(root)
    _files(root)
    same_modes(root)
    return root


def same_modes(root: Path) -> None:
    """Whatever the umask is of who builds."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def pack(root: Path, version: str, architecture: str | None = None) -> Path:
    """A package of what was laid out, beside it: of this version, whatever the program says of itself; without an
    architecture, of this machine's."""
    architecture = architecture or _said(["dpkg", "--print-architecture"])
    _control(root, version, architecture)
    target = root.with_name(f"netboot_{version}_{architecture}.deb")
    _run(["dpkg-deb", "--root-owner-group", "-Zzstd", "--build", str(root), str(target)])
    return target


def _bare(root: Path) -> None:
    """An environment without what installs, without paths of this machine, compiled for the place where it will be."""
    home = root / HOME
    pip = [f"{home}/bin/python3", "-m", "pip", "--disable-pip-version-check", "uninstall", "--quiet", "--yes"]
    _run([*pip, "setuptools", "pip"])
    for path in (home / "bin").iterdir():
        if not path.name.startswith("python"):
            path.unlink()
    (home / "bin/netboot").write_text(_COMMAND)
    (home / "bin/netboot").chmod(0o755)
    (home / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    settle(home / "lib", Path("/", HOME, "lib"))


def settle(libraries: Path, place: Path) -> None:
    """Leave what names this machine out of libraries, and compile them for the `place` where they will be."""
    for name in ("direct_url.json", "installed-files.txt", "RECORD"):  # paths of here, or programs that are gone
        for path in libraries.rglob(name):
            path.unlink()
    compiled = [PYTHON, "-m", "compileall", "-q", "-s", str(libraries), "-p", str(place)]
    _run([*compiled, "--invalidation-mode", "unchecked-hash", str(libraries)])


def _files(root: Path) -> None:
    """All but the environment: the command, the unit, completion, man pages, documentation, folders."""
    unit = UNIT.read_text(encoding="utf-8")
    for there, here in PLACES.items():
        unit = unit.replace(there, here)
    _place(root / "usr/lib/systemd/system/netboot.service", unit)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/netboot").symlink_to(f"../lib/{HOME.name}/bin/netboot")
    for shell, path in SHELLS.items():
        _place(root / path, _said([f"{root / HOME}/bin/python3", f"{root / HOME}/bin/netboot", "completion", shell]))
    man_pages.write(root / "usr/share/man/man1", moment())
    documents = root / "usr/share/doc/netboot"
    shutil.copytree(ROOT / "docs", documents)
    shutil.copy(ROOT / "LICENSE", documents / "copyright")
    shutil.copy(ROOT / "CHANGELOG.md", documents)
    shutil.copy(ROOT / "deploy/ipxe-arm64.sh", documents)
    for folder in ("etc/netboot", "var/lib/netboot"):
        (root / folder).mkdir(parents=True)


def _control(root: Path, version: str, architecture: str) -> None:
    major, minor = _said([PYTHON, "-c", "import sys; print(*sys.version_info[:2])"]).split()
    values = {
        "@VERSION@": version,
        "@ARCHITECTURE@": architecture,
        "@PYTHON@": f"python3 (>= {major}.{minor}), python3 (<< {major}.{int(minor) + 1})",
        "@SIZE@": str(sum(path.lstat().st_size for path in (root / "usr").rglob("*")) // 1024),
    }
    (root / "DEBIAN").mkdir(mode=0o755, exist_ok=True)
    for path in sorted(_CONTROL.iterdir()):
        text = path.read_text(encoding="utf-8")
        for hole, value in values.items():
            text = text.replace(hole, value)
        _place(root / "DEBIAN" / path.name, text)
        (root / "DEBIAN" / path.name).chmod(0o644 if path.name == "control" else 0o755)


def _place(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")


def _run(argv: Sequence[str], folder: Path | None = None) -> None:
    """
    Raises:
        subprocess.CalledProcessError: with what it said, on our standard error.
    """
    done = subprocess.run(argv, cwd=folder, env=_surroundings(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()


def _said(argv: Sequence[str]) -> str:
    return subprocess.run(argv, env=_surroundings(), capture_output=True, text=True, check=True).stdout.strip()


def _surroundings() -> dict[str, str]:
    """Nothing that depends on who builds, or when; what is imported from the tree is not what is packed."""
    left = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return left | {
        "SOURCE_DATE_EPOCH": str(moment()),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
    }


def moment() -> int:
    """Seconds since 1970 by which all is dated: SOURCE_DATE_EPOCH's, or of the last commit."""
    if when := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(when)
    argv = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip() or 0)


def main(kind: str, target: Path) -> None:
    """Make one, and say where it is. Beside a wheel is what it needs, with hashes: `netboot.lock`."""
    target.mkdir(parents=True, exist_ok=True)
    if kind == "man":
        man_pages.write(target / "man/man1", moment())
        print(f"{target}/man: `man -M {target}/man netboot`")
        return
    with work_folder("packages") as folder:
        made = wheel(folder)
        (target / LOCK).write_text(locked(), encoding="utf-8")
        shutil.copy(made, target)
        shutil.rmtree(folder)
    print(target / made.name)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
