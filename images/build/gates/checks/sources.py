"""Gate *sources*: every package is one that a signed release of the recipe's own sources lists, version and all.

apt checked the signatures of the releases as it read them; their digests are those of the mirrors as they were asked.
"""

from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding


def check(facts: Facts) -> list[Finding]:
    """One finding for each package, and for each list that no release vouches for."""
    return [
        *(
            Finding(
                "sources",
                f"the package list {name} is in no signed release of the recipe's sources",
                "build again from clean: something has written into the package lists",
            )
            for name in facts.sources.strangers
        ),
        *(
            Finding(
                "sources",
                f"the package {name} {version} ({architecture}) is in none of the recipe's signed sources",
                "add a signed repository that has it to 'sources', or leave the package out",
            )
            for name, version, architecture in dict.fromkeys((*facts.packages, *facts.early_packages))
            if (name, version, architecture) not in facts.sources.packages
        ),
    ]


def _scope(facts: Facts) -> str:
    return f"{len(facts.packages)} packages, {len(facts.recipe.releases)} releases"


GATE = Gate("sources", check, _scope)
