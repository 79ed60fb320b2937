"""The page of the inventory has a row for each key of the files, and for no other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from netboot.machines.values import Inventory

PAGE = Path(__file__).parents[2] / "docs" / "inventory.md"


def rows() -> list[tuple[list[str], str]]:
    """Of the table of keys, whole keys (`.taints` after `machines[].node.name` is `machines[].node.taints`), and the
    text of each row."""
    table = PAGE.read_text(encoding="utf-8").partition("| key | meaning | default |\n|---|---|---|\n")[2]
    found = []
    for line in table.partition("\n\n")[0].splitlines():
        keys: list[str] = []
        for key in re.findall(r"`([^`]+)`", line.split(" | ")[0]):
            keys.append(keys[-1].rpartition(".")[0] + key if key.startswith(".") else key)
        found.append((keys, line))
    return found


def models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models of ours in a field's type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models(inner)


def keys(model: type[BaseModel]) -> Iterator[tuple[str, object]]:
    for name, field in model.model_fields.items():
        yield field.alias or name, field.annotation


def declared() -> Iterator[tuple[str, object]]:
    """Each key of each kind, like `machines[].rack`, with its type."""
    for kind, annotation in keys(Inventory):
        (model,) = models(annotation)
        for key, inner in keys(model):
            yield f"{kind}[].{key}", inner


def test_each_key_has_a_row_that_names_what_is_in_it() -> None:
    there, missing = rows(), []
    for key, annotation in declared():
        texts = [
            text
            for names, text in there
            if any(name == key or re.match(rf"{re.escape(key)}[.\[]", name) for name in names)
        ]
        inside = [name for model in models(annotation) for name, _ in keys(model)]
        said = " ".join(texts)
        linked = re.search(r"\]\([a-z]+\.md", said)  # a page of its own
        missing += [key] if not texts else []
        missing += [f"{key}.{name}" for name in inside if texts and not linked and not re.search(rf"[`.]{name}`", said)]
    assert missing == []


def test_no_row_is_of_a_key_that_there_is_not() -> None:
    known = dict(declared())
    for names, _ in rows():
        for name in names:
            whole = re.match(r"\w+\[\]\.\w+", name)
            assert whole is not None and whole[0] in known, name
            rest = name[whole.end() :].removeprefix("[]").removeprefix(".")
            assert not rest or rest in {key for model in models(known[whole[0]]) for key, _ in keys(model)}, name
