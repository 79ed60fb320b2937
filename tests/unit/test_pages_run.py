"""What runs the documentation's pages sees every difference, and no other."""

import errno
import os
from pathlib import Path

import pytest

from tests.pages_run import Command, commands, fits, run_page
from tests.processes import wait_for

PAGE = """\
# A page
Text, and a block that nobody runs:
```
$ false
```

```console
$ mkdir made && cd made
$ cat > file <<'EOF'
$HOME stays $HOME
EOF
$ cat file; echo \\
  once more >&2
$HOME stays $HOME
once more
```

In between, the folder stays the same, and so do variables.

```console exit 3
$ port=8080; cat
$ basename "$PWD"; echo "at $port, $(printf %063d5 7)"; leave() { return "$1"; }; leave 3
made
at 8080, e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
```
"""


def ran(tmp_path: Path, page: str, seconds: float = 30.0, here: dict[str, str] | None = None) -> None:
    (tmp_path / "page.md").write_text(page)
    run_page(tmp_path / "page.md", tmp_path, os.environ, here, seconds=seconds)


def test_a_page_is_one_session_of_all_its_blocks(tmp_path: Path) -> None:
    ran(tmp_path, PAGE)
    assert (tmp_path / "made/file").read_text() == "$HOME stays $HOME\n"


def test_what_is_otherwise_here_is_replaced_in_commands_and_in_what_is_shown(tmp_path: Path) -> None:
    ran(tmp_path, PAGE.replace("stays", "8080"), here={"8080": "18080"})
    assert (tmp_path / "made/file").read_text() == "$HOME 18080 $HOME\n"


@pytest.mark.parametrize(
    ("there", "instead", "complaint"),
    [
        ("once more\n```", "once less\n```", "page.md:12: $ cat file"),
        ("made\nat", "at", "page.md:22: $ basename"),
        ("exit 3\n", "\n", "ended with 3, not 0"),
        ("&& cd made\n", "&& cd made; exit 4\n", "ended the shell"),
        ("port=8080; cat", "port=8080; if", "syntax error"),
    ],
)
def test_what_is_otherwise_is_seen(tmp_path: Path, there: str, instead: str, complaint: str) -> None:
    assert PAGE.count(there) == 1
    with pytest.raises(AssertionError) as seen:
        ran(tmp_path, PAGE.replace(there, instead))
    assert complaint in str(seen.value)


def test_a_command_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    hangs = "```console\n$ mkfifo pipe; cat pipe & cat pipe\n```\n"
    with pytest.raises(AssertionError, match=r"page.md:2: .*\n-- has not ended after 4 s; it said:\n"):
        ran(tmp_path, hangs, seconds=4)
    wait_for(lambda: not read_by_somebody(tmp_path / "pipe"))


def read_by_somebody(pipe: Path) -> bool:
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        assert error.errno == errno.ENXIO
        return False
    return True


def test_lines_are_counted_as_editors_do() -> None:
    assert commands("\n\n```console exit 1\n$ a\nb\n$ c\n```\n") == [Command(4, "a", "b"), Command(6, "c", "", 1)]


def test_a_command_is_typed_again_where_the_page_says_so(tmp_path: Path) -> None:
    page = "```console again\n$ echo x >> seen; wc -l < seen\n3\n```\n"
    ran(tmp_path, page)
    with pytest.raises(AssertionError, match=r"-- it said:\n4"):
        ran(tmp_path, page.replace(" again", ""))


def test_marks_that_mean_nothing_are_refused() -> None:
    with pytest.raises(AssertionError, match="line 1: a block is `console`, with `again` or `exit STATUS` behind it"):
        commands("```console status 1\n$ a\n```\n")


@pytest.mark.parametrize(
    ("shown", "said", "same"),
    [
        ("", "", True),
        ("", "a word", False),
        ("a\n…\nd", "a\nb\nc\nd\n", True),
        ("a\n…\nd", "a\nd", True),
        ("a\n…\nd", "a\nb\nc", False),
        ("took … in all", "took 3 things in all", True),
        ("took … in all", "took 3\nthings in all", False),
        ("image 4c1d22e04c1d  81.2 MiB  2026-01-01 10:00", "image 0c1d22e04c1f   9.0 MiB  2027-11-30 22:01:07Z", True),
        ("image 4c1d22e04c1d  81.2 MiB", "image 0c1d22e04c1f 9.0 MiB", False),
        ("done in 3 s", "done in 41.5 s  ", True),
        ("(a) [b]*", "(a) [b]*", True),
    ],
)
def test_what_differs_from_run_to_run_is_alike(shown: str, said: str, same: bool) -> None:
    assert fits(shown, said) is same
