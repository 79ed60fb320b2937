"""mmdebstrap: packages of signed mirrors become a root file system in a folder."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from images.build import packages
from images.build.context import Context
from images.build.sources import Mirror, proxy_environment
from images.build.step import Products, Say, Step
from images.errors import CommandError, SourceUnavailableError
from images.recipe import lockfile, pinning
from images.recipe.lockfile import Lock
from images.run import run
from images.values.digests import PLACE

VERSION = 1

EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*")
KEPT = ("/usr/share/doc/*/copyright",)
OF_KERNEL = "{kernel}"
"""In a package's name: the version of the kernel that the image got (Ubuntu: linux-modules-extra-6.8.0-151-generic)."""
OWN_NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
"""What mmdebstrap is run by: in namespaces of its own no mount and no process can outlive it, even killed."""
MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"
"""mmdebstrap's hook for suites where /bin → usr/bin is not base-files' work: where usr-is-merged is (Debian 12)."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What decides what is installed; the mirrors' release digests stand for all package versions."""

    suite: str
    architecture: str
    mirrors: tuple[Mirror, ...]
    packages: tuple[str, ...]
    created: int
    """Seconds since 1970: the newest of the mirrors, or the lock's; the image's time."""
    archives: Path | None = field(default=None, metadata=PLACE)
    """Where packages are kept between builds (`images.build.packages`); None: nowhere."""
    lock: Lock | None = None


def argv(inputs: Inputs, tree: Path, sources: Path, options: tuple[str, ...] = ()) -> list[str]:
    """The command."""
    return [
        *OWN_NAMESPACES,
        *("mmdebstrap", "--verbose", "--mode=root", "--format=directory", "--variant=essential"),
        f"--architectures={inputs.architecture}",
        *([f"--hook-dir={MERGED_USR}"] if "usr-is-merged" in inputs.packages else []),
        f"--include={','.join(_included(inputs))}",
        *(pinning.arguments(tree.with_name("netboot-lock")) if inputs.lock else []),
        *([_of_kernel(inputs.packages)] if any(map(_is_of_kernel, inputs.packages)) and not inputs.lock else []),
        '--aptopt=APT::Install-Recommends "false"',
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=Acquire::Retries "3"',
        # else apt reads local folders as _apt, who may not enter all of them
        *(['--aptopt=APT::Sandbox::User "root"'] if any(m.url.startswith("file:") for m in inputs.mirrors) else []),
        "--dpkgopt=force-unsafe-io",  # no fsync of each file: the cache syncs the whole product before it has its name
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED),
        *(f"--dpkgopt=path-include={pattern}" for pattern in KEPT),
        *(packages.arguments(inputs.archives) if inputs.archives else []),
        "--skip=cleanup/apt/lists",  # they say which release files apt verified; the next step removes them
        *options,
        inputs.suite,
        str(tree),
        str(sources),
    ]


def _included(inputs: Inputs) -> tuple[str, ...]:
    """What is installed at once; a lock has all that was installed by their names."""
    if inputs.lock:
        return lockfile.include(inputs.lock)
    return tuple(name for name in inputs.packages if not _is_of_kernel(name))


def _is_of_kernel(name: str) -> bool:
    return OF_KERNEL in name


def _of_kernel(packages: tuple[str, ...]) -> str:
    """Packages for the kernel that was installed, as mmdebstrap's own second call of apt does it."""
    names = " ".join(f'"{name.replace(OF_KERNEL, "$kernel")}"' for name in packages if _is_of_kernel(name))
    return (
        '--customize-hook=kernel=$(ls "$1/usr/lib/modules") && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get '
        "-o Dir::Bin::dpkg=env -o DPkg::Options::=--unset=TMPDIR -o DPkg::Options::=dpkg "
        f'-o DPkg::Chroot-Directory="$1" --yes install {names}'
    )


