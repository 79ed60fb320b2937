"""Gate *nvidia*: kernel module, GSP firmware, libraries, tools, fabric manager and IMEX are of one release.

The module refuses libraries of another version ("API mismatch") and loads firmware by its own version's folder; fabric
manager ends at once where it is not the module's (NVIDIA's Fabric Manager User Guide); IMEX is of the driver's release
(NVIDIA's IMEX Service guide). Debian 12's persistenced is of another release of the same branch, and works: what may be
so, the recipe says.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from images.build.gates.facts import Facts, Module
from images.build.gates.gate import Gate
from images.recipe.recipe import Fit
from images.values.finding import Finding

MODULES = frozenset({"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem"})
"""By the name in `.modinfo`: Debian's files are called nvidia-current.ko."""

_ONE_RELEASE = "take all parts of the driver from one release: pin their versions alike under 'packages'"
_LIBRARY = re.compile(r"(lib(?:cuda|nv)[a-z0-9_-]*)\.so\.(\d{3,}(?:\.\d+)+)")
_FIRMWARE = re.compile(r"nvidia/(\d{3,}(?:\.\d+)+)/gsp[a-z0-9_]*\.bin")
_BRANCH = r"(?:-tesla)?(?:-\d{3})?(?:-server)?(?:-open)?"
_PACKAGES = {
    "nvidia-smi": re.compile(rf"nvidia(?:-tesla)?(?:-\d{{3}})?-smi|nvidia-utils{_BRANCH}"),
    "persistenced": re.compile(rf"nvidia-persistenced|nvidia-compute-utils{_BRANCH}"),
    "fabric manager": re.compile(rf"nvidia-fabric-?manager{_BRANCH}|cuda-drivers-fabricmanager{_BRANCH}"),
    "NSCQ": re.compile(rf"libnvidia-nscq{_BRANCH}"),
    "IMEX": re.compile(rf"nvidia-imex{_BRANCH}"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the driver in the image: what it is, where it is, its version."""

    what: str
    where: str
    version: str


def driver_modules(facts: Facts) -> tuple[Module, ...]:
    """NVIDIA's own kernel modules of the root."""
    return tuple(m for m in facts.modules.values() if m.name in MODULES and m.version)


def check(facts: Facts) -> list[Finding]:
    """Each part whose version is not the kernel module's, and parts that the driver cannot be without."""
    modules, others = driver_modules(facts), _grouped(_parts(facts))
    if not modules:
        return [_no_module(facts, others)] if others else []
    driver = next((m for m in modules if m.name == "nvidia"), modules[0])
    parts = [Part("kernel module", m.path, m.version) for m in modules] + others
    findings = [_differs(part, driver) for part in parts if not _fits(part, driver.version, facts)]
    there = {part.what for part in others}
    if "GSP firmware" not in there:
        cause = f"there is no /usr/lib/firmware/nvidia/{driver.version}/gsp_*.bin for the kernel module {driver.path}"
        findings.append(Finding("nvidia", cause, "add the package with the GSP firmware of this version"))
    if "library" not in there:
        cause = f"the kernel module {driver.path} is there, and no libcuda.so or libnvidia-ml.so of its version"
        findings.append(Finding("nvidia", cause, "add the packages with the driver's libraries of this version"))
    return findings


def _parts(facts: Facts) -> Iterator[Part]:
    for path in facts.firmware:
        if match := _FIRMWARE.fullmatch(path):
            yield Part("GSP firmware", f"/usr/lib/firmware/nvidia/{match[1]}", match[1])
    for path in facts.libraries:
        if match := _LIBRARY.fullmatch(path.rpartition("/")[2]):
            yield Part("NSCQ" if match[1] == "libnvidia-nscq" else "library", path, match[2])
    for name, version, _ in facts.packages:
        for what, pattern in _PACKAGES.items():
            if pattern.fullmatch(name):
                yield Part(what, f"package {name}", _upstream(version))


def _grouped(parts: Iterator[Part]) -> list[Part]:
    """One part for all files of the same kind and version."""
    by_version: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        places = by_version.setdefault((part.what, part.version), [])
        if part.where not in places:
            places.append(part.where)
    return [
        Part(what, places[0] + (f" and {len(places) - 1} more" if places[1:] else ""), version)
        for (what, version), places in by_version.items()
    ]


def _upstream(version: str) -> str:
    """`1:535.171.04-1~deb12u1` → `535.171.04`."""
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version)
    return match[1] if match else version


def _fits(part: Part, version: str, facts: Facts) -> bool:
    allowed: dict[str, Fit] = {"persistenced": facts.recipe.nvidia.persistenced, "NSCQ": facts.recipe.nvidia.nscq}
    if allowed.get(part.what) == "major":
        return part.version.partition(".")[0] == version.partition(".")[0]
    return part.version == version


def _differs(part: Part, driver: Module) -> Finding:
    cause = f"{part.what} {part.version} ({part.where}) is not of the kernel module's version {driver.version}"
    remedy = _ONE_RELEASE
    key = {"persistenced": "persistenced", "NSCQ": "nscq"}.get(part.what)
    if key and part.version.partition(".")[0] == driver.version.partition(".")[0]:
        remedy += f", or say 'nvidia: {{{key}: major}}' where the distribution has no other"
    return Finding("nvidia", f"{cause} ({driver.path})", remedy)


def _no_module(facts: Facts, parts: list[Part]) -> Finding:
    named = ", ".join(f"{part.what} {part.version} ({part.where})" for part in parts)
    return Finding(
        "nvidia",
        f"parts of NVIDIA's driver are there, and no kernel module of it for kernel {facts.kernel}: {named}",
        "add the package with the modules for this kernel and name them under modules.root, or leave the parts out",
    )


def _scope(facts: Facts) -> str:
    modules = driver_modules(facts)
    parts = [Part("kernel module", m.path, m.version) for m in modules] + _grouped(_parts(facts))
    return ", ".join(sorted({f"{part.what} {part.version}" for part in parts})) or "no NVIDIA driver"


GATE = Gate("nvidia", check, _scope)
