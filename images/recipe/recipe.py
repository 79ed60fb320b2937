"""A recipe: what an image is to be, as a validated value. `inherit` reads it from YAML; keys: `docs/recipes.md`.

Validators look at files beside the recipe only where the validation context names its folder (`{"folder": Path}`);
paths are absolute from then on.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from images.formats.overlay import Entry, read_file, read_folder
from images.recipe import fields
from images.recipe.dracut import Dracut
from images.recipe.fields import some
from images.values.digests import digest, file_digest, plain
from images.values.kernel_arguments import ArgumentName, RecipeArgument
from images.values.network_arguments import fault
from images.values.strict import Strict
from images.values.types import Architecture, Matching, Name, RootFormat, Sha256

Profile = Literal["dev", "release"]
Fit = Literal["exact", "major"]
Debug = Literal["initrd-shell", "console-login"]


class Source(Strict):
    """Suites of one package mirror, and the public keys that must have signed them.

    An heir's source takes the place of the base's of the same name.
    """

    name: Name | None = None
    url: fields.Address
    suites: fields.Suites
    components: Annotated[fields.Components, Field(validate_default=True)] = ()
    signed_by: fields.Keyring


def _understood(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """What the initrd would refuse at each boot is refused before the build."""
    why = fault(arguments)
    if why is not None:
        raise ValueError(why)
    return arguments


class Kernel(Strict):
    """The kernel's package, and the arguments that every machine boots it with, unless its profile says otherwise."""

    package: fields.Package
    remove_arguments: tuple[ArgumentName, ...] = ()
    """Names of a base's or a feature's arguments that go; none is left once `images.recipe.inherit.load` is done."""
    arguments: Annotated[tuple[RecipeArgument, ...], AfterValidator(_understood)] = ()


class Modules(Strict):
    """Kernel modules by place; what they depend on comes along. `root` None: all that the kernel's package has."""

    initrd: tuple[fields.Module, ...] = ()
    root: fields.RootModules = None


class File(Strict):
    """One file of the root: its text, a file beside the recipe, or where a symbolic link points to."""

    content: str | None = None
    source: fields.OwnFile | None = None
    link: Annotated[str, Field(min_length=1)] | None = None
    mode: fields.Permissions | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [name for name in ("content", "source", "link") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"must have one of content, source and link, and has {' and '.join(given) or 'none'}")
        if self.link is not None and self.mode is not None:
            raise ValueError("a link has no mode")
        return self

    def entry(self, path: str) -> Entry:
        """What is written at `path` of the image: `source` is read now, `content` and `link` are taken as they are."""
        mode = None if self.mode is None else int(self.mode, 8)
        if self.source is not None:
            return read_file(path, self.source, mode)
        if self.link is not None:
            return Entry(path, link=self.link)
        return Entry(path, 0o644 if mode is None else mode, (self.content or "").encode())


def _distinct(value: tuple[Source, ...]) -> tuple[Source, ...]:
    names = [source.name for source in value if source.name]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two sources are named {name!r}, and one would take the other's place")
    return value


class Requires(Strict):
    """What the image must have, beyond what `modules` names: a gate looks for each of these, and builds nothing."""

    root: tuple[fields.Module, ...] = ()
    """Kernel modules of the root, with their softdeps; for recipes whose `modules.root` is all."""
    firmware: tuple[fields.FirmwarePattern, ...] = ()
    """Paths below /usr/lib/firmware; `*`, `?` and `[…]` stand for parts of one name."""
    packages: tuple[fields.Package, ...] = ()
    """Packages that must have been installed, whatever brought them."""


class Nvidia(Strict):
    """How parts of NVIDIA's driver must fit its kernel module: to the last digit, or by the version's first number.

    There is no such choice for firmware, libraries, nvidia-smi and fabric manager: the driver refuses those of another
    version.
    """

    persistenced: Fit = "exact"
    nscq: Fit = "exact"


class AllowedSecret(Strict):
    """A file of the root in which the gate *secrets* finds what is none, as an example in a package's own file.

    `sha256`: of the whole file. With another content it is a finding again.
    """

    path: fields.ImagePath
    sha256: Sha256
    reason: Annotated[str, Matching(r"[^\s\x00-\x1f][^\x00-\x1f]{9,299}", "must be one line of 10 to 300 characters")]


