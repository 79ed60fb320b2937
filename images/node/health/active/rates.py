"""How much each CPU did under `load.py`."""

from typing import Literal

from ..machine import CannotTellError, Machine
from .judging import document, positive


def parsed(text: str) -> dict[int, float]:
    """CPU -> bytes a second; {} where it is not what load.py says. Never raises."""
    rates = document(text).get("rates")
    if not isinstance(rates, dict):
        return {}
    numbers = {cpu: positive(rate) for cpu, rate in rates.items() if cpu.isascii() and cpu.isdigit() and len(cpu) < 6}
    return {int(cpu): rate for cpu, rate in numbers.items() if rate is not None}


def rates(machine: Machine, what: Literal["memory", "cpu"], seconds: float = 5) -> dict[int, float]:
    """Of each CPU, all at once.

    Raises:
        CannotTellError: it could not be measured.
    """
    output = machine.load(what, seconds)
    if (found := parsed(output.text)) and output.status == 0:
        return found
    raise CannotTellError(
        f"not measured: {output.last_line}", "see the kernel log: was there memory enough, and is it in order?"
    )
