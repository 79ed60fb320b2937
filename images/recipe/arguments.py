"""The kernel's arguments of a recipe under an heir's: replaced by name, or removed by `kernel.remove_arguments`."""

from collections.abc import Iterable, Mapping
from typing import Any

from images.values.kernel_arguments import name_of, replaced
from images.values.strict import Document, Fault

REMOVED = "remove_arguments"


def merged(base: Any, child: Mapping[str, Any]) -> dict[str, Any]:
    """A base's `kernel` with the arguments that an heir's `kernel` leaves of them, and the heir's."""
    old = base if isinstance(base, dict) else {}
    gone = {name_of(name) for name in _listed(child.get(REMOVED))}
    kept = [argument for argument in _listed(old.get("arguments")) if name_of(argument) not in gone]
    arguments = {"arguments": list(replaced(kept, _listed(child.get("arguments"))))}
    return old | {key: value for key, value in child.items() if key != REMOVED} | arguments


def not_inherited(layers: Iterable[Document]) -> list[Fault]:
    """What a layer removes and none before it has; most likely it is misspelt."""
    faults: list[Fault] = []
    kernel: dict[str, Any] = {}
    for document in layers:
        said = document.value.get("kernel") if isinstance(document.value, dict) else None
        if not isinstance(said, dict):
            continue
        there = {name_of(argument): argument for argument in _listed(kernel.get("arguments"))}
        for index, name in enumerate(_listed(said.get(REMOVED))):
            if name_of(name) not in there and "=" not in name:
                message = f"no argument {name!r} is inherited; inherited are {' '.join(there.values()) or 'none'}"
                line = document.line(("kernel", REMOVED, index))
                faults.append(Fault(document.file, line, f"kernel.{REMOVED}[{index}]", message))
        kernel = merged(kernel, said)
    return faults


def _listed(value: Any) -> list[str]:
    """The words of a list; what is of another form has its own fault."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
