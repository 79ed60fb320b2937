"""Versions as programs and packages write them."""

import re


def minor(version: str) -> tuple[int, int] | None:
    """The first two numbers: `v1.34.4`, `1:1.6.20~ds1-1+deb12u1` → (1, 34), (1, 6); None where there are none."""
    match = re.match(r"(?:\d+:)?v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else None
