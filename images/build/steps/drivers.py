"""Kernel modules that the distribution has as sources (DKMS packages), compiled for the image's kernel.

In a root of its own, from the same mirrors as the image: compiler, headers and sources never come near the image. The
root lies under the same name in each build and nothing signs, so the same sources give the same bytes.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from images.build.context import Context
from images.build.documents.compiled import compiled
from images.build.sources import Mirror
from images.build.step import Products, Say, Step
from images.build.steps import bootstrap
from images.errors import CommandError, RecipeError
from images.formats import elf, modules
from images.recipe.lockfile import Lock
from images.run import run
from images.values.digests import PLACE, canonical

VERSION = 2

COMPILED = "compiled.json"
"""Which drivers came of which packages (`images.build.documents.parts`)."""

OPTIONS = (
    # dkms(8) would compile when a package is configured, for every kernel and with its output thrown away.
    '--essential-hook=mkdir -p "$1/etc/dkms" && touch "$1/etc/dkms/no-autoinstall"',
    "--dpkgopt=path-exclude=/lib/firmware/*",
    "--dpkgopt=path-exclude=/usr/lib/firmware/*",
)
FRAMEWORK = "mok_signing_key=/nonexistent/key\n"
"""dkms(8) would make a key and sign with it, another one each time; where it cannot be made modules stay unsigned."""
COMPILE = """\
set -eu
for patch in /netboot-patches/*; do
  fits=
  for conf in /usr/src/*/dkms.conf; do
    if [ -e "$patch" ] && patch --dry-run -sfp1 -d "${conf%/*}" <"$patch" >/dev/null; then
      patch -sfp1 -d "${conf%/*}" <"$patch"
      fits=1
    fi
  done
  [ ! -e "$patch" ] || [ -n "$fits" ] || {
    echo "the patch ${patch##*/} fits none of the sources; take it out where the package has it already" >&2
    exit 1
  }
done
for conf in /usr/src/*/dkms.conf; do
  ( set +u; kernelver=$1; . "$conf"; dkms build "$PACKAGE_NAME/$PACKAGE_VERSION" -k "$1" -j "$2" ) || {
    tail -n 40 /var/lib/dkms/*/*/build/make.log >&2
    exit 1
  }
done
"""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The image's suite, mirrors and kernel package, and the packages that bring sources to compile for it."""

    suite: str
    architecture: str
    mirrors: tuple[Mirror, ...]
    kernel: str
    packages: tuple[str, ...]
    merged_usr: tuple[str, ...]
    """`usr-is-merged` where the image has it."""
    created: int
    """Seconds since 1970: the image's time."""
    patches: tuple[tuple[str, bytes], ...] = ()
    """Of the sources, by file name."""
    archives: Path | None = field(default=None, metadata=PLACE)
    """Where packages are kept between builds (`images.build.packages`); None: nowhere."""
    lock: Lock | None = None
    """Of the root in which they are compiled."""


def headers_of(kernel: str) -> str:
    """The package of a kernel's headers: `linux-image-amd64` → `linux-headers-amd64`, in Debian as in Ubuntu.

    Raises:
        RecipeError: the kernel's package is not named so.
    """
    name, equals, version = kernel.partition("=")
    if not name.startswith("linux-image-"):
        raise RecipeError(
            f"drivers: nobody can tell which headers belong to the kernel {name}: it is not named linux-image-…; "
            "name a kernel of the distribution in kernel.package, or take packages with compiled modules"
        )
    return f"linux-headers-{name.removeprefix('linux-image-')}{equals}{version}"


def build_root(inputs: Inputs) -> bootstrap.Inputs:
    """The root in which they are compiled; it is made with `OPTIONS`.

    Raises:
        RecipeError: as `headers_of`.
    """
    packages = tuple(sorted((headers_of(inputs.kernel), "dkms", "make", *inputs.merged_usr, *inputs.packages)))
    where = (inputs.suite, inputs.architecture, inputs.mirrors)
    return bootstrap.Inputs(*where, packages, inputs.created, inputs.archives, inputs.lock)


