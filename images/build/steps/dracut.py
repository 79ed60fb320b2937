"""An initrd by dracut(8), where the recipe wants one: programs, udev's rules, network and disks by dracut's modules.

In a root of its own, from the same mirrors as the image, so that nothing of dracut is in the image. Kernel modules,
keys and our stage are not in it yet: *gather* adds them, as it does for our own initrd.
"""

import re
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

from images.build.context import Context
from images.build.dracut import ARCHIVE, COPYRIGHTS, FOLDER, PACKAGES, settled
from images.build.gates import owners
from images.build.sources import Mirror
from images.build.step import Products, Say, Step
from images.build.steps import bootstrap
from images.errors import CommandError, RecipeError
from images.formats import cpio, debian, tree
from images.formats.overlay import Entry
from images.recipe.dracut import ALWAYS, Dracut
from images.run import run
from images.values.digests import PLACE, canonical

VERSION = 1

MODULES = ("dash", "base", "udev-rules", "network", "network-legacy", "netboot")
"""Of dracut's, in every such initrd, with what they depend on."""
WANTED = ("dracut-core", "dracut-network", "busybox-static", "signify-openbsd", "iproute2", "mount", "procps")
"""Packages that the modules above want programs of."""
_FAULT = re.compile(r"dracut: (FAILED|dracut module|[Mm]odule|Cannot)|dracut-install: ERROR")
"""Words of dracut's before which it goes on, and makes an initrd that lacks what was asked for."""
MODULE = "usr/lib/dracut/modules.d/95netboot"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The image's suite and mirrors, and what the recipe says."""

    suite: str
    architecture: str
    mirrors: tuple[Mirror, ...]
    dracut: Dracut
    merged_usr: tuple[str, ...]
    """`usr-is-merged` where the image has it."""
    created: int
    """Seconds since 1970: the image's time."""
    entries: tuple[Entry, ...] = ()
    """The recipe's own files below /etc: what dracut's modules take of them goes into the initrd."""
    archives: Path | None = field(default=None, metadata=PLACE)
    """Where packages are kept between builds (`images.build.packages`); None: nowhere."""


def dracut(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/dracut.cpio`, `out/packages.json` and `out/copyrights`.

    Raises:
        CommandError: a package is not there.
        RecipeError: dracut does not make it (with its words), or has no place for one of the files.
        SourceUnavailableError: a mirror changed after it was asked.
    """
    wanted = tuple(sorted({*WANTED, *inputs.merged_usr, *inputs.dracut.packages}))
    where = (inputs.suite, inputs.architecture, inputs.mirrors)
    bootstrap.bootstrap(bootstrap.Inputs(*where, wanted, inputs.created, inputs.archives), out, say)
    root = out / "root"
    for entry in inputs.entries:
        tree.write(root, entry)
    module = root / MODULE
    module.mkdir()
    (module / "module-setup.sh").write_bytes((FOLDER / "module-setup.sh").read_bytes())
    say(f"dracut with {', '.join(inputs.dracut.modules) or 'its network alone'}")
    _make(root, inputs, say)
    archive = settled((root / ARCHIVE).read_bytes())
    (out / ARCHIVE).write_bytes(archive)
    paths = {entry.path for entry in cpio.read(archive) if not stat.S_ISDIR(entry.mode)}
    asked = {name.partition("=")[0] for name in wanted}  # dracut's own files have other names in the archive
    packages = [package for package in _installed(root) if package.name in asked or _files(root, package) & paths]
    (out / PACKAGES).write_bytes(canonical(_document(root, packages, paths)))
    _copyrights(root, packages, out / COPYRIGHTS)
    run(["rm", "-rf", "--one-file-system", root])


def _make(root: Path, inputs: Inputs, say: Say) -> None:
    """In namespaces without a network, with nothing to see of this machine's kernel, devices and disks."""
    argv: list[str | Path] = [
        *("unshare", "--mount", "--pid", "--net", "--uts", "--fork", "--kill-child", f"--mount-proc={root}/proc", "--"),
        *("chroot", root, "dracut", "--force", "--no-hostonly", "--no-hostonly-cmdline", "--no-kernel"),
        *("--no-early-microcode", "--nohardlink", "--nostrip", "--reproducible", "--no-compress"),
        *("--conf", "/dev/null", "--confdir", "/mnt", "--kver", "none"),
        *("--modules", " ".join((*MODULES, *inputs.dracut.modules))),
        *("--kernel-cmdline", " ".join((*ALWAYS, *inputs.dracut.arguments))),
        f"/{ARCHIVE}",
    ]
    lines: list[str] = []

    def keep(line: str) -> None:
        lines.append(line)
        say(line)

    try:
        run(argv, env={"SOURCE_DATE_EPOCH": str(inputs.created)}, on_line=keep)
    except CommandError as error:
        raise RecipeError(f"dracut: {error.output}") from None
    faults = [line for line in lines if _FAULT.match(line)]
    if faults:
        raise RecipeError("\n".join(dict.fromkeys(faults)))


def _installed(root: Path) -> tuple[debian.Package, ...]:
    return debian.installed((root / "var/lib/dpkg/status").read_text(encoding="utf-8"))


def _document(root: Path, packages: list[debian.Package], paths: set[str]) -> dict[str, object]:
    """These packages with where they came from, and the files of the archive that several of them have."""
    origins = debian.origins(root / "var/lib/apt/lists", frozenset(package.identity for package in packages))
    several = owners.several(root, {package.name for package in packages})
    return {
        "packages": [
            asdict(package) | {"origins": [asdict(origin) for origin in origins.get(package.identity, ())]}
            for package in packages
        ],
        "owners": {path: list(names) for path, names in several.items() if path.removeprefix("/") in paths},
    }


def _copyrights(root: Path, packages: list[debian.Package], out: Path) -> None:
    for package in packages:
        path = f"usr/share/doc/{package.name}/copyright"
        if (root / path).is_file() and not (root / path).is_symlink():
            (out / path).parent.mkdir(parents=True)
            (out / path).write_bytes((root / path).read_bytes())


def _files(root: Path, package: debian.Package) -> set[str]:
    """Paths of its files, as they are below /usr where that is merged."""
    for name in (package.name, f"{package.name}:{package.architecture}"):
        listed = root / f"var/lib/dpkg/info/{name}.list"
        if listed.is_file():
            lines = listed.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            plain = (line.removeprefix("/") for line in lines)
            return {f"usr/{path}" if path.startswith(("bin/", "sbin/", "lib/", "lib64/")) else path for path in plain}
    return set()


def _inputs(context: Context, _products: Products) -> Inputs:
    recipe = context.recipe
    return Inputs(
        suite=recipe.suite,
        architecture=recipe.architecture,
        mirrors=context.mirrors,
        dracut=recipe.dracut or Dracut(),
        merged_usr=tuple(name for name in recipe.packages if name == "usr-is-merged"),
        created=context.created,
        entries=tuple(entry for entry in recipe.entries() if entry.path.startswith("/etc/")),
        archives=context.packages,
    )


STEP = Step(
    "dracut",
    VERSION,
    dracut,
    outputs=(ARCHIVE, PACKAGES, COPYRIGHTS),
    inputs=_inputs,
    applies=lambda context: context.recipe.dracut is not None,
    tools=bootstrap.STEP.tools,  # dracut is of the mirrors, whose releases are inputs
    data=(FOLDER,),
)
