"""What the initrd left in /run/netboot, and what the firmware says of this machine."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import SettingsError
from .files import small

RUN = Path("run/netboot")
_URL = re.compile(r"https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")
_LINE = re.compile(r"([A-Z]+)=([ -~]*)")
_ETHERNET = b"1\n"


@dataclass(frozen=True, slots=True)
class Settings:
    """The boot (`boot.env`) and the site (`site.json`, whose signature the initrd has verified)."""

    boot: str
    report: str
    mac: str
    name: str
    join_url: str
    """"": this site has no join service."""
    authorities: str
    """PEM: the only ones that join's TLS is believed by."""
    issued: int
    """When the site bundle was signed, in seconds since 1970: it cannot be earlier than that now."""


def read_settings(root: Path) -> Settings:
    """The settings below `root`, which is `/` on a machine.

    Raises:
        SettingsError: a file is not there, or not what the initrd writes.
    """
    env = environment(root / RUN / "boot.env")
    site = site_bundle(root)
    report = _url(env.get("REPORT"), "REPORT")
    here = (env["BOOT"], report, env.get("MAC", ""), env.get("NAME", ""))
    if site.get("join_url") is None:
        return Settings(*here, join_url="", authorities="", issued=0)
    authorities, issued = site.get("join_authorities"), site.get("issued")
    if not isinstance(authorities, list) or not authorities or not all(isinstance(pem, str) for pem in authorities):
        raise SettingsError("the site bundle has a join_url but no join_authorities: sign a new one")
    if not isinstance(issued, int) or isinstance(issued, bool) or not 0 <= issued < 2**33:
        raise SettingsError("the site bundle does not say when it was issued")
    url = _url(site.get("join_url"), "join_url")
    if not url.startswith("https:"):
        raise SettingsError("the site bundle's join_url is not https")
    return Settings(*here, url, "\n".join(authorities), issued)


def environment(path: Path) -> dict[str, str]:
    """What the initrd wrote of this boot, in `boot.env`.

    Raises:
        SettingsError: it is not there, or names no boot.
    """
    data = small(path, 4096)
    if data is None:
        raise SettingsError(f"cannot read {path}: this system was not started by netboot's initrd")
    matches = (_LINE.fullmatch(line) for line in data.decode("ascii", "replace").splitlines())
    env = {match[1]: match[2] for match in matches if match}
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", env.get("BOOT", "")):
        raise SettingsError(f"{path} names no boot")
    return env


def site_bundle(root: Path) -> dict[str, object]:
    """The site bundle, whose signature the initrd has verified.

    Raises:
        SettingsError: it is not there, or is none.
    """
    path = root / RUN / "site.json"
    data = small(path, 8 * 2**20)
    if data is None:
        raise SettingsError(f"cannot read {path}: the image's initrd is older than its agent, build it anew")
    try:
        site = json.loads(data)
    except (ValueError, RecursionError):
        site = None
    if not isinstance(site, dict):
        raise SettingsError(f"{path} is not a site bundle")
    return site


def _url(value: object, what: str) -> str:
    if not isinstance(value, str) or not _URL.fullmatch(value):
        raise SettingsError(f"{what} is not a plain URL")
    return value.rstrip("/")


def hints(root: Path) -> dict[str, object]:
    """UUID, serial number and MAC addresses: they help an operator, and prove nothing."""
    cards = sorted((root / "sys/class/net").glob("*"))
    real = [card for card in cards if (card / "device").exists() and small(card / "type", 16) == _ETHERNET]
    macs = [mac for card in real if (mac := _text(card / "address"))]
    dmi = root / "sys/class/dmi/id"
    return {"uuid": _text(dmi / "product_uuid"), "serial": _text(dmi / "product_serial"), "macs": macs[:32]}


def _text(path: Path) -> str | None:
    text = (small(path, 256) or b"").decode("ascii", "replace").strip()
    return text if re.fullmatch(r"[ -~]{1,128}", text) else None


def sealed_nonce(root: Path) -> str | None:
    """The sealed nonce of an operator's boot window, where the boot script brought one."""
    text = (small(root / RUN / "nonce", 4096) or b"").decode("ascii", "replace").strip()
    return text if re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", text) else None


def event_log(root: Path) -> bytes | None:
    """The firmware's event log, where the kernel has it."""
    return small(root / "sys/kernel/security/tpm0/binary_bios_measurements", 160 * 1024) or None
