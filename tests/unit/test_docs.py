"""The documentation holds together: links, anchors, paths and pages are there, and every page can be found."""

import re
from functools import cache
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from netboot.cli.commands import cli

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ROOMS = ("bench", "deploy", "docs", "images", "ipxe", "lab", "netboot", "tests", "tokens")
PATH = re.compile(rf"(?<![\w/.<-])(?:{'|'.join(ROOMS)})/[\w./-]*\w\.(?:py|sh|md|yaml|ipxe|service|json)")

ALONE = re.compile(r"`([a-z]\w*\.py)`")
"""A module by its file's name alone, where a page has said which folder it speaks of."""
COMMAND = re.compile(r"(?:^(?:\$ )?|[|&`] ?|bin/)netboot ((?:[a-z][\w-]*|--[a-z])[^|&#`\n]*)", re.MULTILINE)


@cache
def modules() -> frozenset[str]:
    """The file names of all our modules."""
    return frozenset(path.name for room in ROOMS for path in (ROOT / room).rglob("*.py"))


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of its headings, as GitHub makes them."""
    parsed = tokens(page)
    titles = [parsed[at + 1] for at, token in enumerate(parsed) if token.type == "heading_open"]
    texts = ("".join(child.content for child in title.children or ()).lower() for title in titles)
    return frozenset(re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts)


def targets(page: Path) -> list[str]:
    inline = [child for token in tokens(page) for child in token.children or ()]
    links = [str(child.attrs["href"]) for child in inline if child.type == "link_open"]
    return [link for link in links if "://" not in link and not link.startswith("mailto:")]


def broken(page: Path) -> list[str]:
    faults = []
    for link in targets(page):
        name, _, anchor = link.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            faults.append(link)
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = set(PATH.findall(" ".join(re.findall(r"`[^`\n]+`", page.read_text(encoding="utf-8")))))
    assert sorted(path for path in named if not (ROOT / path).exists()) == []
    assert sorted({*ALONE.findall(page.read_text(encoding="utf-8"))} - modules()) == []


def test_every_page_is_reached_from_the_map() -> None:
    reached, ahead = set(), [MAP]
    while ahead:
        page = ahead.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        if page.suffix == ".md":
            ahead += [(page.parent / link.partition("#")[0]).resolve() for link in targets(page) if link[0] != "#"]
    documents = {path for path in (ROOT / "docs").rglob("*") if path.is_file()}
    assert sorted(str(path.relative_to(ROOT)) for path in documents - reached) == []


def test_a_link_to_a_missing_heading_is_broken(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title, `coded`\n[good](#a-title-coded) [bad](#none) [gone](gone.md) <http://192.0.2.1/>\n")
    assert broken(page) == ["#none", "gone.md"]


def test_every_bump_of_a_step_has_its_erratum() -> None:
    errata = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    versions = {
        path.stem: int(found[1])
        for path in (ROOT / "images" / "build" / "steps").glob("*.py")
        if (found := re.search(r"^VERSION = (\d+)$", path.read_text(encoding="utf-8"), re.MULTILINE))
    }
    assert len(versions) > 10
    bumps = [f"`{name}` {number}" for name, last in versions.items() for number in range(2, last + 1)]
    assert [bump for bump in bumps if bump not in errata] == []


def commands(page: Path) -> list[str]:
    """What a page tells to type behind `netboot`, in its listings and in its code spans."""
    inline = [child for token in tokens(page) for child in token.children or ()]
    listings = [token.content for token in tokens(page) if token.type in ("fence", "code_block")]
    spans = [f"`{child.content}`" for child in inline if child.type == "code_inline"]
    return [typed for text in (*listings, *spans) for typed in COMMAND.findall(text)]


def unreal(typed: str) -> list[str]:
    """The words of a command line that are no command, or no option of the one that they follow."""
    command: click.Command = cli
    words = typed.partition("   ")[0].split()
    while words and words[0][0] != "-" and isinstance(command, click.Group):
        name = words.pop(0)
        subcommand = command.get_command(click.Context(command), name)
        if subcommand is None:
            return [name]
        command = subcommand
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if word.startswith("--") and word not in known | {"--help"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_names_are_there(page: Path) -> None:
    assert {typed: unreal(typed) for typed in commands(page) if unreal(typed)} == {}


def test_a_command_that_is_not_there_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`netboot image burn X` `netboot doctor --loud`\n\n```\nnetboot serve --config x  # netboot sings\n```\n"
    )
    assert {typed: unreal(typed) for typed in commands(page)} == {
        "serve --config x  ": [],
        "image burn X": ["burn"],
        "doctor --loud": ["--loud"],
    }


NAMED = re.compile(r"`(tests/[\w/]+\.py)`: (`test_\w+…?`(?:, `test_\w+…?`)*)")
"""A file of tests, and those in it that a page names, cut short by `…`."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    gone = []
    for file, names in NAMED.findall(page.read_text(encoding="utf-8")):
        there = re.findall(r"def (test_\w+)\(", (ROOT / file).read_text(encoding="utf-8"))
        for name in re.findall(r"`(test_\w+…?)`", names):
            begins = name.removesuffix("…")
            fitting = [one for one in there if one.startswith(begins) if name.endswith("…") or one == begins]
            gone += [f"{file}: {name}"] if not fitting else []
    assert gone == []
