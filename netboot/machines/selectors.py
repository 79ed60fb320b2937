"""Selectors of machines, in kubectl's grammar: of the labels that the inventory gives their Nodes, and of their fields.

https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors: `key`, `!key`, `key=value`
(`==`), `key!=value`, `key in (a,b)`, `key notin (a,b)`, with commas between; all have to fit. As there, `!=` and
`notin` fit what has no such label, too. An empty part, and an empty value in parentheses, are refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from netboot.config_nodes import label_key
from netboot.machines.declared import Declared
from netboot.machines.values import Machine

LONGEST, MOST, LONGEST_VALUE = 2_000, 32, 63
FIELDS = ("name", "cluster", "profile", "class", "rack", "architecture", "enabled", "identity")
"""Of a machine, as the inventory says them; one that it does not say is empty."""
_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?"
_PART = re.compile(
    rf" *(?:(?P<absent>!) *(?P<not>{_KEY})"
    rf"|(?P<key>{_KEY})(?: *(?P<sign>==|=|!=) *(?P<value>{_VALUE})?"
    rf"| +(?P<word>in|notin) *\( *(?P<values>{_VALUE}(?: *, *{_VALUE})*) *\))?) *(?P<end>,|\Z)",
)


class Requirement(NamedTuple):
    """`values`: one of which it has to have, or with `negated` none of which; None: whatever it is, it has to be there,
    or with `negated` not."""

    key: str
    values: frozenset[str] | None
    negated: bool

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether these have, or lack, what it says."""
        there = self.key in labels
        return (there if self.values is None else there and labels[self.key] in self.values) != self.negated


def parse(text: str) -> tuple[Requirement, ...]:
    """A selector of labels; of an empty text, one that all fit.

    Raises:
        ValueError: it is none; says from where on, or which key or value no label can have.
    """
    found = tuple(_requirement(part) for part in _parts(text))
    for each in found:
        try:
            label_key(each.key)
        except ValueError as error:
            raise ValueError(f"{each.key[:40]}: {error}") from None
        if any(len(value) > LONGEST_VALUE for value in each.values or ()):
            raise ValueError(f"{each.key[:40]}: no label has a value of more than {LONGEST_VALUE} characters")
    return found


def _parts(text: str) -> list[re.Match[str]]:
    """Raises ValueError: it cannot be read; says from where on."""
    if len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    found, at, more = list[re.Match[str]](), 0, bool(text.strip(" "))
    while more:
        part = _PART.match(text, at)
        if part is None:
            raise ValueError(f"cannot be read from {text[at:].strip()[:40]!r} on: key, !key, key=value, key in (a,b)")
        found.append(part)
        at, more = part.end(), part["end"] == ","
    if len(found) > MOST:
        raise ValueError(f"has more than {MOST} parts")
    return found


def parse_fields(text: str) -> tuple[Requirement, ...]:
    """The same of fields, which are there always: `=`, `==` and `!=` alone, as kubectl's are.

    Raises:
        ValueError: it is none, or names a field that there is not.
    """
    parts = _parts(text)
    found = tuple(map(_requirement, parts))
    for part, each in zip(parts, found, strict=True):
        if each.key not in FIELDS:
            raise ValueError(f"there is no field {each.key[:40]}; there are: {', '.join(FIELDS)}")
        if not part["sign"]:
            raise ValueError(f"{each.key}: a field is selected by = or !=")
    return found


def _requirement(part: re.Match[str]) -> Requirement:
    if part["absent"]:
        return Requirement(part["not"], None, negated=True)
    if part["word"]:
        values = frozenset(each.strip() for each in part["values"].split(","))
        return Requirement(part["key"], values, negated=part["word"] == "notin")
    if part["sign"]:
        return Requirement(part["key"], frozenset({part["value"] or ""}), negated=part["sign"] == "!=")
    return Requirement(part["key"], None, negated=False)


def fits(machine: Machine, labels: Iterable[Requirement], fields: Iterable[Requirement]) -> bool:
    """Whether a machine is selected."""
    of_labels, of_fields = machine.node.labels, _fields(machine)
    return all(each.fits(of_labels) for each in labels) and all(each.fits(of_fields) for each in fields)


def declared_that_fit(
    machines: Iterable[Declared],
    classes: Iterable[Declared],
    labels: Sequence[Requirement],
    fields: Sequence[Requirement],
) -> list[Declared]:
    """Those that are selected by what is declared of them and of their classes, in force or not. One with faults never
    is: nobody knows what it would be."""
    of_class = {item.name: item.value.get("architecture", "amd64") for item in classes}
    return [item for item in machines if _declared_fits(item.value, of_class, labels, fields)]


def _declared_fits(
    value: Mapping[str, Any], of_class: Mapping[str, Any], labels: Iterable[Requirement], fields: Iterable[Requirement]
) -> bool:
    hardware = value.get("class")
    left = {"architecture": of_class[hardware]} if isinstance(hardware, str) and hardware in of_class else {}
    try:
        return fits(Machine.model_validate({**left, **value}), labels, fields)
    except ValidationError:
        return False


def _fields(machine: Machine) -> dict[str, str]:
    said = {"class": machine.class_name or "", "rack": machine.rack or "", "enabled": str(machine.enabled).lower()}
    return {name: said[name] if name in said else str(getattr(machine, name)) for name in FIELDS}
