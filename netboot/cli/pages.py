"""`netboot docs`: the pages that messages name as `docs/…`, as they were installed with the command."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

import click

from netboot.cli.outcomes import UNKNOWN, ApiError


def folder() -> Path:
    """Of the pages: a wheel has them beside the code, a checkout at its root."""
    inside = Path(__file__).parents[1] / "docs"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "docs"


def slug(head: str) -> str:
    """How a section is named behind `#`, as GitHub makes it of its head."""
    return re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")


@click.command()
@click.argument("page", required=False)
def command(page: str | None) -> None:
    """Print PAGE, as messages name it: docs/PAGE.md, or docs/PAGE.md#SECTION for that section and what is below it.

    Without PAGE it says where the pages are, and names them.

    \b
      netboot docs
      netboot docs docs/store.md#keys
      netboot docs inventory | less
    """
    pages = {path.stem: path for path in sorted(folder().glob("*.md"))}
    if page is None:
        click.echo("\n".join([str(folder()), *(f"  docs/{path.name}" for path in pages.values())]))
        return
    name, _, section = page.removeprefix("docs/").partition("#")
    name = name.removesuffix(".md")
    if name not in pages:
        near = difflib.get_close_matches(name, pages, n=1)
        raise ApiError(f"there is no page {name}", f"name {near[0]}" if near else "`netboot docs` names all", UNKNOWN)
    text = pages[name].read_text(encoding="utf-8")
    click.echo(_section(text, section, name) if section else text, nl=False)


def _section(text: str, section: str, name: str) -> str:
    lines = text.splitlines(keepends=True)
    heads = list(_heads(lines))
    for place, (begins, depth, called) in enumerate(heads):
        if called == section:
            ends = next((at for at, deep, _ in heads[place + 1 :] if deep <= depth), len(lines))
            return "".join(lines[begins:ends])
    raise ApiError(f"the page {name} has no section {section}", f"`netboot docs {name}` prints all of it", UNKNOWN)


def _heads(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Of each section the line where it begins, how deep it is, its name. What is shown as code has none."""
    code = False
    for at, line in enumerate(lines):
        code ^= line.startswith("```")
        if not code and (found := _HEAD.match(line)):
            yield at, len(found[1]), slug(found[2])


_HEAD = re.compile(r"(#+) (.*)")
