"""`netboot image`: build, look at, verify, publish and remove images. Works on local files; no service is needed."""

import importlib
from pathlib import Path
from typing import Any

import click

from images.artifact.bundle import read_bundle
from images.artifact.keyring import KeyRing
from images.artifact.signing import Verdict, examine
from images.errors import ImageError
from images.store import check
from images.store.gc import needed
from images.store.lookup import resolve
from images.store.store import Image, Store
from netboot.cli import complete
from netboot.cli.output import image_digest, output_option, show
from netboot.cli.paths import Paths, paths_options
from netboot.cli.times import moment
from netboot.clock import rfc3339

_VERDICTS: dict[Verdict, str] = {
    "good": "trusted here",
    "bad": "trusted here, and it does not fit: see `netboot image verify`",
    "unknown": "not trusted here",
}
_ELSEWHERE = {
    "build": "netboot.cli.build:build",
    "gc": "netboot.cli.removing:gc",
    "rm": "netboot.cli.removing:rm",
    "lock": "netboot.cli.build:lock",
    "rebuild": "netboot.cli.rebuild:rebuild",
    "sources": "netboot.cli.sources:group",
    "diff": "netboot.cli.documents:diff_",
    "cat": "netboot.cli.documents:cat",
    "audit": "netboot.cli.audit:audit",
    "sign": "netboot.cli.signatures:sign",
    "verify": "netboot.cli.signatures:verify",
    "push": "netboot.cli.publish:push",
    "pull": "netboot.cli.publish:pull",
    "promote": "netboot.cli.publish:promote",
    "export": "netboot.cli.publish:export_",
    "import": "netboot.cli.publish:import_",
    "revoke": "netboot.cli.revoke:revoke",
    "unrevoke": "netboot.cli.revoke:unrevoke",
    "revocations": "netboot.cli.revoke:list_",
}


class _Group(click.Group):
    """The group, with commands of their own files (and all that they need) imported only when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["build", *super().list_commands(ctx), *(name for name in _ELSEWHERE if name != "build")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, _, name = _ELSEWHERE[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Group)
def group() -> None:
    """Build, list, verify, sign, compare, publish and remove images.

    An image is a kernel, an initrd, a root image and a signed manifest that binds them; its digest names it for ever.
    IMAGE is such a digest, the beginning of one (8 characters at least), or a recipe's name for its newest image.

    \b
    Example:
      netboot image list
      netboot image show debian-12-minimal
      netboot image diff 4c1d22e0 debian-12-minimal
    """


@group.command("list")
@paths_options(keys=False)
@output_option
def list_(paths: Paths, output: str) -> None:
    """List the images of the store, newest first.

    \b
    Example:  netboot image list --output json
    """
    opened = Store(paths.store)
    images, why, revoked = opened.images(), needed(opened), _revoked(opened)
    rows = [
        (
            image_digest(output, image.digest),
            image.manifest.name,
            image.manifest.kernel_version,
            mib(image.size),
            moment(int(image.added * 1000)),
            "; ".join((*(("revoked",) if image.digest in revoked else ()), *why.get(image.digest, ()))),
        )
        for image in images
    ]
    damaged = sorted(set(opened.digests()) - {image.digest for image in images})
    rows += [
        (image_digest(output, whole), "damaged", "", "", "", f"see `netboot image verify {whole[:12]}`")
        for whole in damaged
    ]
    value = [
        _facts(image) | {"in_use": list(why.get(image.digest, ())), "revoked": image.digest in revoked}
        for image in images
    ]
    value += [{"image": whole, "damaged": True} for whole in damaged]
    build, names = "`netboot image build debian-12-minimal`", [each["image"] for each in value]
    empty = f"no images yet: {build} makes one for virtual machines, `ubuntu-24.04-gpu` one for servers"
    columns = ("image", "recipe", "kernel", "size", "added", "in use")
    show(output, {"images": value}, columns, rows, empty, names=names)


@group.command("show")
@click.argument("image", shell_complete=complete.images)
@paths_options()
@output_option
def show_(image: str, paths: Paths, output: str) -> None:
    """Show all about IMAGE: its parts and their sizes, memory, hardware that it boots, signers, what points to it.

    Reads the manifest and its signature, not the parts: `netboot image verify` reads every byte.

    \b
    Example:  netboot image show debian-12-minimal
    """
    from netboot.cli.fit import drivers  # brings all that the inventory is judged by
    from netboot.machines.fit import boots

    opened = Store(paths.store)
    stored = opened.image(resolve(opened, image))
    manifest, why = stored.manifest, needed(opened).get(stored.digest, ())
    signer, problem, signatures = _signer(opened, stored.digest, paths.keys)
    missing = {finding.part: finding.problem for finding in check.check_sizes(opened, manifest)}
    modules = drivers(opened, manifest)
    rows = [
        ("image", stored.digest),
        ("recipe", manifest.name),
        ("distribution", f"{manifest.distribution} {manifest.suite} {manifest.architecture}"),
        ("kernel", manifest.kernel_version),
        ("arguments", " ".join(manifest.kernel_arguments)),
        ("epoch", manifest.epoch),
        *([("signed by", f"NOT verified: {problem}")] if problem else []),
        *(("signed by", f"key {key}, {_VERDICTS[verdict]}") for key, verdict in signatures),
        *(
            (name, f"{mib(part.size):>11}  {part.sha256}  {missing.get(name, '')}".rstrip())
            for name, part in manifest.artifacts
        ),
        *(
            ("container", f"{mib(container.size):>11}  {container.digest}  {container.name}, loaded at boot")
            for container in manifest.container_images
        ),
        ("size", f"{mib(stored.size):>11}  in all, compressed"),
        ("memory", f"{manifest.ram_mib:>7} MiB  at least, in the machine"),
        *([("boots", boots(modules))] if modules is not None else []),
        ("in use", "; ".join(why) or "by nobody"),
        *([("revoked", "see `netboot image revocations`")] if stored.digest in _revoked(opened) else []),
    ]
    channels = [name for name, state in opened.channels().items() if state.image == stored.digest]
    signed = [{"key": key, "verdict": verdict} for key, verdict in signatures]
    value = _facts(stored) | {"signer": signer, "verified": problem is None, "problem": problem, "signatures": signed}
    value |= {"drivers": None if modules is None else sorted(modules)}
    show(
        output,
        value | {"channels": channels, "in_use": list(why), "missing": missing},
        ("", ""),
        rows,
        names=[stored.digest],
    )


def _revoked(store: Store) -> frozenset[str]:
    """What the bundle here says, whoever signed it: enough to say so beside an image."""
    try:
        return frozenset(read_bundle(store.bundle()[0]).images_revoked)
    except ImageError:
        return frozenset()


def _facts(image: Image) -> dict[str, Any]:
    return {
        "image": image.digest,
        "added_at": rfc3339(int(image.added * 1000)),
        "size": image.size,
        "manifest": image.manifest.model_dump(mode="json", by_alias=True),
    }


def _signer(store: Store, digest: str, keys: Path) -> tuple[str | None, str | None, tuple[tuple[str, Verdict], ...]]:
    """The key that signed, why that is not good enough (None: it is), and what is to be thought of each signature."""
    try:
        trusted = KeyRing(keys).trusted()
        signer = check.check_signature(store, digest, trusted).id
        return signer, None, examine(store.manifest_bytes(digest), store.signature(digest), trusted)
    except ImageError as error:
        return None, str(error), ()


def mib(size: int) -> str:
    """So many bytes, in words."""
    return f"{size / (1 << 20):,.1f} MiB"
