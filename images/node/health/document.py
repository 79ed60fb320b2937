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
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "boot": boot,
        "machine": machine,
        "mac": mac,
        "taken_ms": int(time.time() * 1000),
        "uptime_ms": int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000),
        "expected": expected,
        "checks": [_result(result) for result in results],
    }
    for result in sorted(report["checks"], key=lambda result: -len(encoded(result))):
        if len(encoded(report)) <= LONGEST:
            break
        result["facts"] = {"left_out": "the facts were too long"}
    return report


def encoded(value: Mapping[str, Any]) -> bytes:
    """JSON without blanks: the bytes that are sent, and counted against LONGEST."""
    return json.dumps(value, separators=(",", ":")).encode()


def worst(results: list[dict[str, Any]]) -> str:
    """The worst status: fail, unknown, warn, pass. What is absent is in order."""
    return next((status for status in _WORST if any(result["status"] == status for result in results)), "pass")


def _result(result: dict[str, Any]) -> dict[str, Any]:
    facts = result["facts"] if isinstance(result.get("facts"), dict) else {}
    return {
        "name": result["name"],
        "status": result["status"],
        "severity": result["severity"],
        "summary": plain(str(result.get("summary", ""))),
        "remedy": plain(str(result.get("remedy", ""))),
        "ms": result["ms"],
        "facts": {_name(name): _fact(value) for name, value in list(facts.items())[:MOST_FACTS]},
    }


def _name(text: object) -> str:
    name = re.sub(r"[^a-z0-9_]", "_", str(text).lower(), flags=re.ASCII)[:38]
    return name if name[:1].isalpha() else f"f_{name}"


def _fact(value: Any) -> Any:
    """A word, a number, or a list of them."""
    if isinstance(value, list | tuple):
        return [_word(item) for item in value[:MOST_LISTED]]
    return _word(value)


def _word(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    if isinstance(value, float) and abs(value) < 2**53:
        return value
    return plain(str(value))[:200]
