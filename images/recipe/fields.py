"""The forms of what a recipe's keys hold: addresses, names and paths, each checked with words that say what is allowed.

Files beside the recipe are looked at only where the validation context names its folder (`{"folder": Path}`).
"""

import re
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from images.values import files
from images.values.types import Matching


def _fits(pattern: str, what: str) -> Matching:
    return Matching(pattern, f"{{value}} is not {what}")


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


def _beside(value: Path, info: ValidationInfo) -> Path:
    if not info.context:
        return value
    if value.is_absolute() or ".." in value.parts:
        raise ValueError(f"'{value}' must be relative to the recipe's own folder, without '..'")
    return Path(info.context["folder"]) / value


def _folder(value: Path, info: ValidationInfo) -> Path:
    folder = _beside(value, info)
    if info.context and not files.is_folder(folder):
        raise ValueError(f"there is no folder {folder}")
    return folder


def _file(value: Path, info: ValidationInfo) -> Path:
    file = _beside(value, info)
    if info.context and not files.is_file(file):
        raise ValueError(f"there is no file {file}")
    return file


def _keyring(value: Path, info: ValidationInfo) -> Path:
    """A public key may also be one of the system's (`/usr/share/keyrings/…`)."""
    if not value.is_absolute():
        return _file(value, info)
    if not files.is_file(value):
        raise ValueError(f"there is no file {value}")
    return value


def _armoured(value: Path) -> Path:
    if value.suffix not in {".asc", ".gpg"}:
        raise ValueError(
            f"'{value.name}' must end in .asc (armoured public keys) or .gpg (binary): apt goes by the name"
        )
    return value


def _mirror(value: str) -> str:
    local = re.fullmatch(r"file:///[A-Za-z0-9._~/:+-]+", value) and ".." not in PurePosixPath(value).parts
    if not local and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/:+-]*)?", value):
        # The value is not repeated: what is wrong with it may be the password in it.
        raise ValueError(
            "must be a mirror's http:// or https:// address, without user, password or query, "
            "or a folder of this machine as file:///…, without '..'"
        )
    return value


def _of_one_form(value: tuple[str, ...]) -> tuple[str, ...]:
    if len({suite.endswith("/") for suite in value}) > 1:
        raise ValueError("has suites that end in '/' (flat) and others; make two sources of them")
    return value


def _as_suites_want(value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """Components are what a suite is divided into, and a flat one is not."""
    suites = info.data.get("suites")
    if suites and suites[0].endswith("/") and value:
        raise ValueError(f"must be left out: the suite {suites[0]!r} is flat (it ends in '/') and has no components")
    if suites and not suites[0].endswith("/") and not value:
        raise ValueError("must not be empty; only a flat repository, with suites: [/], has no components")
    return value


def is_feature(value: object) -> bool:
    """Whether a value is a shipped feature's name, or the path of one beside the recipe."""
    if not isinstance(value, str):
        return False
    name = re.fullmatch(r"[a-z0-9][a-z0-9-]*", value, re.ASCII)
    path = re.fullmatch(r"[A-Za-z0-9._/-]+\.yaml", value, re.ASCII)
    return bool(name or (path and not value.startswith("/") and ".." not in PurePosixPath(value).parts))


def _feature(value: str) -> str:
    if not is_feature(value):
        raise ValueError(f"{value!r} is not a feature's name, or the path of a .yaml file beside the recipe")
    return value


def some(value: tuple[object, ...]) -> tuple[object, ...]:
    """A list that has something in it, for pydantic; else a ValueError."""
    if not value:
        raise ValueError("must not be empty")
    return value


Package = Annotated[str, _fits(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+~:-]+)?", "a package (name, or name=version)")]
OfKernel = Annotated[
    str,
    _fits(
        r"[a-z0-9][a-z0-9+.-]+(\{kernel\}|=[A-Za-z0-9.+~:-]+)?",
        "a package (name, or name=version, or name-{kernel} for the kernel's version)",
    ),
]
"""A package, or the one whose name ends in the version of the image's kernel: which it is the mirror decides."""
Module = Annotated[str, _fits(r"[A-Za-z0-9][A-Za-z0-9_-]*", "a kernel module's name")]
Feature = Annotated[str, AfterValidator(_feature)]
FirmwarePattern = Annotated[str, _fits(r"[A-Za-z0-9][A-Za-z0-9._/*?\[\]-]*", "a path below /usr/lib/firmware")]
RootModules = Annotated[tuple[Module, ...] | None, BeforeValidator(_all_or_list)]
Unit = Annotated[
    str,
    _fits(
        r"[A-Za-z0-9:_.@\\-]+\.(service|socket|target|timer|path|mount|automount|swap|slice)",
        "a systemd unit's whole name, like ssh.service",
    ),
]
Suite = Annotated[
    str, _fits(r"/|[A-Za-z0-9][A-Za-z0-9._/-]*", "a suite, like bookworm or bookworm-updates, or / (flat)")
]
Suites = Annotated[tuple[Suite, ...], AfterValidator(some), AfterValidator(_of_one_form)]
Component = Annotated[str, _fits(r"[A-Za-z0-9][A-Za-z0-9._/-]*", "a component, like main")]
Components = Annotated[tuple[Component, ...], AfterValidator(_as_suites_want)]
Address = Annotated[str, AfterValidator(_mirror)]
Keyring = Annotated[Path, AfterValidator(_keyring), AfterValidator(_armoured)]
OwnFolder = Annotated[Path, AfterValidator(_folder)]
OwnFile = Annotated[Path, AfterValidator(_file)]
Permissions = Annotated[str, BeforeValidator(_permissions)]
ImagePath = Annotated[str, AfterValidator(_absolute)]
Pattern = Annotated[str, AfterValidator(_pattern)]
