"""Secure Boot: the key that signs EFI programs, and signatures (Authenticode) that are the same for the same inputs."""

from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from images.errors import ImageError
from images.run import run
from images.values.digests import PLACE


@dataclass(frozen=True, slots=True)
class SecureBootKey:
    """A certificate (PEM) that machines' firmware knows; where its private key is (PEM), which no image gets."""

    certificate: bytes
    certificate_file: Path = field(metadata=PLACE)
    key_file: Path = field(metadata=PLACE, repr=False)


def read_key(key: Path, certificate: Path) -> SecureBootKey:
    """The pair in two files.

    Raises:
        ImageError: one cannot be read, others can read the key, or they do not belong together.
    """
    try:
        if key.stat().st_mode & 0o077:
            raise ImageError(f"the key {key} can be read by others; run `chmod 600 {key}`")
        content = certificate.read_bytes()
        public = load_pem_private_key(key.read_bytes(), password=None).public_key()
        signed = x509.load_pem_x509_certificate(content).public_key()
    except OSError as error:
        raise ImageError(f"cannot read {error.filename}: {error.strerror}") from None
    except (ValueError, TypeError):
        raise ImageError(
            f"{key} and {certificate} must be a private key without a passphrase and its certificate, both as PEM"
        ) from None
    if not isinstance(public, RSAPublicKey):
        raise ImageError(f"{key} must be an RSA key: all firmware knows those, and their signatures are reproducible")
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if public.public_bytes(*form) != signed.public_bytes(*form):
        raise ImageError(f"the certificate {certificate} is not of the key {key}")
    return SecureBootKey(content, certificate, key)


def sign(program: Path, key: SecureBootKey, time: int) -> None:
    """Sign an EFI program in its place.

    osslsigncode and not sbsign: sbsign writes the time of the day into the signature, so that each build would be
    another image. RSA signatures (PKCS #1 v1.5) of the same bytes are the same; those of other keys are not.

    Args:
        time: seconds since 1970, what the signature says when it was made.

    Raises:
        CommandError: osslsigncode failed.
    """
    unsigned = program.with_name(f"{program.name}.unsigned")
    program.rename(unsigned)
    run(
        [
            *("osslsigncode", "sign", "-h", "sha256", "-time", str(time)),
            *("-certs", key.certificate_file, "-key", key.key_file),
            *("-in", unsigned, "-out", program),
        ]
    )
    unsigned.unlink()
