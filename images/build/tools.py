"""Versions of the tools and libraries that shape bytes: in the keys of steps that use them, and in the provenance.

What runs inside a root (dpkg, systemctl, the compiler of drivers) is no tool of this machine: it comes from mirrors,
whose releases are inputs.
"""

import ctypes
import re
from collections.abc import Iterable
from importlib import metadata

from images.errors import CommandError
from images.run import run

_ASKED_BY = {"mksquashfs": "-version"}
"""The others are asked by --version."""
_LIBRARIES = ("cyclonedx-python-lib",)
"""Python's, by the names of their distributions."""
_SHARED = {"liblz4": ("liblz4.so.1", "LZ4_versionString"), "libzstd": ("libzstd.so.1", "ZSTD_versionString")}
"""Those that a program is linked with, and does not tell of: what they are called, and who answers."""
_NUMBER = re.compile(r"\d+\.\d+|version \d+")


def versions(tools: Iterable[str]) -> dict[str, str]:
    """What each tool says of its version, in one line; "" where it is not installed: the step that uses it says so.

    Raises:
        CommandError: it is there and does not say.
    """
    return {tool: _version(tool) for tool in sorted(set(tools))}


def _version(tool: str) -> str:
    if tool in _LIBRARIES:
        return metadata.version(tool)
    if tool in _SHARED:
        return _linked(*_SHARED[tool])
    lines: list[str] = []
    command = [tool, _ASKED_BY.get(tool, "--version")]
    try:
        run(command, timeout=60, on_line=lines.append)
    except CommandError as error:
        if error.status == 127:
            return ""
    told = next((line.strip() for line in lines if _NUMBER.search(line)), None)  # mkfs.erofs 1.5 first tells its usage
    if told is None:
        raise CommandError(" ".join(command), 1, "it does not say of which version it is")
    return told


def _linked(name: str, function: str) -> str:
    try:
        ask = getattr(ctypes.CDLL(name), function)
    except OSError:
        return ""
    ask.restype = ctypes.c_char_p
    version: bytes = ask()
    return version.decode("ascii")
