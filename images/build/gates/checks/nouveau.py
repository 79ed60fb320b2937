"""Gate *nouveau*: where NVIDIA's driver is, the kernel's own must not take the GPUs first.

Both claim the same PCI ids; a blacklist in the image also saves 10 to 30 s of each boot (Azure/AgentBaker#8614).
"""

import re

from images.build.gates.checks.nvidia import driver_modules
from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding

_LINE = re.compile(r"blacklist\s+nouveau\s*|install\s+nouveau\s+(/usr)?/bin/(false|true)\s*")
_ARGUMENT = re.compile(r"(modprobe\.blacklist|module_blacklist)=(.*,)?nouveau(,.*)?")


def check(facts: Facts) -> list[Finding]:
    """One finding where nothing keeps nouveau out."""
    if not driver_modules(facts) or _blacklisted(facts):
        return []
    return [
        Finding(
            "nouveau",
            "the image has NVIDIA's kernel modules, and nothing keeps nouveau from taking the GPUs first",
            'add to the recipe: files: {/etc/modprobe.d/nouveau.conf: {content: "blacklist nouveau\\n"}}',
        )
    ]


def _blacklisted(facts: Facts) -> bool:
    by_file = any(_LINE.fullmatch(line) for line in facts.modprobe)
    return by_file or any(_ARGUMENT.fullmatch(argument) for argument in facts.recipe.arguments)


def _scope(facts: Facts) -> str:
    return "blacklisted" if _blacklisted(facts) else "no NVIDIA driver"


GATE = Gate("nouveau", check, _scope)
