"""YAML files to validated values, strictly: every fault of a file at once, each with its line and its remedy.

Used by recipes, configuration and inventory, so that a mistake reads the same wherever it was made.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from images.values import files
from images.values.faults import REQUIRED, dotted, item_of, stumbled, told, unknown_key

M = TypeVar("M", bound=BaseModel)
Location = tuple[int | str, ...]
_LOGIN = re.compile(r"://[^/@]*@")
"""What is before a host in a URL may be a password: it is not repeated."""
MOST_VALUES = 2_000_000
"""Of one file, aliases counted as often as they are used; an inventory of 10,000 machines has about 100,000."""
MOST_BYTES = 64 << 20


class Strict(BaseModel):
    """Base of every value that an operator writes: frozen, unknown keys refused, no silent conversion of types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, hide_input_in_errors=True, defer_build=True)


class _Loader(yaml.composer.Composer, yaml.CSafeLoader):
    """YAML's safe loader, on libyaml's parser, with the plain scalars of YAML 1.2.

    YAML 1.1 reads 52:54:00:12:34:56 as a number in base 60, 0123 as octal, `no` as false and 2024-01-01 as a date; of
    a MAC address or a serial number nothing would be left. Nodes are composed in Python, for libyaml's composer
    overflows the stack of the process where a text is nested deep enough.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        yaml.composer.Composer.__init__(self)

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own way


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+][0-9]+)?", "-+0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    for _char in _first:
        _Loader.yaml_implicit_resolvers.setdefault("" if _char == "\0" else _char, []).append(
            (f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"))
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake: where it stands (file, line or 0: all of it, dotted key; `item`: `list/name`) and what is wrong."""

    file: str
    line: int
    key: str
    message: str
    item: str = field(default="", compare=False)

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        return f"{self.file}{line}: {self.key + ': ' if self.key else ''}{self.message}"


class FaultsError(Exception):
    """A file that cannot be used, with *all* its faults in the order of their lines."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(sorted(faults, key=lambda fault: (fault.file, fault.line, fault.key, fault.message)))
        super().__init__("\n".join(map(str, self.faults)))


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML file: its plain value, and the line of every key and item by location."""

    file: str
    value: Any
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """The 1-based line of the nearest enclosing thing that has one."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 1)


def parse(text: str, file: str) -> Document:
    """Parse one YAML document with the safe loader; duplicate keys are faults.

    Raises:
        FaultsError: the text is not YAML, or a mapping has a key twice.
    """
    lines: dict[Location, int] = {(): 1}
    faults: list[Fault] = []
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return Document(file, {}, lines)
            _walk(node, (), lines, faults, file)
            value = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = min(error.problem_mark.line + 1, len(text.splitlines())) if error.problem_mark else 1
        raise FaultsError([Fault(file, line, "", f"not valid YAML: {stumbled(error, text)}")]) from None
    except RecursionError:
        raise FaultsError([Fault(file, 1, "", "not valid YAML: nested too deep")]) from None
    except (yaml.YAMLError, ValueError, AttributeError) as error:
        raise FaultsError([Fault(file, 1, "", f"not valid YAML: {str(error).splitlines()[0]}")]) from None
    if faults:
        raise FaultsError(faults)
    return Document(file, value, lines)


def _walk(
    node: yaml.Node, at: Location, lines: dict[Location, int], faults: list[Fault], file: str, depth: int = 0
) -> None:
    if depth > 50:
        raise RecursionError
    if len(lines) > MOST_VALUES:  # aliases of aliases: a small text can stand for more than any memory holds
        raise ValueError(f"more than {MOST_VALUES:,} values")
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, child in node.value:
            name = str(key.value)
            lines[(*at, name)] = key.start_mark.line + 1
            if name in seen:
                faults.append(Fault(file, key.start_mark.line + 1, dotted((*at, name)), "this key is here twice"))
            seen.add(name)
            _walk(child, (*at, name), lines, faults, file, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            _walk(child, (*at, index), lines, faults, file, depth + 1)


def check(document: Document, model: type[M], *, given: bool = False) -> M:
    """Validate a parsed document against a model; with `given`, faults also say the value that was given.

    Raises:
        FaultsError: with every fault, unknown keys naming the nearest valid one.
    """
    if not isinstance(document.value, dict):
        raise FaultsError([Fault(document.file, 1, "", "the file must hold a mapping of keys to values")])
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        raise FaultsError(faults_of(error, document, model, given=given)) from None


def faults_of(
    error: ValidationError, document: Document, model: type[BaseModel], *, given: bool = False
) -> list[Fault]:
    """Pydantic's errors as faults of the file that the value came from."""
    faults = []
    for item, words in told(error.errors(include_url=False)):
        location = item["loc"]
        if location[-1:] == ("[key]",) and item["type"] != "extra_forbidden":
            location = location[:-1]  # pydantic's mark for a fault of a mapping's key itself
        known = _in_document(location, document.value)
        if item["type"] == "extra_forbidden":
            message = unknown_key(str(location[-1]), fields(model, location[:-1]))
        elif item["type"] == "missing":
            message = REQUIRED
        else:
            message = words
            if given and not isinstance(item["input"], dict | list | BaseModel):
                message += f" (given: {_LOGIN.sub('://…@', repr(item['input'])):.200})"
        faults.append(
            Fault(document.file, document.line(known), dotted(known), message, item_of(known, document.value))
        )
    return faults


def load(path: Path, model: type[M], *, given: bool = False) -> M:
    """Read and validate one file.

    Raises:
        FaultsError: unreadable, not YAML, or not the model's shape.
    """
    return check(read(path), model, given=given)


def read(path: Path) -> Document:
    """Read and parse one file.

    Raises:
        FaultsError: unreadable, or not YAML.
    """
    return parse(text_at(path), str(path))


def text_at(path: Path) -> str:
    """What one file holds, its lines ended as `parse` counts them.

    Raises:
        FaultsError: unreadable, or no text.
    """
    try:
        return files.bytes_of(path, MOST_BYTES).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise FaultsError([Fault(str(path), 0, "", f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise FaultsError([Fault(str(path), 0, "", "is not UTF-8 text")]) from None


def fields(model: type[BaseModel], location: Location) -> list[str]:
    """The valid keys of the model found by walking `location` down from `model`."""
    models = [model]
    for part in location:
        if isinstance(part, int):
            continue
        fields = [parent.model_fields[part] for parent in models if part in parent.model_fields]
        models = [model for field in fields for model in _models(field.annotation)] or models
    return [field.alias or name for m in models for name, field in m.model_fields.items()]


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _in_document(location: Location, value: Any) -> Location:
    """`location` without the parts that pydantic adds for unions and validators, which are not in the file."""
    kept: list[int | str] = []
    for part in location:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        elif part is not location[-1]:
            continue
        kept.append(part)
    return tuple(kept)
