"""Versions of the tools and libraries that shape bytes: in the keys of steps that use them, and in the provenance.

What runs inside a root (dpkg, systemctl, the compiler of drivers) is no tool of this machine: it comes from mirrors,
whose releases are inputs.
"""

from collections.abc import Iterable
from importlib import metadata

from images.errors import CommandError
from images.run import run

_ASKED_BY = {"mksquashfs": "-version"}
"""The others are asked by --version."""
_LIBRARIES = ("cyclonedx-python-lib",)
"""Python's, by the names of their distributions."""


def versions(tools: Iterable[str]) -> dict[str, str]:
    """What each tool says of its version, in one line; "" where it is not installed: the step that uses it says so."""
    return {tool: _version(tool) for tool in sorted(set(tools))}


def _version(tool: str) -> str:
    if tool in _LIBRARIES:
        return metadata.version(tool)
    try:
        answer = run([tool, _ASKED_BY.get(tool, "--version")], timeout=60)
    except CommandError as error:
        if error.status == 127:
            return ""
        answer = error.output  # mkfs.erofs 1.5 tells, and exits with 1
    return next((line.strip() for line in answer.splitlines() if line.strip()), "")
