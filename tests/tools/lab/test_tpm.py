"""A machine's TPM: a chip that is the same after the power was off."""

from pathlib import Path

import pytest

from lab.tpm import ek_sha256

pytestmark = pytest.mark.tools


def test_a_chip_keeps_its_endorsement_key_and_another_has_another(tmp_path: Path) -> None:
    """Also below a folder whose name is longer than that of a socket may be."""
    deep = tmp_path / ("x" * 60) / ("y" * 60)
    first = ek_sha256(deep / "one")
    assert ek_sha256(deep / "one") == first
    assert len(first) == 64
    assert ek_sha256(deep / "two") != first
