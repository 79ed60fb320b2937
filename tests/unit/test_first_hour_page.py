"""What docs/first-hour.md has installed before its first command, which no test types."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_THE_PAGE = {"curl", "python3-venv"}
"""What the page itself needs: the package has its own Python, and nobody plays a machine there."""


def test_the_tools_of_a_build_are_those_that_the_package_recommends() -> None:
    (line,) = re.findall(r"^apt-get install (.+)$", (ROOT / "docs" / "first-hour.md").read_text(), re.MULTILINE)
    (names,) = re.findall(r"^Recommends: (.+)$", (ROOT / "deploy" / "debian" / "control").read_text(), re.MULTILINE)
    assert set(line.split()) - OF_THE_PAGE == set(names.split(", ")) - {"ipxe"}
