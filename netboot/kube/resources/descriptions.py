"""What models and their fields are for, from their docstrings: what `kubectl explain` shows.

A docstring below a field is one by PEP 257's word ("attribute docstring"); Python itself forgets it, so the source is
read, which a wheel has, too.
"""

import ast
import inspect
import itertools
import re
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel

_OF_FILES = re.compile(r"\bNot written\b|\bVersions before\b", re.IGNORECASE)
"""Sentences about snapshots and older versions, which do not concern who writes an object."""
_SENTENCES = re.compile(r"(?<=[.?!])\s+(?=[A-Z`*])")


def of_model(model: type[BaseModel]) -> str:
    """Its docstring, in one paragraph."""
    return _told(model.__doc__ or "")


@cache
def of_fields(model: type[BaseModel]) -> Mapping[str, str]:
    """Those of its own fields that have a docstring, by their names in Python."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    found = {}
    for field, below in itertools.pairwise(body):
        said = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(said, str):
            found[field.target.id] = _told(said)
    return found


def _told(docstring: str) -> str:
    sentences = _SENTENCES.split(" ".join(docstring.split()))
    return " ".join(sentence for sentence in sentences if not _OF_FILES.search(sentence))
