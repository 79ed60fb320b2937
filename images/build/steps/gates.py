"""All gates over the finished tree and initrd: the step fails with every finding at once (docs/gates.md)."""

import json
from dataclasses import dataclass
from pathlib import Path

from images.build.context import Context
from images.build.dracut import PACKAGES
from images.build.gates import secret_rules
from images.build.gates.facts import RecipeFacts
from images.build.gates.gate import CHECKS, all_gates, findings, report
from images.build.gates.gather import gather
from images.build.initrd import ALWAYS
from images.build.step import Product, Products, Say, Step
from images.build.steps import initrd
from images.recipe.recipe import Recipe
from images.values.finding import GateError

VERSION = 1


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was installed (with apt's lists), what it became, what of it stays, the initrd, what the recipe wants."""

    installed: Product
    tree: Product
    kernel: Product
    initrd: Product
    recipe: RecipeFacts
    dracut: Product | None = None
    """Of which packages dracut made the initrd, where it did."""


def gates(inputs: Inputs, out: Path, say: Say) -> None:
    """Write `out/gates.json`: what each gate looked at.

    Raises:
        GateError: with every finding of every gate.
    """
    facts = gather(
        inputs.installed / "root/var/lib/apt/lists",
        inputs.tree / "root",
        inputs.kernel / "root",
        (inputs.kernel / "version").read_text(encoding="ascii").strip(),
        inputs.initrd / initrd.IMAGE,
        inputs.recipe,
        inputs.dracut / PACKAGES if inputs.dracut else None,
    )
    failures = findings(facts, all_gates())
    if failures:
        raise GateError(failures)
    looked = report(facts, all_gates())
    say(f"{len(looked)} gates passed")
    (out / "gates.json").write_text(json.dumps(looked, indent=2) + "\n", encoding="utf-8")


def _inputs(context: Context, products: Products) -> Inputs:
    releases = tuple(digest for mirror in context.mirrors for digest in mirror.releases)
    trees = (products["bootstrap"], products["configure"], products["kernel"])
    return Inputs(*trees, products["initrd"], _recipe_facts(context.recipe, releases), products.get("dracut"))


def _recipe_facts(recipe: Recipe, releases: tuple[str, ...]) -> RecipeFacts:
    """What of a recipe the gates go by; `releases`: SHA-256 of its sources' InRelease files."""
    return RecipeFacts(
        architecture=recipe.architecture,
        requires=recipe.requires,
        nvidia=recipe.nvidia,
        initrd=tuple(dict.fromkeys((recipe.root_format, *ALWAYS, *recipe.modules.initrd))),
        root=recipe.modules.root,
        arguments=recipe.kernel.arguments,
        secure_boot=recipe.secure_boot,
        kubernetes=recipe.kubernetes,
        releases=releases,
        secrets_allowlist=recipe.secrets_allowlist,
    )


STEP = Step(
    "gates",
    VERSION,
    gates,
    outputs=("gates.json",),
    inputs=_inputs,
    needs=("bootstrap", "configure", "kernel", "initrd", "dracut"),
    data=(secret_rules.FOLDER,),
    loads=(CHECKS,),
)
