"""What every file of an operator goes through: YAML without surprises, bounded, with the line of every fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from images.values.strict import Document, FaultsError, Strict, check, parse


class Inner(Strict):
    size: int = Field(default=1, ge=0)


class Model(Strict):
    name: str = ""
    inner: Inner = Inner()
    many: tuple[Inner, ...] = ()


def faults(text: str) -> list[str]:
    with pytest.raises(FaultsError) as caught:
        check(parse(text, "f.yaml"), Model, given=True)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("52:54:00:12:34:56", "52:54:00:12:34:56"),  # YAML 1.1: a number in base 60
        ("0123456", "0123456"),  # YAML 1.1: octal
        ("no", "no"),
        ("on", "on"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("1e5", "1e5"),
        ("12", 12),
        ("-3", -3),
        ("0x10", 16),
        ("1.5", 1.5),
        ("true", True),
        ("~", None),
        ("", None),
        ("'12'", "12"),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(plain: str, value: object) -> None:
    assert parse(f"a: {plain}\n", "f").value == {"a": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", "f:1: not valid YAML: did not find expected node content"),
        ("a: b: c", "f:1: not valid YAML: mapping values are not allowed in this context"),
        ("a: 1\nb: 2\na: 3\n", "f:3: a: this key is here twice"),
        ("a: {b: 1, b: 2}", "f:1: a.b: this key is here twice"),
        ("&a [*a]", "f:1: not valid YAML: nested too deep"),
        ("[" * 100_000, "f:1: not valid YAML: nested too deep"),
        ("- " * 100_000, "f:1: not valid YAML: nested too deep"),
        ("a: 1\n---\nb: 2", "f:2: not valid YAML: but found another document"),
        ("? [a]\n: b", "f:1: not valid YAML: found unhashable key"),
        (
            "a: !!python/name:os.system x",
            (
                "f:1: not valid YAML: could not determine a constructor for the tag "
                "'tag:yaml.org,2002:python/name:os.system'"
            ),
        ),
    ],
)
def test_what_is_not_a_document_is_one_fault_with_its_line(text: str, message: str) -> None:
    with pytest.raises(FaultsError) as caught:
        parse(text, "f")
    assert str(caught.value) == message


def test_aliases_of_aliases_end_instead_of_filling_memory() -> None:
    levels = [f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)]
    with pytest.raises(FaultsError, match="more than 2,000,000 values"):
        parse("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(levels), "f")


def test_an_empty_file_is_an_empty_mapping() -> None:
    assert parse("# nothing\n", "f") == Document("f", {}, {(): 1})


def test_every_fault_at_once_with_line_key_bound_and_value() -> None:
    text = "nam: x\ninner:\n  size: -1\nmany:\n- size: 3\n- size: many\n  sise: 2\n"
    assert faults(text) == [
        "f.yaml:1: nam: unknown key; did you mean 'name'?",
        "f.yaml:3: inner.size: must be 0 at least (given: -1)",
        "f.yaml:6: many[1].size: must be a whole number (given: 'many')",
        "f.yaml:7: many[1].sise: unknown key; did you mean 'size'?",
    ]


def test_a_key_that_looks_like_a_mark_of_pydantics() -> None:
    assert faults("'[key]': 1\n") == ["f.yaml:1: [key]: unknown key; valid keys: inner, many, name"]


def test_a_file_that_holds_no_mapping() -> None:
    assert faults("- a\n") == ["f.yaml:1: the file must hold a mapping of keys to values"]


@given(st.text(max_size=300))
def test_any_text_is_a_document_or_faults(text: str) -> None:
    try:
        document = parse(text, "f")
    except FaultsError as error:
        assert error.faults
    else:
        assert document.file == "f"
