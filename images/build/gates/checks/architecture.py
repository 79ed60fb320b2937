"""Gate *architecture*: programs, libraries and kernel modules are for the image's own machines."""

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.faults import first_few
from images.values.finding import Finding

MACHINES = {"amd64": 62, "arm64": 183}
"""ELF's e_machine (elf(5)): EM_X86_64, EM_AARCH64."""
OTHERS = {2: "sparc", 3: "i386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 43: "sparc64",
          62: "amd64", 183: "arm64", 243: "riscv", 258: "loongarch"}  # fmt: skip
"""Machines that run programs. What GPUs, BPF and firmware are made of is ELF too, and is none of a root's business."""
_SHOWN = 5


def check(facts: Facts) -> list[Finding]:
    """One finding for each foreign architecture that there is."""
    expected = MACHINES[facts.recipe.architecture]
    modules = {module.path: module.machine for module in (*facts.modules.values(), *facts.early.values())}
    strange: dict[str, list[str]] = {}
    for path, machine in sorted({**facts.content.machines, **modules}.items()):
        if machine != expected and machine in OTHERS:
            strange.setdefault(OTHERS[machine], []).append(path)
    return [
        Finding(
            "architecture",
            f"the image is for {facts.recipe.architecture}, and {len(paths)} "
            f"{'file is' if len(paths) == 1 else 'files are'} for {name}: {first_few(paths, _SHOWN)}",
            f"take them built for {facts.recipe.architecture}, or leave them out",
        )
        for name, paths in strange.items()
    ]


def _scope(facts: Facts) -> str:
    return f"{len(facts.content.machines)} programs and libraries, {len(facts.modules)} modules"


GATE = Gate("architecture", check, _scope)
