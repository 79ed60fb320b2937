"""Gate *signatures*: where the recipe says `secure_boot`, every kernel module has a signature behind it.

A kernel that Secure Boot locks down loads no other (kernel_lockdown(7)). Whose signature it is, the kernel judges: what
it trusts is in the kernel and in the machine's firmware. Format: Linux Documentation/admin-guide/module-signing.rst.
"""

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.faults import first_few
from images.values.finding import Finding

_SHOWN = 5


def check(facts: Facts) -> list[Finding]:
    """One finding that names the first of them."""
    if not facts.recipe.secure_boot:
        return []
    everywhere = [*facts.modules.values(), *(m for name, m in facts.early.items() if name not in facts.modules)]
    unsigned = sorted(module.path for module in everywhere if not module.signed and not module.fault)
    if not unsigned:
        return []
    count = "1 kernel module is" if len(unsigned) == 1 else f"{len(unsigned)} kernel modules are"
    return [
        Finding(
            "signatures",
            f"{count} not signed, and the recipe asks for Secure Boot: {first_few(unsigned, _SHOWN)}",
            "take signed modules of the distribution, sign them with a key that the machines' firmware knows, "
            "or take secure_boot out of the recipe",
        )
    ]


def _scope(facts: Facts) -> str:
    signed = sum(module.signed for module in facts.modules.values())
    asked = "asked for" if facts.recipe.secure_boot else "not asked for"
    return f"{signed} of {len(facts.modules)} modules signed; {asked}"


GATE = Gate("signatures", check, _scope)
