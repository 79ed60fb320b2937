"""What the tests of the boot stage share."""

from pathlib import Path

import pytest

from tests.tools.images.boot_stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage.make(tmp_path)
