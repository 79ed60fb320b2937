"""What tests of errors take for a cause and for a remedy; where errors of ours are made, and by which words."""

import ast
import functools
import re
from collections.abc import Iterator

import click

from netboot.cli import pages
from netboot.cli.commands import cli
from netboot.cli.ends import SAYS_WHAT_TO_DO
from tests.unit.test_errors_end import ROOT, classes, trees, words_of

ACTS = (
    "add|apply|ask|begin|build|call|change|check|choose|close|correct|declare|divide|edit|fetch|give|have|install|leave|let|lock|log|look|make|name|paste|"
    "put|raise|read|reboot|remove|restart|revoke|run|say|see|send|set|start|stop|take|try|unblock|use|wait|write"
)
"""With which a clause begins that says what to do."""
CLAUSE = re.compile(rf"(?:^|[:;,.(] (?:or |and |then )?)(?:{ACTS})\b")
SAYS_NOTHING = re.compile(
    r"(it |an? )?(internal |unknown )?(error|failure|failed|invalid|bad|wrong)[.! ]*", re.IGNORECASE
)


@functools.cache
def command(path: tuple[str, ...]) -> click.Command | None:
    """Of `netboot`, by the words below it; None: there is none."""
    found: click.Command | None = cli
    for word in path:
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
    return found


def unreal(text: str) -> list[str]:
    """What a text sends its reader to, and is not there: commands, options, pages, sections. A page is one that is
    installed with the command: of folders in docs/ a wheel has none."""
    wrong = []
    for typed in re.findall(r"`(?:sudo )?netboot ([^`|]+)", text):
        if "{" in typed.split()[0] or typed.split()[:1] == ["…"]:
            continue
        words = [word for word in typed.split() if "{" not in word or word.startswith("--")]
        path: list[str] = []
        for word in words:
            if word.startswith("-") or not isinstance(command(tuple(path)), click.Group):
                break
            path.append(word)
        there = command(tuple(path))
        known = {option for each in there.params for option in each.opts} if there is not None else set()
        asked = {word.partition("=")[0] for word in words if word.startswith("--")}
        if there is None or (isinstance(there, click.Group) and not asked <= {"--help", "--version"}) or asked - known:
            wrong.append(f"`netboot {typed}`")
    for page, section in re.findall(r"\bdocs/([\w/.-]+\.md)(?:#([\w-]+))?", text):
        file = pages.folder() / page
        heads = re.findall(r"(?m)^#+ (.*)$", file.read_text()) if file.exists() else []
        slugs = {*map(pages.slug, heads)}
        if "/" in page or not file.exists() or (section and section not in slugs):
            wrong.append(f"docs/{page}{'#' * bool(section)}{section}")
    return wrong


def remedy(text: str) -> bool:
    """Whether it says what to do: a command or a page that there is, or a clause that begins with it."""
    says = SAYS_WHAT_TO_DO.search(text) is not None or CLAUSE.search(text) is not None
    return says and not unreal(text)


def cause(text: str) -> bool:
    """Whether it says what is wrong: words, or what is put in for a hole of a literal; not that something is."""
    said = len(re.findall(r"\{\}|[A-Za-z0-9'-]{2,}", text))
    return said >= 2 and SAYS_NOTHING.fullmatch(text.strip()) is None


def whole(node: ast.expr) -> str | None:
    """As `words_of`, of a sum of literals too."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = whole(node.left), whole(node.right)
        return None if left is None or right is None else left + right
    return None if isinstance(node, ast.Constant) and not isinstance(node.value, str) else words_of(node)


USAGE = frozenset(
    name
    for name, kind in vars(click.exceptions).items()
    if isinstance(kind, type) and issubclass(kind, click.UsageError)
) | {"ValueError"}
"""With which commands and the client refuse what was given; the words of a ValueError go into one of the others."""


def refused() -> Iterator[tuple[str, str, str]]:
    """Where what was given to a command is refused: the place, in which words, and by what code, which names what is
    put into their holes. Of words that are put together elsewhere nothing."""
    for path, tree in trees():
        for node in ast.walk(tree) if {"cli", "client"} & set(path.parts) else ():
            if isinstance(node, ast.Call) and node.args:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in USAGE and (words := whole(node.args[0])) is not None:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", words, ast.unparse(node.args[0])


def raised() -> Iterator[tuple[str, str, list[str | None]]]:
    """Where an error of ours is made: the place, its class, the words of its arguments; None: made elsewhere."""
    names = {kind.__name__ for kind in classes()} | {"ClickException"}
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id in names:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.exc.id, []
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in names:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", name, [whole(one) for one in node.args]
