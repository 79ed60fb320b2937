"""The lines that matter, in `lines/*.toml`: what each says, what it would say wrongly, and which tests see that.

[[mutant]]
file = "tokens/bootid.py"           # from the root of the tree
line = "if not hmac.compare_digest(…):"   # a part of the file that occurs in it once
becomes = "if False:"
tests = ["tests/unit/tokens/test_bootid.py"]
always = true                       # one of those of `make test`; absent: of `make mutants` alone
excuse = "…"                        # why it may survive; absent: it may not
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINES = Path(__file__).resolve().parent / "lines"


class MutantError(Exception):
    """An entry that is not one, or does not fit the tree; the message names it."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file: `line`, which occurs there once, becomes `becomes`; `tests` are pytest's arguments."""

    file: str
    line: str
    becomes: str
    tests: tuple[str, ...]
    always: bool = False
    excuse: str = ""

    @property
    def name(self) -> str:
        """`file: line → becomes`, each on one line and short enough for a terminal."""
        line, becomes = (" ".join(text.split())[:60] for text in (self.line, self.becomes))
        return f"{self.file}: {line} → {becomes or '(nothing)'}"

    def applied(self, text: str) -> str:
        """`text` of the file with the change. Raises `MutantError` where the line is not in it exactly once."""
        if (times := text.count(self.line)) != 1:
            raise MutantError(f"{self.name}: the line is in the file {times} times, not once")
        changed = text.replace(self.line, self.becomes)
        if self.file.endswith(".py"):
            try:
                compile(changed, self.file, "exec")
            except SyntaxError as error:
                raise MutantError(f"{self.name}: no longer Python: {error}") from error
        return changed


def read(folder: Path = LINES) -> list[Mutant]:
    """Every entry, by file name, in the order in which they are written. Raises `MutantError`."""
    return [_mutant(path, entry) for path in sorted(folder.glob("*.toml")) for entry in _entries(path)]


def _entries(path: Path) -> list[dict[str, object]]:
    try:
        document = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise MutantError(f"{path.name}: {error}") from error
    entries = document.get("mutant")
    if not isinstance(entries, list) or set(document) != {"mutant"}:
        raise MutantError(f"{path.name}: holds nothing but [[mutant]] tables")
    return entries


def _mutant(path: Path, entry: dict[str, object]) -> Mutant:
    known = Mutant.__dataclass_fields__
    tests = entry.get("tests")
    if set(entry) - set(known) or not isinstance(tests, list) or not tests:
        raise MutantError(f"{path.name}: keys of an entry are {', '.join(known)}, with one of tests at least: {entry}")
    try:
        return Mutant(**{**entry, "tests": tuple(tests)})  # type: ignore[arg-type]  # the next line looks at them
    except TypeError as error:
        raise MutantError(f"{path.name}: {error}: {entry}") from error