def drivers(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/modules`, the modules under their own names, `out/version`, the kernel's, and `out/compiled.json`.

    Raises:
        CommandError: a package is not there.
        RecipeError: the packages bring no sources, or such that do not compile (with the compiler's words).
        SourceUnavailableError: a mirror changed after it was asked.
    """
    bootstrap.bootstrap(build_root(inputs), out, say, OPTIONS)
    root = out / "root"
    version = _kernel(root)
    if not list(root.glob("usr/src/*/dkms.conf")):
        raise RecipeError(f"drivers: {', '.join(inputs.packages)}: no sources for dkms in it (/usr/src/*/dkms.conf)")
    say(f"compiling {', '.join(inputs.packages)} for {version}")
    _compile(root, version, inputs, say)
    (out / "modules").mkdir()
    made: dict[str, Path] = {}
    for path in sorted(root.glob(f"var/lib/dkms/*/*/{version}/*/module/*.ko*")):
        data = modules.unpack(path)
        # dkms.conf may rename a file (Debian: nvidia-current.ko); a module's own name is what aliases and depmod know.
        (name,) = elf.modinfo(data).get("name", [modules.module_name(path.name)])
        made[f"{name.replace('_', '-')}.ko"] = path
        (out / f"modules/{name.replace('_', '-')}.ko").write_bytes(data)
    if not any((out / "modules").iterdir()):
        raise RecipeError(f"drivers: {', '.join(inputs.packages)}: no module for kernel {version} came of it")
    (out / "version").write_text(f"{version}\n", encoding="ascii")
    (out / COMPILED).write_bytes(canonical(compiled(root, version, made)))
    run(["rm", "-rf", "--one-file-system", root])


def _kernel(root: Path) -> str:
    """The version of the only kernel that there are headers for."""
    folder = root / "usr/lib/modules"  # `build` in each is a link to /usr/src, which leads elsewhere from here
    versions = sorted(path.name for path in folder.glob("*") if (path / "build").is_symlink())
    if len(versions) != 1:
        raise RecipeError(f"drivers: there are headers of {len(versions)} kernels ({', '.join(versions)}), not of one")
    return versions[0]


def _compile(root: Path, version: str, inputs: Inputs, say: Say) -> None:
    """In namespaces without a network: what is compiled came from signed packages, and nothing outlives it."""
    framework = root / "etc/dkms/framework.conf.d/netboot.conf"
    framework.parent.mkdir(exist_ok=True)
    framework.write_text(FRAMEWORK, encoding="ascii")
    (root / "netboot-patches").mkdir()
    for number, (name, content) in enumerate(inputs.patches):
        (root / f"netboot-patches/{number:02}-{name}").write_bytes(content)
    argv: list[str | Path] = [
        *("unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", f"--mount-proc={root}/proc", "--"),
        *("chroot", root, "bash", "-c", COMPILE, "compile", version, str(len(os.sched_getaffinity(0)))),
    ]
    try:
        run(argv, env={"SOURCE_DATE_EPOCH": str(inputs.created)}, on_line=say)
    except CommandError as error:
        output = error.output
        raise RecipeError(f"drivers: {', '.join(inputs.packages)}: does not compile for {version}:\n{output}") from None


def _inputs(context: Context, _products: Products) -> Inputs:
    recipe = context.recipe
    return Inputs(
        suite=recipe.suite,
        architecture=recipe.architecture,
        mirrors=context.mirrors,
        kernel=recipe.kernel.package,
        packages=recipe.drivers,
        merged_usr=tuple(name for name in recipe.packages if name == "usr-is-merged"),
        created=context.created,
        patches=tuple((path.name, path.read_bytes()) for path in recipe.driver_patches),
        archives=context.packages,
        lock=context.lock.of_build() if context.lock else None,
    )


STEP = Step(
    "drivers",
    VERSION,
    drivers,
    outputs=("modules", "version", COMPILED),
    inputs=_inputs,
    applies=lambda context: bool(context.recipe.drivers),
    tools=bootstrap.STEP.tools,  # the compiler is of the mirrors, whose releases are inputs
)
