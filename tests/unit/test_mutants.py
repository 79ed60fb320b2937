"""The catalogue of mutants fits the tree, and its runner tells killed from survived."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import wrong
from tests.mutants.catalogue import ROOT, Mutant, MutantError, read
from tests.mutants.runner import Copy, Outcome, Verdict, outcome_of

MUTANTS = read()
AT_LEAST, ALWAYS = 150, 15


def test_there_are_enough_and_none_twice() -> None:
    assert len(MUTANTS) >= AT_LEAST
    assert len({(mutant.file, mutant.line) for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(mutant.always for mutant in MUTANTS) == ALWAYS


def test_each_fits_the_tree_and_its_tests_are_there() -> None:
    for mutant in MUTANTS:
        assert mutant.applied((ROOT / mutant.file).read_text()) != (ROOT / mutant.file).read_text()
        assert [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).exists()] == []


@pytest.mark.parametrize(
    ("text", "line", "becomes", "message"),
    [
        ("if a:\n", "if b:", "if c:", "x.py: if b: → if c:: the line is in the file 0 times, not once"),
        ("a = 1\na = 1\n", "a = 1", "a = 2", "x.py: a = 1 → a = 2: the line is in the file 2 times, not once"),
        ("a = 1\n", "a = 1", "a =", "x.py: a = 1 → a =: no longer Python: invalid syntax (x.py, line 1)"),
    ],
)
def test_a_line_that_is_not_there_once_or_a_change_that_is_no_python_is_an_error(
    text: str, line: str, becomes: str, message: str
) -> None:
    with pytest.raises(MutantError) as caught:
        Mutant("x.py", line, becomes, ("tests",)).applied(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            "[[mutant]]\nfile = 1",
            "a.toml: keys of an entry are file, line, becomes, tests, always, excuse, with one of ",
        ),
        ("mutants = []", "a.toml: holds nothing but [[mutant]] tables"),
        ("[[", "a.toml: "),
    ],
)
def test_a_file_that_is_no_catalogue_is_named(document: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(document)
    with pytest.raises(MutantError) as caught:
        read(tmp_path)
    assert str(caught.value).startswith(message)


def test_a_mutant_that_a_test_sees_is_killed_one_that_none_sees_survives_and_the_copy_is_as_before(
    tmp_path: Path,
) -> None:
    copy, file, tests = Copy(tmp_path / "tree"), "netboot/lifecycle/bootid.py", ("tests/unit/test_bootid.py",)
    before = (copy.folder / file).read_text()
    line = "if not is_shaped(boot_id):"
    assert copy.judge(Mutant(file, line, "if False:", tests)).outcome is Outcome.KILLED
    same = "if _SHAPE.fullmatch(boot_id) is None:"
    assert copy.judge(Mutant(file, line, same, tests)).outcome is Outcome.SURVIVED
    assert copy.judge(Mutant(file, line, same, ("tests/unit/test_absent.py",))).outcome is Outcome.UNTRIED
    assert (copy.folder / file).read_text() == before


def test_what_is_wrong_with_a_verdict() -> None:
    plain, excused = Mutant("a.py", "b", "c", ("t",)), Mutant("a.py", "b", "c", ("t",), excuse="equal")
    assert wrong(Verdict(plain, Outcome.KILLED, "")) == ""
    assert wrong(Verdict(excused, Outcome.SURVIVED, "")) == ""
    assert wrong(Verdict(plain, Outcome.SURVIVED, "")) == "SURVIVED  a.py: b → c\n          no test of t fails"
    assert wrong(Verdict(excused, Outcome.KILLED, "")) == "KILLED    a.py: b → c\n          though excused: equal"
    assert wrong(Verdict(plain, Outcome.UNTRIED, "no such file")) == "UNTRIED   a.py: b → c\nno such file"


@pytest.mark.parametrize(
    ("status", "output", "outcome"),
    [
        (0, "1 passed", Outcome.SURVIVED),
        (1, "1 failed", Outcome.KILLED),
        (2, "ERROR collecting tests/unit/test_ek_list.py", Outcome.KILLED),
        (2, "KeyboardInterrupt", Outcome.UNTRIED),
        (4, "ERROR: file or directory not found", Outcome.UNTRIED),
        (5, "no tests ran", Outcome.UNTRIED),
    ],
)
def test_what_pytest_s_exit_status_says(status: int, output: str, outcome: Outcome) -> None:
    assert outcome_of(status, output) is outcome
