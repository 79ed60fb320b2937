"""The site bundle on disk: is it there, signed by a trusted key, and what the configuration says?"""

import contextlib
from time import time

from images.artifact.bundle import SiteBundle, read_bundle
from images.artifact.keyring import KeyRing
from images.artifact.signing import sign, signers_of
from images.errors import ImageError, NotFoundError
from images.store.check import check_bundle
from images.store.store import Store
from images.values.strict import FaultsError
from netboot.config import Config
from netboot.lifecycle import publish

_RUN = "run `netboot config bundle`"


def differences(bundle: SiteBundle, config: Config) -> list[str]:
    """What a bundle says otherwise than the configuration, in words."""
    return publish.differences(bundle, config.site_bundle(bundle.issued))


def faults_of_bundle(config: Config) -> list[str]:
    """Everything that is wrong with the signed bundle of the store, each with its remedy."""
    try:
        data, signature = Store(config.store).bundle()
        bundle = check_bundle(data, signature, KeyRing(config.keys).trusted())
    except NotFoundError as error:
        return [str(error)]
    except ImageError as error:
        return [f"{error}; {_RUN}"]
    try:
        return [f"{difference}; {_RUN}" for difference in differences(bundle, config)]
    except FaultsError:
        return []  # join's authorities, which have a fault of their own


def install(config: Config) -> bool:
    """Write, sign and install the bundle of a configuration; False: the one that is there is right already.

    Raises:
        NotFoundError: no private key here. SignatureError, BusyError, StoreError.
    """
    store = Store(config.store)
    keys = KeyRing(config.keys).signing_keys()  # all: machines of older images believe none but the older key
    if not faults_of_bundle(config) and set(signers_of(store.bundle()[1])) == {key.public.id for key in keys}:
        return False
    new = unsigned(config)
    store.set_bundle(new, sign(new, keys))
    return True


def unsigned(config: Config) -> bytes:
    """The bundle of a configuration, to be signed: issued now, and later than the one that is there."""
    issued = int(time())
    with contextlib.suppress(ImageError):  # none, or a damaged one: it is replaced
        issued = max(issued, read_bundle(Store(config.store).bundle()[0]).issued + 1)
    return config.site_bundle(issued).to_bytes()
