"""What differs between two images by their documents: files, kernel configuration, kernel modules."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from images.build.documents import listing
from images.build.documents.listing import Entry
from images.formats.modules import module_name

ASPECTS = {
    "kind": ("kind",),
    "mode": ("mode",),
    "owner": ("uid", "gid"),
    "size": ("size",),
    "content": ("sha256",),
    "target": ("target",),
    "attributes": ("attributes",),
}
"""What can differ about a path that both have, and the fields of a listing's entry that say so."""

_MODULE = re.compile(r"(?:/usr)?/lib/modules/[^/]+/.+\.ko(?:\.xz|\.zst|\.gz)?")
_OPTION = re.compile(r"^(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)$", re.MULTILINE)


_WORDS = {
    "files": ("listing of files", "files and modules are not compared"),
    "config": ("kernel configuration", "it is not compared"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs. `aspects`: names of `ASPECTS`, for what both have; else one of `old` and `new` is None."""

    path: str
    change: Literal["added", "removed", "changed"]
    aspects: tuple[str, ...]
    old: Entry | None
    new: Entry | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Old → new; None: cannot be told, and `unknown` says why. An option that is not there or not set is `n`."""

    files: tuple[Change, ...] | None
    config: dict[str, tuple[str, str]] | None
    modules_added: tuple[str, ...] | None
    modules_removed: tuple[str, ...] | None
    unknown: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is known to differ."""
        return not (self.files or self.config or self.modules_added or self.modules_removed)


def compare(old: Mapping[str, Path], new: Mapping[str, Path], names: tuple[str, str] = ("old", "new")) -> Comparison:
    """Compare two images by the files of their documents, by the manifest's names; `names` is how messages call them.

    Raises:
        CorruptError: a listing is not one.
    """
    unknown = [
        line
        for document, (what, then) in _WORDS.items()
        if (
            line := _lacking(
                [name for name, there in zip(names, (old, new), strict=True) if document not in there], what, then
            )
        )
    ]
    file_changes: tuple[Change, ...] | None = None
    modules: tuple[set[str], set[str]] | None = None
    if "files" in old and "files" in new:
        with ExitStack() as stack:
            old_listing, new_listing = (stack.enter_context(side["files"].open("rb")) for side in (old, new))
            file_changes = tuple(changes(listing.read(old_listing), listing.read(new_listing)))
            old_listing.seek(0)
            new_listing.seek(0)
            modules = modules_of(listing.read(old_listing)), modules_of(listing.read(new_listing))
    return Comparison(
        files=file_changes,
        config=options_changed(_text(old["config"]), _text(new["config"]))
        if "config" in old and "config" in new
        else None,
        modules_added=tuple(sorted(modules[1] - modules[0])) if modules else None,
        modules_removed=tuple(sorted(modules[0] - modules[1])) if modules else None,
        unknown=tuple(unknown),
    )


def _lacking(names: list[str], what: str, then: str) -> str:
    """What cannot be told, because these images have no such document; nothing where both have it."""
    if len(names) == 2:
        return f"neither image has a {what}: {then}; build them again for that"
    return f"image {names[0]} has no {what}: {then}; build it again for that" if names else ""


def changes(old: Iterator[Entry], new: Iterator[Entry]) -> Iterator[Change]:
    """The paths that differ, in the listings' order; holds one entry of each."""
    before, after = next(old, None), next(new, None)
    while before is not None or after is not None:
        if after is None or (before is not None and listing.order(before["path"]) < listing.order(after["path"])):
            assert before is not None
            yield Change(before["path"], "removed", (), before, None)
            before = next(old, None)
        elif before is None or listing.order(after["path"]) < listing.order(before["path"]):
            yield Change(after["path"], "added", (), None, after)
            after = next(new, None)
        else:
            aspects = tuple(
                name
                for name, fields in ASPECTS.items()
                if any(before.get(field) != after.get(field) for field in fields)
            )
            if aspects:
                yield Change(before["path"], "changed", aspects, before, after)
            before, after = next(old, None), next(new, None)


def modules_of(entries: Iterable[Entry]) -> set[str]:
    """Names of the kernel modules among the paths, whichever kernel version's folder they are in."""
    return {module_name(entry["path"]) for entry in entries if _MODULE.fullmatch(entry["path"])}


def options(config: str) -> dict[str, str]:
    """A kernel configuration's options that are set."""
    return {name: value for name, value, _ in _OPTION.findall(config) if name}


def options_changed(old: str, new: str) -> dict[str, tuple[str, str]]:
    """Option → its value in both; `n` where it is not set."""
    was, now = options(old), options(new)
    pairs: dict[str, tuple[str, str]] = {
        name: (was.get(name, "n"), now.get(name, "n")) for name in sorted(was.keys() | now.keys())
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def facts(comparison: Comparison) -> dict[str, Any]:
    """As JSON for programs."""
    return {
        "files": None
        if comparison.files is None
        else [
            {
                "path": change.path,
                "change": change.change,
                "aspects": list(change.aspects),
                "old": change.old,
                "new": change.new,
            }
            for change in comparison.files
        ],
        "kernel_config": comparison.config,
        "modules": None
        if comparison.modules_added is None or comparison.modules_removed is None
        else {"added": list(comparison.modules_added), "removed": list(comparison.modules_removed)},
        "unknown": list(comparison.unknown),
    }
