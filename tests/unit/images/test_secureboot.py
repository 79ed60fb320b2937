"""The key that signs EFI programs: read from two files that belong together."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from images.build.secureboot import read_key
from images.errors import ImageError
from images.values.digests import plain

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


def write_pair(folder: Path, key: CertificateIssuerPrivateKeyTypes) -> tuple[Path, Path]:
    """A private key and its self-signed certificate, as db.key and db.crt."""
    folder.mkdir(exist_ok=True)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "netboot test")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, BEGIN, BEGIN + timedelta(days=36500))
    (folder / "db.crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "db.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "db.key").chmod(0o600)
    return folder / "db.key", folder / "db.crt"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def test_the_certificate_is_an_input_and_the_files_are_only_places(tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    found, elsewhere = (read_key(*write_pair(tmp_path / name, key)) for name in ("1", "2"))
    assert plain(found) == plain(elsewhere)
    assert list(plain(found)) == ["certificate"]
    assert str(tmp_path / "1/db.key") not in repr(found)


def test_what_cannot_sign(tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    mine, certificate = write_pair(tmp_path / "mine", key)
    other, _ = write_pair(tmp_path / "other", rsa.generate_private_key(65537, 2048))
    curve, of_curve = write_pair(tmp_path / "curve", ec.generate_private_key(ec.SECP256R1()))
    (tmp_path / "junk").write_text("junk")
    (tmp_path / "junk").chmod(0o600)
    (tmp_path / "open").write_bytes(mine.read_bytes())
    (tmp_path / "open").chmod(0o644)
    for pair, message in (
        ((tmp_path / "none", certificate), f"cannot read {tmp_path}/none: No such file or directory"),
        ((mine, tmp_path / "none"), f"cannot read {tmp_path}/none: No such file or directory"),
        ((other, certificate), f"the certificate {certificate} is not of the key {other}"),
        (
            (curve, of_curve),
            f"{curve} must be an RSA key: all firmware knows those, and their signatures are reproducible",
        ),
        (
            (tmp_path / "open", certificate),
            f"the key {tmp_path}/open can be read by others; run `chmod 600 {tmp_path}/open`",
        ),
        (
            (tmp_path / "junk", certificate),
            (
                f"{tmp_path}/junk and {certificate} must be a private key without a passphrase and its certificate, "
                "both as PEM"
            ),
        ),
    ):
        with pytest.raises(ImageError) as caught:
            read_key(*pair)
        assert str(caught.value) == message
