"""The document of one run: what is kept in /run/netboot/health.json and sent to the service. docs/health.md."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from ..agent.net import plain
from ..agent.settings import Settings

SCHEMA = 1
LONGEST = 32 * 1024
"""Bytes that the service takes."""
MOST_LISTED = 64
MOST_FACTS = 16
_WORST = ("fail", "unknown", "warn", "pass")


def document(settings: Settings, results: list[dict[str, Any]], expected: list[str]) -> dict[str, Any]:
    """Of this boot, now. `expected`: keys that are judged by."""
    return finished(settings.boot, settings.name or None, settings.mac or None, results, expected)


def finished(
    boot: str, machine: str | None, mac: str | None, results: list[dict[str, Any]], expected: list[str]
) -> dict[str, Any]:
    """With everything in it of the form and size that the service takes, whatever checks say."""
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "boot": boot,
        "machine": machine,
        "mac": mac,
        "taken_ms": int(time.time() * 1000),
        "uptime_ms": int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000),
        "expected": expected,
        "checks": [_result(one) for one in results],
    }
    for one in sorted(made["checks"], key=lambda one: -len(encoded(one))):
        if len(encoded(made)) <= LONGEST:
            break
        one["facts"] = {"left_out": "the facts were too long"}
    return made


def encoded(value: Mapping[str, Any]) -> bytes:
    """As it is sent."""
    return json.dumps(value, separators=(",", ":")).encode()


def worst(results: list[dict[str, Any]]) -> str:
    """The worst status: fail, unknown, warn, pass. What is absent is in order."""
    return next((status for status in _WORST if any(one["status"] == status for one in results)), "pass")


def _result(one: dict[str, Any]) -> dict[str, Any]:
    facts = one["facts"] if isinstance(one.get("facts"), dict) else {}
    return {
        "name": one["name"],
        "status": one["status"],
        "severity": one["severity"],
        "summary": plain(str(one.get("summary", ""))),
        "remedy": plain(str(one.get("remedy", ""))),
        "ms": one["ms"],
        "facts": {_name(name): _fact(value) for name, value in list(facts.items())[:MOST_FACTS]},
    }


def _name(text: object) -> str:
    name = re.sub(r"[^a-z0-9_]", "_", str(text).lower(), flags=re.ASCII)[:38]
    return name if name[:1].isalpha() else f"f_{name}"


def _fact(value: Any) -> Any:
    """A word, a number, or a list of them."""
    if isinstance(value, list | tuple):
        return [_word(one) for one in value[:MOST_LISTED]]
    return _word(value)


def _word(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    if isinstance(value, float) and abs(value) < 2**53:
        return value
    return plain(str(value))[:200]