def sources_file(mirrors: tuple[Mirror, ...], keyrings: Path, *, locked: bool = False) -> str:
    """The mirrors in apt's deb822 form (sources.list(5)), each with the only keys that may sign it.

    With a lock a mirror may be of any day (a snapshot's release file has expired): each .deb's digest is in the lock.
    """
    return "\n".join(
        f"Types: deb\nURIs: {_uri(mirror.url)}\nSuites: {' '.join(mirror.suites)}\n"
        + (f"Components: {' '.join(mirror.components)}\n" if mirror.components else "")
        + ("Check-Valid-Until: no\n" if locked else "")
        + f"Signed-By: {keyrings / _keyring(mirror)}\n"
        for mirror in mirrors
    )


def _uri(url: str) -> str:
    """Local packages are copied (sources.list(5)): dpkg works in the chroot and cannot reach them where they lie."""
    return url.replace("file:", "copy:", 1) if url.startswith("file:") else url


def write_keyring(mirror: Mirror, keyrings: Path) -> None:
    """Write the keys that may sign a mirror to where `sources_file` names them."""
    (keyrings / _keyring(mirror)).write_bytes(mirror.keyring)


def _keyring(mirror: Mirror) -> str:
    return f"{hashlib.sha256(mirror.keyring).hexdigest()[:16]}{mirror.keyring_suffix}"


def bootstrap(inputs: Inputs, out: Path, say: Say, options: tuple[str, ...] = ()) -> None:
    """Install the packages into `out/root`; `options` are more of mmdebstrap's, for roots that are no image's.

    Raises:
        CommandError: mmdebstrap failed: a package that is not there, a signature by another key, a disk that is full.
        LockError: the mirrors do not have what is locked.
        SourceUnavailableError: a mirror changed after it was asked; the next run will do.
    """
    for mirror in inputs.mirrors:
        write_keyring(mirror, out)
    sources = out / "netboot.sources"
    sources.write_text(sources_file(inputs.mirrors, out, locked=inputs.lock is not None), encoding="utf-8")
    if inputs.lock:
        (out / "netboot-lock").write_text(lockfile.preferences(inputs.lock), encoding="utf-8")
    env = proxy_environment() | {
        "SOURCE_DATE_EPOCH": str(inputs.created),
        "INITRD": "No",  # kernel hooks would build an initrd that nobody boots (kernel-img.conf(5))
        "TMPDIR": str(out),
    }
    try:
        run(argv(inputs, out / "root", sources, options), env=env, on_line=lambda line: _report(line, say))
    except CommandError:
        if inputs.lock:
            pinning.check_lists(inputs.lock, out / "root")  # a version that is gone is the cause to be told
        raise
    finally:
        if inputs.archives:
            packages.keep(inputs.archives, out / "root")
    _same_release(inputs, out / "root")
    if inputs.lock:
        pinning.settle(inputs.lock, out / "root")


def _report(line: str, say: Say) -> None:
    if line.startswith(("I: ", "E: ", "Unpacking ", "Setting up ")):
        say(line)


def _same_release(inputs: Inputs, tree: Path) -> None:
    """What apt verified must be what the mirrors were asked for, or the cache key would name another content."""
    want = {release for mirror in inputs.mirrors for release in mirror.releases}
    have = set(_verified(tree / "var/lib/apt/lists"))
    if want != have:
        names = ", ".join(sorted({mirror.url for mirror in inputs.mirrors}))
        raise SourceUnavailableError(
            f"a mirror ({names}) published new packages while they were being read; run the build again"
        )


def _verified(lists: Path) -> Iterator[str]:
    for path in lists.glob("*_InRelease"):
        yield hashlib.sha256(path.read_bytes()).hexdigest()


def _inputs(context: Context, _products: Products) -> Inputs:
    recipe = context.recipe
    return Inputs(
        suite=recipe.suite,
        architecture=recipe.architecture,
        mirrors=context.mirrors,
        packages=tuple(sorted({*recipe.installs(), *context.installs})),
        created=context.created,
        archives=context.packages,
        lock=context.lock,
    )


STEP = Step(
    "bootstrap",
    VERSION,
    bootstrap,
    outputs=("root",),
    inputs=_inputs,
    tools=lambda _: ("mmdebstrap", "apt-get"),
)
