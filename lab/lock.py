"""What of requirements.lock `netboot` itself needs: `netboot.lock`, beside the wheel and in the packages."""

import re
from collections.abc import Iterable
from importlib import metadata

from lab.work import ROOT

LOCK = "netboot.lock"


def locked(names: Iterable[str] = ()) -> str:
    """The lines of requirements.lock, with their hashes, of these; without any, of all that `netboot` itself needs."""
    names = {_normal(name) for name in names or needed("netboot")}
    lines = re.split(r"(?m)^(?=\w)", (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    return "".join(line for line in lines if _normal(re.split(r"[=\s\[]", line, maxsplit=1)[0]) in names)


def needed(name: str) -> set[str]:
    """A distribution of .venv, and all that it needs to run."""
    found, new = {name}, {name}
    while new:
        wanted = [line for one in new for line in metadata.requires(one) or () if "extra ==" not in line]
        names = {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in wanted}
        new = {each for each in names if _is_there(each)} - found
        found |= new
    return found


def _is_there(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
