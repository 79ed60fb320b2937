"""A recipe: what an image is to be, as a validated value. `images.inherit` reads it from YAML; keys: `docs/recipes.md`.

Validators look at files beside the recipe only where the validation context names its folder (`{"folder": Path}`);
paths are absolute from then on.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from images.manifest import Architecture, KernelArgument, Name
from images.overlay import Entry, read_file, read_folder
from images.step import digest, plain
from images.strict import Strict

Profile = Literal["dev", "release"]


def _fits(pattern: str, what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value, re.ASCII):
            raise ValueError(f"{value!r} is not {what}")
        return value

    return AfterValidator(check)


def _absolute(value: str) -> str:
    path = PurePosixPath(value)
    if not path.is_absolute() or ".." in path.parts or str(path) != value or value == "/" or not value.isprintable():
        raise ValueError(f"{value!r} is not an absolute path without '..', '//' or a slash at the end")
    return value


def _pattern(value: str) -> str:
    if len(PurePosixPath(_absolute(value)).parts) == 2 and "*" in value:
        raise ValueError(f"{value!r} may fit whole top-level folders; name what is to go")
    return value


def _permissions(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-7]{4}", value):
        raise ValueError("must be four octal digits in quotes, like '0644'")
    return value


def _all_or_list(value: object) -> object:
    if value is not None and value != "all" and not isinstance(value, list | tuple):
        raise ValueError("must be a list of kernel modules, or all")
    return None if value == "all" else value


def _own_argument(value: str) -> str:
    if value.startswith(("netboot.", "BOOTIF=", "systemd.hostname=")):
        raise ValueError(f"{value.partition('=')[0]!r} is set by the service for each machine; a recipe cannot set it")
    return value


def _beside(value: Path, info: ValidationInfo) -> Path:
    if not info.context:
        return value
    if value.is_absolute() or ".." in value.parts:
        raise ValueError(f"'{value}' must be relative to the recipe's own folder, without '..'")
    return Path(info.context["folder"]) / value


def _folder(value: Path, info: ValidationInfo) -> Path:
    folder = _beside(value, info)
    if info.context and not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    return folder


def _file(value: Path, info: ValidationInfo) -> Path:
    file = _beside(value, info)
    if info.context and not file.is_file():
        raise ValueError(f"there is no file {file}")
    return file


def _keyring(value: Path, info: ValidationInfo) -> Path:
    """A public key may also be one of the system's (`/usr/share/keyrings/…`)."""
    if not value.is_absolute():
        return _file(value, info)
    if not value.is_file():
        raise ValueError(f"there is no file {value}")
    return value


def _armoured(value: Path) -> Path:
    if value.suffix not in {".asc", ".gpg"}:
        raise ValueError(
            f"'{value.name}' must end in .asc (armoured public keys) or .gpg (binary): apt goes by the name"
        )
    return value


def _mirror(value: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/+-]*)?", value):
        # The value is not repeated: what is wrong with it may be the password in it.
        raise ValueError("must be a mirror's http:// or https:// address, without user, password or query")
    return value


def _some(value: tuple[object, ...]) -> tuple[object, ...]:
    if not value:
        raise ValueError("must not be empty")
    return value


Package = Annotated[str, _fits(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+~:-]+)?", "a package (name, or name=version)")]
Module = Annotated[str, _fits(r"[A-Za-z0-9][A-Za-z0-9_-]*", "a kernel module's name")]
Unit = Annotated[
    str,
    _fits(
        r"[A-Za-z0-9:_.@\\-]+\.(service|socket|target|timer|path|mount|automount|swap|slice)",
        "a systemd unit's whole name, like ssh.service",
    ),
]
Suite = Annotated[str, _fits(r"[A-Za-z0-9][A-Za-z0-9._/-]*", "a suite, like bookworm or bookworm-updates")]
Component = Annotated[str, _fits(r"[A-Za-z0-9][A-Za-z0-9._/-]*", "a component, like main")]
Mirror = Annotated[str, AfterValidator(_mirror)]
ImagePath = Annotated[str, AfterValidator(_absolute)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Argument = Annotated[KernelArgument, AfterValidator(_own_argument)]


class Source(Strict):
    """Suites of one package mirror, and the public keys that must have signed them."""

    url: Mirror
    suites: Annotated[tuple[Suite, ...], AfterValidator(_some)]
    components: Annotated[tuple[Component, ...], AfterValidator(_some)]
    signed_by: Annotated[Path, AfterValidator(_keyring), AfterValidator(_armoured)]


class Kernel(Strict):
    """The kernel's package, and the arguments that every machine boots it with."""

    package: Package
    arguments: tuple[Argument, ...] = ()


class Modules(Strict):
    """Kernel modules by place; what they depend on comes along. `root` None: all that the kernel's package has."""

    initrd: tuple[Module, ...] = ()
    root: Annotated[tuple[Module, ...] | None, BeforeValidator(_all_or_list)] = None


class File(Strict):
    """One file of the root: its text, a file beside the recipe, or where a symbolic link points to."""

    content: str | None = None
    source: Annotated[Path, AfterValidator(_file)] | None = None
    link: Annotated[str, Field(min_length=1)] | None = None
    mode: Annotated[str, BeforeValidator(_permissions)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [name for name in ("content", "source", "link") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"must have one of content, source and link, and has {' and '.join(given) or 'none'}")
        if self.link is not None and self.mode is not None:
            raise ValueError("a link has no mode")
        return self

    def entry(self, path: str) -> Entry:
        """The file, read."""
        mode = None if self.mode is None else int(self.mode, 8)
        if self.source is not None:
            return read_file(path, self.source, mode)
        if self.link is not None:
            return Entry(path, link=self.link)
        return Entry(path, 0o644 if mode is None else mode, (self.content or "").encode())


class Recipe(Strict):
    """All that decides what an image holds. Paths are absolute once `images.inherit.load` has returned it."""

    name: Name
    base: Annotated[str, Field(min_length=1)] | None = None
    description: str = ""
    distribution: Name
    suite: Name
    architecture: Architecture
    profile: Profile = "dev"
    sources: Annotated[tuple[Source, ...], AfterValidator(_some)]
    kernel: Kernel
    modules: Modules = Modules()
    packages: Annotated[tuple[Package, ...], AfterValidator(_some)]
    overlay: tuple[Annotated[Path, AfterValidator(_folder)], ...] = ()
    files: dict[ImagePath, File] = Field(default_factory=dict)
    units: dict[Unit, Literal["enable", "disable", "mask"]] = Field(default_factory=dict)
    remove: tuple[Pattern, ...] = ()
    budget_mib: Annotated[int, Field(ge=1, le=65536)]
    epoch: Annotated[int, Field(ge=0, le=2**31)] = 0

    def entries(self) -> tuple[Entry, ...]:
        """The overlay as it is to be written: folders in their order, then files; of two with one path the later."""
        found = {entry.path: entry for folder in self.overlay for entry in read_folder(folder)}
        found |= {path: file.entry(path) for path, file in self.files.items()}
        return tuple(found[path] for path in sorted(found))

    def identity(self, steps: tuple[str, ...], keys: tuple[bytes, ...]) -> str:
        """Hash of all that the recipe says, of the files that it names, of each build step and of the keys baked in."""
        said = self.model_dump(
            mode="json", exclude={"sources": {"__all__": {"signed_by"}}, "overlay": True, "files": True}
        )
        keyrings = [source.signed_by.read_bytes() for source in self.sources]
        return digest([said, plain(keyrings), plain(self.entries()), list(steps), plain(keys)])
