"""What each step of a build gets: what the recipe says, and what was found out before the first step."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from images.artifact.manifest import ContainerImage
from images.build.containers import Archive
from images.build.documents.sbom import Subject
from images.build.node_files import node_files
from images.build.secureboot import SecureBootKey
from images.build.sources import Mirror
from images.build.step import Product, Step, by_content
from images.build.steps import bootstrap, configure, documents, drivers, gates, initrd, kernel, manifest, root, uki
from images.formats.overlay import read_folder
from images.recipe.lockfile import Lock
from images.recipe.recipe import Recipe

NODE = Path(str(files("images") / "node"))
STEPS: tuple[Step[Any], ...] = (
    *(bootstrap.STEP, drivers.STEP, configure.STEP, kernel.STEP, documents.STEP, root.STEP),
    *(initrd.GATHER, initrd.STEP, uki.STEP, gates.STEP, manifest.STEP),
)
"""The steps whose products are cached."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One build. Its methods, in the order of `STEPS`, give the inputs of a step from the products before it."""

    recipe: Recipe
    keys: dict[str, bytes]
    """Public keys that the image trusts: signify's, by file name."""
    mirrors: tuple[Mirror, ...]
    archives: tuple[Archive, ...] = ()
    """The recipe's container images."""
    lock: Lock | None = None
    packages: Path | None = None
    """Where packages are kept between builds; None: nowhere."""

    @property
    def created(self) -> int:
        """The image's time, in seconds since 1970: of its newest source, or of its lock."""
        return self.lock.created if self.lock else max(mirror.newest for mirror in self.mirrors)

    @property
    def containers(self) -> tuple[ContainerImage, ...]:
        """Every container image that the root brings."""
        return tuple(image for archive in self.archives for image in archive.images)

    @property
    def identity(self) -> str:
        """The recipe's identity: all that it says, all steps, the keys that are baked in."""
        keys = tuple(self.keys[name] for name in sorted(self.keys))
        return self.recipe.identity(tuple(step.identity() for step in STEPS), keys)

    def bootstrap(self) -> bootstrap.Inputs:
        """What is installed: the recipe's packages and its kernel."""
        recipe, stub = self.recipe, {uki.PACKAGE} if self.recipe.uki else set()
        wanted = tuple(sorted({*recipe.installs(), *stub}))
        mirrors = (self.mirrors, wanted, self.created, self.packages, self.lock)
        return bootstrap.Inputs(recipe.suite, recipe.architecture, *mirrors)

    def drivers(self) -> drivers.Inputs:
        """What is compiled: the recipe's drivers, for its kernel."""
        recipe = self.recipe
        merged = tuple(name for name in recipe.packages if name == "usr-is-merged")
        return drivers.Inputs(
            suite=recipe.suite,
            architecture=recipe.architecture,
            mirrors=self.mirrors,
            kernel=recipe.kernel.package,
            packages=recipe.drivers,
            merged_usr=merged,
            created=self.created,
            patches=tuple((path.name, path.read_bytes()) for path in recipe.driver_patches),
            archives=self.packages,
            lock=self.lock.of_build() if self.lock else None,
        )

    def configure(self, base: Product, compiled: Product | None = None) -> configure.Inputs:
        """What the tree becomes: our own units and files, then the recipe's."""
        recipe, node = self.recipe, read_folder(NODE / "root")
        if recipe.join:
            node += node_files()
        if self.archives:
            node += read_folder(NODE / "containers")
        return configure.Inputs(
            base=base,
            node=node,
            node_units=installable(node),
            entries=recipe.entries(),
            units=recipe.units,
            remove=recipe.remove,
            created=self.created,
            archives=self.archives,
            drivers=compiled,
        )

    def kernel(self, tree: Product) -> kernel.Inputs:
        """What stays of the tree: no EFI stub, which is in the unified kernel image."""
        return kernel.Inputs(tree, self.recipe.modules.root, (uki.STUBS,) if self.recipe.uki else ())

    def documents(self, base: Product, tree: Product, system: Product) -> documents.Inputs:
        """What the documents tell of."""
        recipe = self.recipe
        return documents.Inputs(
            base=base,
            tree=tree,
            kernel=system,
            subject=Subject(
                name=recipe.name,
                recipe=self.identity,
                distribution=recipe.distribution,
                suite=recipe.suite,
                architecture=recipe.architecture,
                created=self.created,
            ),
            recipe=recipe.said(),
            steps=tuple((step.name, step.version, step.identity()) for step in STEPS),
            releases=tuple(
                ("file:" if mirror.url.startswith("file:") else mirror.url, suite, release)
                for mirror in (self.mirrors if recipe.lock is None else ())  # a lock says which, wherever they lie
                for suite, release in zip(mirror.suites, mirror.releases, strict=True)
            ),
            containers=self.containers,
        )

    def root(self, system: Product) -> root.Inputs:
        """What is packed, and how."""
        return root.Inputs(system, self.recipe.profile, self.created, self.recipe.root_format)

    def gather(self, tree: Product, system: Product) -> initrd.Sources:
        """What starts first: the recipe's modules, and the keys that it trusts."""
        recipe = self.recipe
        return initrd.Sources(tree, system, recipe.modules.initrd, tuple(sorted(self.keys.items())), recipe.root_format)

    def initrd(self, gathered: Product) -> initrd.Inputs:
        """What is compressed: the same whenever its content is."""
        return initrd.Inputs(by_content(gathered, initrd.GATHERED))

    def uki(self, tree: Product, system: Product, early: Product, signer: SecureBootKey | None) -> uki.Inputs:
        """What one file is made of."""
        recipe = self.recipe
        return uki.Inputs(tree, system, early, recipe.architecture, recipe.kernel.arguments, self.created, signer)

    def gates(self, base: Product, tree: Product, system: Product, early: Product) -> gates.Inputs:
        """What is checked, and what the recipe wants of it."""
        releases = tuple(digest for mirror in self.mirrors for digest in mirror.releases)
        return gates.Inputs(base, tree, system, early, gates.wanted(self.recipe, releases))

    def manifest(
        self, system: Product, packed: Product, early: Product, unified: Product | None, about: Product
    ) -> manifest.Inputs:
        """What the image is described by."""
        recipe = self.recipe
        return manifest.Inputs(
            kernel=system,
            root=packed,
            initrd=early,
            name=recipe.name,
            distribution=recipe.distribution,
            suite=recipe.suite,
            architecture=recipe.architecture,
            recipe=self.identity,
            epoch=recipe.epoch,
            created=self.created,
            arguments=recipe.kernel.arguments,
            budget_mib=recipe.budget_mib,
            root_format=recipe.root_format,
            uki=unified,
            machine_memory_mib=recipe.machine_memory_mib,
            containers=self.containers,
            documents=about,
        )


def installable(node: tuple[Any, ...]) -> tuple[str, ...]:
    """The units among the node's files that say what they are enabled for."""
    folder = "/systemd/system/"
    return tuple(Path(entry.path).name for entry in node if folder in entry.path and b"\n[Install]\n" in entry.content)
