"""Which GPUs a machine has, as floors are told apart by them."""

from ..machine import Machine
from ..nvidia import query

USUAL = 8
"""GPUs of the machines that the table of floors is of."""


def product(machine: Machine) -> tuple[str, int]:
    """nvidia-smi's name of the GPUs where there are eight of one kind, else ""; how many there are.

    Raises:
        CannotTellError: nvidia-smi does not answer.
    """
    rows = query(machine, ("index", "name"))
    names = {row["name"] for row in rows}
    return (names.pop() if len(names) == 1 and len(rows) == USUAL else ""), len(rows)
