"""Words of ours that the field has another word for are gone: from code, documents, logs and help."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("netboot", "images", "ipxe", "tokens", "lab", "bench", "tests", "docs", "deploy", ".ci")
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "setup.sh")
GONE = {
    "shelf": "image repository",
    "shelves": "image repository",
    "keeper": "snapshot publisher",
    "projector": "projection",
    "plane": "server, process (the control plane is Kubernetes')",
    "planes": "servers, processes",
    "desk": "context",
    "rung": "assurance level",
    "rungs": "assurance levels",
    "ladder": "assurance levels",
    "vouch": "sign, prove; an operator-issued token",
    "vouched": "sign, prove",
    "tally": "counters",
    "papers": "signed manifest",
    "patience": "retry policy",
    "fitness": "preflight checks",
    "weather": "faults of network, disk and clock",
    "tale": "claim, scenario",
    "tales": "scenarios",
    "kit": "fixtures",
}
"""Parts of identifiers and of prose, in lower case; what to write in their place."""
NAMES = {"Orders": "ProcessSpec", "Parts": "context", "Prompt": "prepared response", "Following": "reflector"}
"""Names of classes: in prose the same words are plain English."""
SPARED = {Path(__file__).name, "LICENSE", "LICENSE.gitleaks", "gitleaks.toml"} | {
    *("htmx.LICENSE", "htmx-sse.LICENSE", "htmx.min.js", "htmx-sse.min.js", "axe.min.js"),
    *("idiomorph.LICENSE", "idiomorph.min.js"),
}
"""Others' words."""
WAS = re.compile(r"^\| \w+ \| gone: ", re.MULTILINE)
"""Where a page says which words are gone: docs/command-line.md#words."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def coined(text: str) -> list[str]:
    """Those of the words that stand in a text, each once."""
    text = WAS.sub("", text)
    text = re.sub(r"control[\s_-]*planes?", "", text, flags=re.IGNORECASE)
    words = {word.lower() for word in _WORD.findall(text)}
    classes = set(re.findall(r"\bclass (\w+)", text))
    return sorted([*(words & GONE.keys()), *(classes & NAMES.keys())])


def read() -> list[tuple[str, str]]:
    paths = [ROOT / name for name in FILES]
    paths += [path for place in PLACES for path in sorted((ROOT / place).rglob("*")) if path.is_file()]
    texts = []
    for path in paths:
        if path.name not in SPARED and "__pycache__" not in path.parts:
            try:
                texts.append((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
            except UnicodeDecodeError:
                continue
    return texts


def test_no_coined_word_stands_outside_of_the_glossary() -> None:
    found = {name: coined(f"{name}\n{text}") for name, text in read()}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class ShelfKeeper: ...", ["keeper", "shelf"]),
        ("the boot plane", ["plane"]),
        ("Kubernetes' control plane, control_plane, the control planes, ControlPlane", []),
        ("a toolkit, a housekeeper, shelfless, in_orders_of", []),
        ("class Parts:", ["Parts"]),
        ("Orders given together", []),
        ("_LADDER", ["ladder"]),
        ("| rung | gone: *assurance level* |", []),
        ("| rung | of a ladder |", ["ladder", "rung"]),
    ],
)
def test_words_are_found_in_prose_and_in_identifiers(text: str, words: list[str]) -> None:
    assert coined(text) == words
