"""Another name for a machine in a file that a person wrote: its comments, its order and all else stay as they are."""

import re

from images.values import strict
from images.values.strict import FaultsError
from netboot.machines.declared import Declared
from netboot.machines.former import of_renamed

_LIST = re.compile(r"(?P<key>\bformer_names:\s*)\[[^\]\n#]*\]")


class NotEditableError(Exception):
    """The file is written in a way that is left to people; with what to write there, and where."""


def renamed(text: str, item: Declared, name: str) -> str:
    """The file's `text` with the machine that is declared at `item` under its new name.

    Raises:
        NotEditableError: it is for a person to do.
    """
    value = of_renamed(item.value, name)
    former = _flow(value.get("former_names"))
    lines = text.splitlines(keepends=True)
    if "former_names" in item.value:
        there = item.line("former_names") - 1
        lines[there] = _LIST.sub(rf"\g<key>{former}", lines[there], count=1)
        former = ""
    at = item.line("name") - 1
    lines[at] = _line(lines[at], item.name, name, former)
    changed = "".join(lines)
    kind, number = item.location[0], item.location[1]
    before = item.document.value
    wanted = {**before, kind: [value if place == number else each for place, each in enumerate(before[kind])]}
    try:
        done = strict.parse(changed, item.document.file).value == wanted
    except FaultsError:
        done = False
    if not done:
        words = f"`name: {name}` and `former_names: {_flow(value.get('former_names'))}`"
        raise NotEditableError(f"{item.place('name')} cannot be edited by a program: write {words} there")
    return changed


def _line(line: str, name: str, new: str, former: str) -> str:
    """The line with the name. `former`: what the machine's former names are, where it says none yet."""
    found = re.search(rf"""(?<![\w-])name:\s*(?P<name>["']?{re.escape(name)}["']?)(?=[\s,}}]|$)""", line)
    if found is None:
        return line
    before, rest = line[: found.start()], line[found.end() :]
    begin = f"{before}name: {_scalar(new)}"
    if not former:
        return begin + rest
    if "{" in before:
        return f"{begin}, former_names: {former}{rest}"
    indent, end = " " * len(before), "\r\n" if rest.endswith("\r\n") else "\n"
    return f"{begin}{rest.rstrip()}{end}{indent}former_names: {former}{end}"


def _flow(names: object) -> str:
    return f"[{', '.join(_scalar(str(name)) for name in names)}]" if isinstance(names, list) else "[]"


def _scalar(name: str) -> str:
    """In quotes where YAML would take it for something else than text."""
    try:
        plain = strict.parse(f"name: {name}\n", "").value == {"name": name}
    except FaultsError:
        plain = False
    return name if plain else f'"{name}"'
