"""Runs what a page of the documentation tells to type, and compares what is said with what the page shows.

A block that is fenced as `console` has commands behind `$ ` and what they say below. A command goes on in the next line
behind a `\\`, and up to `EOF` behind `<<EOF` or `<<'EOF'`. All blocks of a page are one bash session, in order. Each
command ends with 0; behind ```` ```console exit 2 ```` the last one of the block ends with 2. Behind
```` ```console again ```` commands that only look are typed again until they say it: what was done before is shown a
moment later.

What a command says, on both outputs, is compared after digests, times and the like were made alike (`ALIKE`) and runs
of spaces were made two. `…` stands for anything on a line; alone on a line, for any lines, none included. What runs on
(`netboot serve … &`) writes elsewhere, and is killed when the page has ended.
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from lab.work import CACHE

Alike = tuple[str, str]
"""A pattern, and what stands for all that it fits."""
ALIKE: tuple[Alike, ...] = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{64}\b", "SHA256"),
    (r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,16}\b(?!-)", "DIGEST"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?", "TIME"),
    (r"\b\d+(?:\.\d+)? (?:ms|s|min|h)\b(?: ago\b)?", "LENGTH"),
    (r"\b[\d,]+(?:\.\d+)? (?:KiB|MiB|GiB)\b", "SIZE"),
    (r"[ \t]{2,}", "  "),
    (r"(?m)[ \t]+$", ""),
)
SECONDS = 900.0
"""For one command, on a machine that is busy with other things: it may build an image."""
_MARK = "--- ended"
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of an account that changed nothing, behind its own programs."""

AGAIN_SECONDS = 240.0
"""Until a command says it that is typed again, on a machine that is busy with other things."""


class Command(NamedTuple):
    """What is typed, in which line of the page; what the page shows that it says, and its exit status; whether it is
    typed again until it says so."""

    line: int
    typed: str
    shown: str
    status: int = 0
    again: bool = False


def run_page(
    page: Path,
    folder: Path,
    environment: Mapping[str, str],
    here: Mapping[str, str] | None = None,
    alike: Sequence[Alike] = (),
    seconds: float = SECONDS,
) -> None:
    """Type a whole page, in `folder`. `here`: what the page says → what stands for it here, in commands and in what is
    shown: ports that are free, say. `alike`: more patterns, before those of every page.

    Raises:
        AssertionError: a command says something else, ends otherwise or not at all; with the page, its line, and both.
    """
    replaced = page.read_text(encoding="utf-8")
    for there, value in (here or {}).items():
        replaced = replaced.replace(there, value)
    with _shell(folder, environment) as shell:
        for command in commands(replaced):
            where, end = f"{page.name}:{command.line}: $ {command.typed}", time.monotonic() + AGAIN_SECONDS
            said, status = _typed(shell, folder / ".typed", command.typed, where, seconds)
            while command.again and not fits(command.shown, said, alike) and time.monotonic() < end:
                said, status = _typed(shell, folder / ".typed", command.typed, where, seconds)
            both = f"-- the page shows:\n{command.shown}\n-- it said:\n{said}"
            assert fits(command.shown, said, alike), f"{where}\n{both}"
            assert status == command.status, f"{where}\n-- ended with {status}, not {command.status}:\n{said}"


def of_a_new_account(home: Path) -> dict[str, str]:
    """Variables of an account whose home that is, with nothing of this tree and its environment. What pip fetches is
    kept for all tests, in a folder of this account: pip uses no other."""
    ours = ("PYTHON", "PIPX_", "NETBOOT_", "VIRTUAL_ENV", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    (CACHE / "pip").mkdir(parents=True, exist_ok=True)
    own = {"HOME": str(home), "PIP_CACHE_DIR": str(CACHE / "pip"), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    return kept | own | {"PATH": f"{home}/.local/bin:{SYSTEM}"}


def commands(page: str) -> list[Command]:
    """Of all blocks of a page's text, in their order."""
    found = []
    for token in MarkdownIt().parse(page):
        words = token.info.split()
        if token.type == "fence" and words[:1] == ["console"] and token.map is not None:
            line = token.map[0] + 1
            marks = re.fullmatch(r"console( again)?( exit (\d+))?", " ".join(words))
            assert marks is not None, f"line {line}: a block is `console`, with `again` or `exit STATUS` behind it"
            block = [one._replace(again=bool(marks[1])) for one in _of_block(token.content.splitlines(), line + 1)]
            found += [*block[:-1], block[-1]._replace(status=int(marks[3] or 0))]
    return found


def fits(shown: str, said: str, alike: Sequence[Alike] = ()) -> bool:
    """Whether what was said is what a page shows."""
    pattern = []
    for line in _normal(shown, alike).splitlines():
        parts = (re.escape(part) for part in line.split("…"))
        pattern.append(r"(?:.*\n)*?" if line.strip() == "…" else ".*".join(parts) + r"\n")
    lines = "".join(f"{line}\n" for line in _normal(said, alike).splitlines())
    return re.fullmatch("".join(pattern), lines) is not None


def _normal(text: str, alike: Sequence[Alike]) -> str:
    for pattern, name in (*alike, *ALIKE):
        text = re.sub(pattern, name, text)
    return text.strip("\n")


def _of_block(lines: list[str], first: int) -> Iterator[Command]:
    at = 0
    assert lines[:1] and lines[0].startswith("$ "), f"line {first}: a block begins with a command, `$ …`"
    while at < len(lines):
        start, typed = at, [lines[at].removeprefix("$ ")]
        at += 1
        while typed[-1].endswith("\\"):
            typed.append(lines[at])
            at += 1
        if re.search(r"<<'?EOF'?", typed[-1]):
            end = lines.index("EOF", at) + 1
            typed += lines[at:end]
            at = end
        below = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        yield Command(first + start, "\n".join(typed), "\n".join(lines[below:at]))


@contextlib.contextmanager
def _shell(folder: Path, environment: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A bash of its own session; whatever of it runs on is killed at the end."""
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as shell:
        try:
            yield shell
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


def _typed(shell: "subprocess.Popen[bytes]", file: Path, typed: str, where: str, seconds: float) -> tuple[str, int]:
    """What a command says, and its exit status. It is read from a file: its own input is empty."""
    assert shell.stdin is not None and shell.stdout is not None
    file.write_text(typed + "\n", encoding="utf-8")
    shell.stdin.write(f"source '{file}' </dev/null; printf '\\n{_MARK} %d\\n' $?\n".encode())
    shell.stdin.flush()
    said, end = b"", time.monotonic() + seconds
    while (ended := re.search(rf"\n{_MARK} (\d+)\n$".encode(), said)) is None:
        waited, _, _ = select.select([shell.stdout], [], [], max(0.0, end - time.monotonic()))
        text = said.decode(errors="replace")
        assert waited, f"{where}\n-- has not ended after {seconds:g} s; it said:\n{text}"
        more = os.read(shell.stdout.fileno(), 1 << 16)
        assert more, f"{where}\n-- ended the shell; it said:\n{text}"
        said += more
    return said[: ended.start()].decode(errors="replace"), int(ended[1])
