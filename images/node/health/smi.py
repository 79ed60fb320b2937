"""`nvidia-smi -q`: what its CSV has no field for. Source: nvidia-smi(1); keys are those of drivers 535 to 580."""

import re

from .machine import Machine
from .nvidia import refusal, value_of

_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]\s*", re.ASCII)
_LINE = re.compile(r"( +)(\S[^:]*?) *(?:: ?(.*))?")


def parsed(text: str) -> list[dict[str, str]]:
    """One for each GPU: `Section/Name` -> value, by the section right above: `Aggregate/SRAM Threshold Exceeded`.
    A value that the GPU does not have is "". Never raises."""
    told: list[dict[str, str]] = []
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if _GPU.fullmatch(line):
            told.append({})
            above = []
        elif told and (match := _LINE.fullmatch(line)):
            depth, name, value = len(match[1]), match[2], match[3]
            while above and above[-1][0] >= depth:
                above.pop()
            if value is not None:
                told[-1][f"{above[-1][1] if above else ''}/{name}"] = value_of(value)
            above.append((depth, name))
    return told


def details(machine: Machine) -> list[dict[str, str]]:
    """What nvidia-smi says of each GPU, in the order of their indexes.

    Raises:
        CannotTellError: no nvidia-smi, or no answer of it.
    """
    output = machine.run("nvidia-smi", "-q")
    if (told := parsed(output.text)) and output.status == 0:
        return told
    raise refusal(output)


def first(row: dict[str, str], *keys: str) -> str:
    """The value of the first key that this driver has: keys were renamed. "": none."""
    return next((row[key] for key in keys if row.get(key)), "")


def whole(value: str) -> int | None:
    """`33 C` -> 33, `-2 C` -> -2, `5` -> 5; None: no number."""
    match = re.match(r"(-?\d{1,15})\b", value, re.ASCII)
    return int(match[1]) if match else None
