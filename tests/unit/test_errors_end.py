"""Every error that a command may end by says what is wrong, and what to do: classes and words are found, not listed."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import images
import netboot
import tokens
from netboot.cli.ends import BASES, HERE, SAYS_WHAT_TO_DO, end_of, ended
from netboot.cli.outcomes import CANNOT_TELL, EXIT_CODE, EXIT_CODES, NOT_ALLOWED, UNKNOWN, VERDICT
from netboot.client.errors import ClientError

ROOT = Path(netboot.__file__).parents[1]
PACKAGES = (netboot, images, tokens)
ALIBI = re.compile(r"do what the message says|^correct it$|^see above$", re.IGNORECASE)
"""Remedies that send a reader back to where they came from."""


def classes() -> Iterator[type[Exception]]:
    """Every exception that our packages declare."""
    found: set[type[Exception]] = set()
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if module.name.endswith("__main__"):
                continue
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == module.name:
                    found.add(value)
    yield from sorted(found, key=lambda kind: (kind.__module__, kind.__name__))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            yield path, ast.parse(path.read_text())


def caught() -> set[str]:
    """Names of exceptions behind an `except`, or that a test of an instance decides about."""
    names: set[str] = set()
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and node.type is not None:
                names |= {
                    part.id if isinstance(part, ast.Name) else part.attr
                    for part in ast.walk(node.type)
                    if isinstance(part, ast.Name | ast.Attribute)
                }
    return names


def test_every_class_ends_with_a_remedy_or_never_ends_anything() -> None:
    """One that has none is caught by its name, or that of its base, where it is expected."""
    handled = caught() | {"FaultyError"}  # the API's own, with a remedy of its own: `netboot.web.errors.install`
    wrong = []
    for kind in classes():
        if issubclass(kind, ClientError | click.ClickException):
            continue  # each says what to do where it is raised: below
        end = end_of(kind)
        if end is None and not any(base.__name__ in handled for base in kind.__mro__[: kind.__mro__.index(Exception)]):
            wrong.append(f"{kind.__module__}.{kind.__name__} has no remedy, and nobody catches it")
        if end is not None and (len(end.remedy) < 9 or ALIBI.search(end.remedy)):
            wrong.append(f"{kind.__module__}.{kind.__name__}: {end.remedy!r} is no remedy")
        if end is not None and end.status not in {*range(1, VERDICT)}:
            wrong.append(f"{kind.__module__}.{kind.__name__} ends with {end.status}")
    assert wrong == []


@pytest.mark.parametrize(
    "kind", [kind for kind in HERE if issubclass(kind, BASES)], ids=lambda kind: str(kind.__name__)
)
def test_what_is_raised_bare_is_said_with_its_remedy(kind: type[Exception]) -> None:
    bare = kind.__new__(kind)
    bare.args = ("it is so",)
    end = end_of(kind)
    assert end is not None
    assert ended(bare) == (f"it is so\nRemedy: {end.remedy}", end.status)


def test_words_that_say_what_to_do_are_not_said_twice() -> None:
    assert ended(BASES[0]("no key: run `netboot key create`")) == ("no key: run `netboot key create`", 1)
    assert ended(BASES[0]("it has none; build it again")) == ("it has none; build it again", 1)


def words_of(node: ast.expr) -> str | None:
    """Of a literal, `{}` for what is put in; None: it is none."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def test_what_commands_and_the_client_raise_says_what_to_do() -> None:
    """Of words that are put together elsewhere that is shown where they are."""
    ours = {kind.__name__ for kind in classes() if issubclass(kind, ClientError)} | {"ClickException", "ApiError"}
    wrong = []
    for path, tree in trees():
        if not {"cli", "client"} & set(path.parts):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            words = words_of(node.args[0]) if name in ours and node.args else None
            remedy = words_of(node.args[1]) if len(node.args) > 1 else ""
            if words is not None and remedy == "" and not SAYS_WHAT_TO_DO.search(words):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {words}")
    assert wrong == []


def test_the_outcomes_have_statuses_of_their_own() -> None:
    assert sorted(EXIT_CODE.values()) == [1, 3, 4, 5]


def test_the_page_says_what_every_status_means() -> None:
    page = (ROOT / "docs/command-line.md").read_text()
    said = dict(re.findall(r"^\| (\d+)(?: and above)? \| (.*) \|$", page, re.MULTILINE))
    assert list(map(int, said)) == [0, 1, 2, UNKNOWN, NOT_ALLOWED, CANNOT_TELL, VERDICT, 130, 141]
    for status, words in ((UNKNOWN, "unknown"), (NOT_ALLOWED, "not allowed"), (CANNOT_TELL, "cannot tell right now")):
        assert said[str(status)].startswith(f"*{words}*")
        assert re.search(rf"\b{status} {words}", EXIT_CODES)


def test_a_process_of_the_service_brings_nothing_of_this() -> None:
    """What commands end by knows stores, clusters and registries, which no boot server has to do with."""
    program = (
        "import io, sys, netboot.process, netboot.processes.start as start\n"
        "from netboot.cli import serve\n"
        "netboot.process.ProcessSpec.model_validate_json = staticmethod(lambda _: None)\n"
        "start.start = lambda _: print('netboot.cli.ends' in sys.modules)\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO())\n"
        "serve.process.callback(name='boot-0')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
