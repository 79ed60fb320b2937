"""The signature of a manifest: Ed25519 over its canonical bytes, in signify's form. Not cached: the key is no input."""

from pathlib import Path

from images.artifact.signing import SigningKey, read_public_key, verify

VERSION = 1


def sign(manifest: Path, key: SigningKey, baked: dict[str, bytes]) -> bytes:
    """The signature, checked with the keys that the image's own initrd trusts.

    Raises:
        UnknownSignerError: a machine that boots this initrd would refuse the image.
    """
    message = manifest.read_bytes()
    signature = key.sign(message)
    verify(message, signature, [read_public_key(content) for content in baked.values()])
    return signature
