"""What all tests have: numbers against the class's floors, or against their siblings; JSON in what tools say."""

import json
from collections.abc import Mapping
from statistics import median_high
from typing import Any

from ..floors import FLOORS, SIBLINGS
from ..machine import Machine
from ..result import Finding


def floor(machine: Machine, name: str, gpu: str = "") -> float | None:
    """What must be reached: as the class says, else as the table says of these GPUs or of all; None: nobody says."""
    known = FLOORS[name]
    return machine.expected.hardware.floors.get(name, known.by_gpu.get(gpu, known.default))


def under(machine: Machine, name: str, reached: Mapping[str, float], remedy: str, gpu: str = "") -> list[Finding]:
    """Those that do not reach the floor, where there is one. `reached`: where -> in the floor's unit."""
    least, unit = floor(machine, name, gpu), FLOORS[name].unit
    short = {where: value for where, value in reached.items() if least is not None and value < least}
    return [Finding("fail", f"{where}: {value:.4g} of {least:g} {unit}", remedy) for where, value in short.items()]


def behind(name: str, reached: Mapping[str, float], remedy: str) -> list[Finding]:
    """Those that stay behind their siblings, parts of one kind. Of two, one behind the other."""
    usual, unit = median_high(reached.values()) if len(reached) > 1 else 0.0, FLOORS[name].unit
    slow = {where: value for where, value in reached.items() if value < usual * SIBLINGS}
    return [
        Finding("warn", f"{where}: {value:.4g} {unit}, its siblings have {usual:.4g}", remedy)
        for where, value in slow.items()
    ]


def document(text: str) -> dict[str, Any]:
    """The JSON object in what a tool said, from the first line that begins with one; {} where there is none. Tools
    print warnings before it. Never raises."""
    start = 0 if text.startswith("{") else text.find("\n{") + 1
    if not text.startswith("{", start):
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def items(value: Any, name: str) -> list[dict[str, Any]]:
    """The objects in a list that an object has by a name; what is of another form is left out. Never raises."""
    found = value.get(name) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def positive(value: Any) -> float | None:
    """A number above 0, or its text; None: it is none. Never raises."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 < number < 2.0**63 else None
