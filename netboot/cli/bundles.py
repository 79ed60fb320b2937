"""The site bundle on disk: is it there, signed by a trusted key, and what the configuration and revocations say?"""

from contextlib import AbstractContextManager
from pathlib import Path
from time import time
from typing import Any

import click

from images.artifact.bundle import SiteBundle, read_bundle
from images.artifact.keyring import KeyRing
from images.artifact.signing import sign, signers_of
from images.errors import BusyError, ImageError, NotFoundError
from images.store import revocations, site
from images.store.check import check_bundle
from images.store.revocations import Revocation
from images.store.store import Store
from images.values import files
from images.values.strict import FaultsError
from netboot.cli.file_acts import Stood, record, recorded
from netboot.clock import rfc3339
from netboot.config import Config
from netboot.lifecycle import publish

_RUN = "run `netboot config bundle`"
_NONE = frozenset[str]()


def differences(bundle: SiteBundle, config: Config) -> list[str]:
    """What a bundle says otherwise than configuration and revocations, in words.

    Raises:
        ImageError: the revocations cannot be read. FaultsError: a file of authorities cannot be.
    """
    unsaid = sorted(revocations.read(config.store).keys() - set(bundle.images_revoked))
    return [
        *publish.differences(bundle, config.site_bundle(bundle.issued)),
        *(f"image {digest[:12]} is to be revoked, and the bundle does not do it" for digest in unsaid),
    ]


def faults_of_bundle(config: Config) -> list[str]:
    """Everything that is wrong with the signed bundle of the store, each with its remedy."""
    try:
        bundle = trusted_bundle(config)
        return [f"{difference}; {_RUN}" for difference in differences(bundle, config)]
    except NotFoundError as error:
        return [str(error)]
    except ImageError as error:
        return [f"{error}; {_RUN}"]
    except FaultsError:
        return []  # join's authorities, which have a fault of their own


def trusted_bundle(config: Config) -> SiteBundle:
    """The bundle of the store.

    Raises:
        NotFoundError, StoreError, CorruptError, SignatureError.
    """
    data, signature = Store(config.store).bundle()
    return check_bundle(data, signature, KeyRing(config.keys).trusted())


def install(config: Config, taken_back: frozenset[str] = _NONE) -> bool:
    """Write, sign and install the bundle of a configuration; False: the one that is there is right already.
    `taken_back`: images that it does not revoke any more.

    Raises:
        NotFoundError: no private key here. CorruptError: revocations. SignatureError, BusyError, StoreError.
    """
    store = Store(config.store)
    keys = KeyRing(config.keys).signing_keys()  # all: machines of older images believe none but the older key
    right = not taken_back and not faults_of_bundle(config)
    if right and set(signers_of(store.bundle()[1])) == {key.public.id for key in keys}:
        return False
    new = unsigned(config, taken_back)
    signature = sign(new, keys)
    with store.writing():  # the other one may not know what this one revokes, nor this one what that does
        if _issued(store) >= read_bundle(new).issued:
            raise BusyError("another site bundle was signed meanwhile: give the command again")
        site.replace(store.root, new, signature)
    return True


def _issued(store: Store) -> int:
    """When the bundle of the store was; -1: there is none, or a damaged one."""
    try:
        return read_bundle(store.bundle()[0]).issued
    except ImageError:
        return -1


def unsigned(config: Config, taken_back: frozenset[str] = _NONE) -> bytes:
    """The bundle of a configuration, to be signed: issued now, and later than the one that is there."""
    issued = max(int(time()), _issued(Store(config.store)) + 1)
    return config.site_bundle(issued, tuple(sorted(revoked(config) - taken_back))).to_bytes()


def revoked(config: Config) -> frozenset[str]:
    """Images that the next bundle revokes: those that are written down, and all that the one of now does, whoever
    signed it. So none is lost with either; a damaged bundle names none.

    Raises:
        CorruptError, StoreError: what is written down cannot be read.
    """
    return frozenset(revocations.read(config.store)) | _in_force(config)


def written_down(config: Config, digest: str) -> dict[str, Any] | None:
    """What is written down of an image's revocation, as the audit has it; None: nothing."""
    said = revocations.read(config.store).get(digest)
    return None if said is None else {"revoked": digest, "reason": said.reason, "at": rfc3339(said.at * 1000)}


def revise(config: Config, store: Store, act: str, digest: str, said: Revocation | None) -> None:
    """Write an image's revocation down, or (None) take it back, and install the bundle that says so. The act is in the
    audit also where that fails: written down it is.

    Raises:
        click.ClickException: no private key here, with what to do. Else as `install`.
    """
    taken_back, reason = _NONE if said is not None else frozenset((digest,)), "" if said is None else said.reason

    def stands() -> dict[str, Any]:
        return {"written": written_down(config, digest), "signed": digest in _in_force(config)}

    def write(before: Stood, after: Stood, result: str) -> None:
        was, now = before or {}, after or {}
        facts = {"image": digest, "signed": now["signed"] is (said is not None)}
        stood = {"before": was["written"], "after": now["written"]}
        record(config.data, act, facts, **stood, reason=reason, result=result)

    with recorded(stands, write):
        revocations.write(store, {digest: said})
        try:
            install(config, taken_back)
        except NotFoundError as error:
            raise not_signed(config, error, taken_back) from None


def _in_force(config: Config) -> frozenset[str]:
    """What the bundle of the store revokes; nothing: there is none, or a damaged one."""
    try:
        return frozenset(read_bundle(Store(config.store).bundle()[0]).images_revoked)
    except ImageError:
        return _NONE


def in_store(config: Config) -> dict[str, Any] | None:
    """The bundle of the store, as the audit has it; None: there is none, or a damaged one."""
    try:
        bundle = read_bundle(Store(config.store).bundle()[0])
    except ImageError:
        return None
    return {"issued": rfc3339(bundle.issued * 1000), "images_revoked": len(bundle.images_revoked)}


def installing(config: Config) -> AbstractContextManager[None]:
    """Around the installation of a bundle: what is in the store afterwards, in the audit."""

    def write(before: Stood, after: Stood, result: str) -> None:
        record(config.data, "config-bundle", {"site": config.site}, before=before, after=after, result=result)

    return recorded(lambda: in_store(config), write)


def not_signed(config: Config, error: NotFoundError, taken_back: frozenset[str] = _NONE) -> click.ClickException:
    """Where no private key is: leave the bundle unsigned in this folder, and say how it comes to be signed."""
    path = Path(f"{config.site}-bundle.json")
    files.write(path, unsigned(config, taken_back))
    return click.ClickException(
        f"not signed: {error}\n"
        f"The bundle is in {path}. Where the key is: `netboot config bundle --sign {path}`; "
        f"then here: `netboot config bundle --signature {path.with_suffix('.sig')}`"
    )
