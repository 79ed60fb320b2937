"""Gate *required*: the modules, firmware and packages that the recipe counts on are in the initrd and in the root.

Whether a module asks for another is read from the module itself, not from the tables that chose what to keep. Soft
dependencies that no module of this kernel provides mean nothing, as for modprobe: kernels name many (Debian 12's vfio
asks for one of PowerPC's). Firmware that a module merely names is not required, for the same reason.
"""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence

from images.build.gates.facts import Facts, Module
from images.build.gates.gate import Gate
from images.formats.modules import Tree, module_name
from images.values.finding import Finding


def check(facts: Facts) -> list[Finding]:
    """Everything that is missing, once each."""
    names = (*facts.recipe.requires.root, *(facts.recipe.root or ()))
    return [
        *(_module("the root", *gap) for gap in missing(names, facts.modules, facts.known)),
        *(_module("the initrd", *gap) for gap in missing(facts.recipe.initrd, facts.early, facts.known)),
        *_firmware(facts),
        *_packages(facts),
    ]


def missing(names: Sequence[str], there: Mapping[str, Module], known: Tree) -> Iterator[tuple[str, str, str]]:
    """(module, for which module, kind of need) of all that `names` and what they need lack; the first need counts."""
    pending = [(module_name(name), "", "") for name in names]
    seen: set[str] = set()
    while pending:
        name, needer, kind = pending.pop(0)
        if name in seen or name in known.builtin:
            continue
        seen.add(name)
        if name not in there:
            yield name, needer, kind
            continue
        pending += [(module_name(other), name, "depends on") for other in there[name].depends]
        pending += [gap for soft in there[name].softdeps for gap in _soft(soft, name, there, known)]


def _soft(soft: str, needer: str, there: Mapping[str, Module], known: Tree) -> list[tuple[str, str, str]]:
    """A softdep may be an alias of several modules: those that are there count; where none is, the first is missed."""
    meant = known.resolve(soft)
    kept = [name for name in meant if name in there or name in known.builtin] or meant[:1]
    return [(name, needer, "has as its softdep") for name in kept]


def _module(place: str, name: str, needer: str, kind: str) -> Finding:
    why = f"which {needer} {kind}" if needer else "which the recipe requires"
    if not needer and place == "the root":
        remedy = (
            "add the package that brings it (on Ubuntu often linux-modules-extra-...), and the name to modules.root"
        )
    else:
        key = "modules.root" if place == "the root" else "modules.initrd"
        remedy = f"add {name} to {key}, and see that nothing under 'remove' takes it out"
    return Finding("required", f"{place} lacks the kernel module {name}, {why}", remedy)


def _firmware(facts: Facts) -> Iterator[Finding]:
    named = {name for module in facts.early.values() for name in module.firmware}
    for pattern in facts.recipe.requires.firmware:
        files = [path for path in facts.firmware if _fits(path, pattern)]
        if not files:
            cause = f"the root has no firmware /usr/lib/firmware/{pattern}, which the recipe requires"
            yield Finding("required", cause, "add the package that brings it, or correct requires.firmware")
        for path in files:
            if path in named and path not in facts.early_firmware:
                cause = f"the initrd lacks the firmware {path}, which the recipe requires and one of its modules loads"
                yield Finding("required", cause, "see that the package that brings it is not under 'remove'")


def _fits(path: str, pattern: str) -> bool:
    """`*`, `?` and `[…]` each within one name."""
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatch.fnmatchcase, names, patterns))


def _packages(facts: Facts) -> Iterator[Finding]:
    versions = {name: version for name, version, _ in facts.packages}
    for package in facts.recipe.requires.packages:
        name, _, version = package.partition("=")
        if name not in versions:
            cause = f"the package {name}, which the recipe requires, is not installed"
            yield Finding("required", cause, f"add {package} to 'packages'")
        elif version and versions[name] != version:
            cause = f"the package {name} is installed as {versions[name]}, and the recipe requires {version}"
            yield Finding("required", cause, f"add {package} to 'packages', or correct requires.packages")


def _scope(facts: Facts) -> str:
    requires = facts.recipe.requires
    modules = len({*requires.root, *(facts.recipe.root or ())})
    return (
        f"{len(facts.recipe.initrd)} modules of the initrd, {modules} of the root, "
        f"{len(requires.firmware)} firmware, {len(requires.packages)} packages"
    )


GATE = Gate("required", check, _scope)