class Recipe(Strict):
    """All that decides what an image holds. Paths are absolute once `images.recipe.inherit.load` has returned it."""

    name: Name
    base: Annotated[str, Field(min_length=1)] | None = None
    features: tuple[fields.Feature, ...] = ()
    """Fragments that were merged in, in their order: `images/recipes/features/`."""
    description: str = ""
    distribution: Name
    suite: Name
    architecture: Architecture
    profile: Profile = "dev"
    sources: Annotated[tuple[Source, ...], AfterValidator(some), AfterValidator(_distinct)]
    kernel: Kernel
    modules: Modules = Modules()
    packages: Annotated[tuple[fields.OfKernel, ...], AfterValidator(some)]
    drivers: tuple[fields.Package, ...] = ()
    """Packages of module sources (DKMS), compiled for the image's kernel; they are not installed in the image."""
    driver_patches: tuple[fields.OwnFile, ...] = ()
    """Patches of these sources (patch -p1), where they do not compile with a newer kernel."""
    dracut: Dracut | None = None
    """What dracut is to put into an initrd of its making; None: the initrd is ours."""
    overlay: tuple[fields.OwnFolder, ...] = ()
    files: dict[fields.ImagePath, File] = Field(default_factory=dict)
    units: dict[fields.Unit, Literal["enable", "disable", "mask"]] = Field(default_factory=dict)
    remove: tuple[fields.Pattern, ...] = ()
    container_images: tuple[fields.OwnFile, ...] = ()
    lock: fields.OwnFile | None = None
    """Versions of all packages, as `netboot image lock` wrote them (`images.recipe.lockfile`)."""
    join: bool = False
    requires: Requires = Requires()
    nvidia: Nvidia = Nvidia()
    secrets_allowlist: tuple[AllowedSecret, ...] = Field((), exclude_if=lambda allowed: not allowed)
    """Not written where there is none, so that recipes of before have the identity that they had."""
    secure_boot: bool = False
    """Whether every kernel module must be signed."""
    kubernetes: Annotated[str, Field(pattern=r"^1\.[0-9]{1,3}$")] | None = None
    """The cluster's version, like 1.34: the kubelet may be up to three minor versions older and never newer."""
    debug: tuple[Debug, ...] = ()
    """Ways in, for whoever has the console; a release image has none unless `netboot image build --yes` says so."""
    root_format: RootFormat = "squashfs"
    uki: bool = False
    """Whether kernel, initrd and arguments are made into one PE file too."""
    budget_mib: Annotated[int, Field(ge=1, le=65536)]
    machine_memory_mib: Annotated[int, Field(ge=128, le=2**24)] | None = None
    """Memory of the smallest machine that is to boot it: a quarter of it must be left for work (gate *memory*)."""
    epoch: Annotated[int, Field(ge=0, le=2**31)] = 0

    def entries(self) -> tuple[Entry, ...]:
        """The overlay as it is to be written: folders in their order, then files; of two with one path the later."""
        entries = {entry.path: entry for folder in self.overlay for entry in read_folder(folder)}
        entries |= {path: file.entry(path) for path, file in self.files.items()}
        return tuple(entries[path] for path in sorted(entries))

    def identity(self, steps: tuple[str, ...], keys: tuple[bytes, ...]) -> str:
        """Hash of all that the recipe says, of the files that it names, of each build step and of the keys baked in."""
        keyrings = [source.signed_by.read_bytes() for source in self.sources]
        archives = [file_digest(path) for path in (*self.container_images, *self.driver_patches)]
        return digest([self.as_json(), plain(keyrings), plain(self.entries()), archives, list(steps), plain(keys)])

    def as_json(self) -> dict[str, Any]:
        """All that the recipe says, as JSON has it, but for files that it names: where they lie here says nothing."""
        read: Any = {"overlay": True, "files": True, "container_images": True, "driver_patches": True, "lock": True}
        document: dict[str, Any] = self.model_dump(mode="json", exclude={"sources": {"__all__": {"signed_by"}}, **read})
        for source in document["sources"]:
            if source["url"].startswith("file:"):
                source["url"] = "file:"  # where it lies here says nothing about the packages in it
        return document | ({"lock": file_digest(self.lock)} if self.lock else {})

    def compiles(self) -> tuple[str, ...]:
        """What modules are compiled from, and the kernel's package that they are for; empty without drivers."""
        return tuple(sorted({*self.drivers, self.kernel.package})) if self.drivers else ()

    def installs(self) -> tuple[str, ...]:
        """The packages that are asked for: those of the list, and the kernel's."""
        return tuple(sorted({*self.packages, self.kernel.package}))
