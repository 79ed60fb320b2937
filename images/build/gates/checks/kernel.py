"""Gate *kernel*: every module was made for the image's kernel. Another kernel's modules do not load (`vermagic`)."""

from images.build.gates.facts import Facts, Module
from images.build.gates.gate import Gate
from images.values.finding import Finding

_REBUILD = "compile or install it for the image's own kernel (kernel.package), or take it out with 'remove'"


def check(facts: Facts) -> list[Finding]:
    """Modules of other kernels, and modules that are none."""
    everywhere = (*facts.modules.values(), *facts.early.values())
    findings = [finding for module in everywhere for finding in _module(facts, module)]
    return findings + [
        Finding(
            "kernel",
            f"/usr/lib/modules/{version} is there, and the image's kernel is {facts.kernel}",
            "take out the package that brings it, or the folder with 'remove'",
        )
        for version in facts.strange_kernels
    ]


def _module(facts: Facts, module: Module) -> list[Finding]:
    if module.fault:
        return [Finding("kernel", f"{module.path} is no kernel module: {module.fault}", _REBUILD)]
    if module.vermagic != facts.kernel:
        origin = f"was made for kernel {module.vermagic}" if module.vermagic else "does not say for which kernel it is"
        return [Finding("kernel", f"{module.path} {origin}, and the image's kernel is {facts.kernel}", _REBUILD)]
    return []


def _scope(facts: Facts) -> str:
    return f"{facts.kernel}: {len(facts.modules)} modules in the root, {len(facts.early)} in the initrd"


GATE = Gate("kernel", check, _scope)
