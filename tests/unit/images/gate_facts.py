"""Facts of an image that passes every gate; tests say what is different."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from images.build.gates.facts import Content, Facts, Module, RecipeFacts, Sources
from images.formats.modules import Tree
from images.recipe.recipe import Nvidia, Requires

KERNEL = "6.1.0-9-amd64"
CONTENT = Content(
    files=3, size=3 << 20, private_keys={}, password_hashes=(), logins={}, host_names=(), machines={"/usr/bin/a": 62}
)


def recipe_facts(**changes: Any) -> RecipeFacts:
    """What a plain recipe wants."""
    values: dict[str, Any] = {
        "architecture": "amd64",
        "requires": Requires(),
        "nvidia": Nvidia(),
        "initrd": ("virtio_net",),
        "root": ("virtio_net",),
        "arguments": (),
        "secure_boot": False,
        "kubernetes": None,
        "releases": ("1" * 64,),
    }
    return RecipeFacts(**(values | changes))


def module(name: str, folder: str = "kernel", **changes: Any) -> Module:
    """A signed module of the image's own kernel."""
    path = f"/usr/lib/modules/{KERNEL}/{folder}/{name}.ko"
    return replace(Module(path, name, vermagic=KERNEL, signed=True, machine=62), **changes)


def modules(*found: Module) -> dict[str, Module]:
    """By name, with one that every image here has."""
    return {m.name: m for m in (module("virtio_net"), *found)}


def known(folder: Path, *, builtin: str = "", aliases: str = "", dep: str = "kernel/virtio_net.ko:\n") -> Tree:
    """The tables of the kernel's packages."""
    place = folder / KERNEL
    place.mkdir(parents=True, exist_ok=True)
    for name, text in (("modules.dep", dep), ("modules.builtin", builtin), ("modules.alias", aliases)):
        (place / name).write_text(text)
    return Tree(place)


def facts(folder: Path, **changes: Any) -> Facts:
    """An image that passes."""
    package = ("systemd", "252.1-1", "amd64")
    values: dict[str, Any] = {
        "recipe": recipe_facts(),
        "kernel": KERNEL,
        "modules": modules(),
        "strange_kernels": (),
        "early": modules(),
        "early_firmware": frozenset(),
        "early_keys": {},
        "early_logins": {},
        "firmware": (),
        "libraries": (),
        "modprobe": (),
        "identity": (),
        "accounts": (),
        "content": CONTENT,
        "packages": (package,),
        "owners": {},
        "sources": Sources(frozenset({package}), ()),
        "programs": {},
    }
    values = values | changes
    return Facts(**({"known": known(folder)} | values))


def said(gate: Any, found: Facts) -> list[str]:
    """A gate's findings as they are told."""
    return [str(finding) for finding in gate.check(found)]
