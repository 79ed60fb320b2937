"""What was parsed is kept by its bytes, up to a bound, and is never what was there before."""

import os
import threading
from pathlib import Path

import pytest

from images.values import strict
from images.values.strict import Document, FaultsError
from netboot.stores import parsed
from netboot.stores.parsed import Parsed


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files as they were parsed."""
    found, parse = list[str](), strict.parse

    def counted(text: str, file: str) -> Document:
        found.append(Path(file).name)
        return parse(text, file)

    monkeypatch.setattr(strict, "parse", counted)
    return found


def test_a_file_is_parsed_once_until_it_holds_something_else(tmp_path: Path, read: list[str]) -> None:
    files, a, b = Parsed(), tmp_path / "a", tmp_path / "b"
    a.write_text("x: 1\n")
    b.write_text("x: 1\n")
    assert files.read(a) is files.read(a)
    assert (files.read(b).file, read) == (str(b), ["a", "b"])
    at = a.stat()
    a.write_text("x: 2\n")  # of the same size, and as if at the same moment
    os.utime(a, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert (files.read(a).value, read) == ({"x": 2}, ["a", "b", "a"])


def test_what_cannot_be_read_is_looked_at_again(tmp_path: Path) -> None:
    files, a = Parsed(), tmp_path / "a"
    a.write_text("x: 1\n")
    files.read(a)
    for text, words in ((b"x: [", "not valid YAML"), (b"\xff", "is not UTF-8 text")):
        a.write_bytes(text)
        for _ in range(2):
            with pytest.raises(FaultsError, match=words):
                files.read(a)
    a.unlink()
    with pytest.raises(FaultsError, match="cannot be read"):
        files.read(a)
    a.write_text("x: 1\n")
    assert files.read(a).value == {"x": 1}


def test_no_more_is_kept_than_the_bound(tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed, "MOST_VALUES", 8)  # a file with one key has two values: itself, and that
    files, paths = Parsed(), [tmp_path / name for name in "abcde"]
    for path in paths:
        path.write_text("x: 1\n")
    for path in [*paths, *paths]:
        files.read(path)
    assert read == [*"abcde", "e"]
    paths[0].unlink()  # makes room, once it is looked for
    for _ in range(5):
        files.read(paths[4])
    assert read == [*"abcde", *"eeeee"]
    paths[1].write_text("x: [1, 2, 3]\n")
    for _ in range(2):
        assert files.read(paths[1]).value == {"x": [1, 2, 3]}
    for path in paths[2:]:
        files.read(path)
    assert read == [*"abcde", *"eeeee", "b", "b"], "too large, and the others stay"


def test_many_threads_read_what_is_there(tmp_path: Path) -> None:
    files, path, found = Parsed(), tmp_path / "a", list[object]()
    path.write_text("x: 0\n")
    begin = threading.Barrier(9)

    def reader() -> None:
        begin.wait()
        found.extend(files.read(path).value["x"] for _ in range(50))

    threads = [threading.Thread(target=reader) for _ in range(8)]
    for thread in threads:
        thread.start()
    begin.wait()
    for number in range(1, 20):
        new = tmp_path / "new"
        new.write_text(f"x: {number}\n")
        new.rename(path)
    for thread in threads:
        thread.join()
    assert (files.read(path).value, set(found) <= set(range(20))) == ({"x": 19}, True)
