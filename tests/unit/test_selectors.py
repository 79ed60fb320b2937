"""Selectors of machines: kubectl's grammar, read in one way or not at all."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.machines.selectors import FIELDS, MOST, Requirement, fits, parse, parse_fields
from netboot.machines.values import Machine

LABELS = {"gpu": "h100", "tier": "", "example.com/rack": "r1"}
MACHINE = Machine.model_validate(
    {"name": "gpu-001", "match": {"serial": "S1"}, "profile": "compute", "rack": "r1", "node": {"labels": LABELS}}
)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True),
        (" ", True),
        ("gpu", True),
        ("other", False),
        ("!other", True),
        ("! gpu", False),
        ("gpu=h100", True),
        ("gpu == h100", True),
        ("gpu=h200", False),
        ("gpu!=h200", True),
        ("gpu!=h100", False),
        ("other!=h100", True),
        ("tier=", True),
        ("gpu=", False),
        ("other=", False),
        ("tier!=", False),
        ("gpu in (h100,h200)", True),
        ("gpu in ( h200 )", False),
        ("gpu notin(h200, b200)", True),
        ("gpu notin (h100)", False),
        ("other notin (h100)", True),
        ("other in (h100)", False),
        ("gpu=h100,example.com/rack=r1", True),
        ("gpu=h100 , example.com/rack = r2", False),
        ("in=a", False),
        ("gpu,gpu=h100,gpu!=h200,!in", True),
    ],
)
def test_labels(selector: str, selected: bool) -> None:
    assert fits(MACHINE, parse(selector), ()) is selected


@pytest.mark.parametrize(
    "bad",
    [
        ",",
        "gpu,",
        ",gpu",
        "gpu,,tier",
        "=h100",
        "gpu h100",
        "gpu=h100 h200",
        "gpu===h100",
        "gpu=!h100",
        "!gpu=h100",
        "gpu in ()",
        "gpu in (a,)",
        "gpu in (a",
        "gpu in a",
        "gpuin (a)",
        "gpu>5",
        "gpu=h100;tier",
        "gpu\n",
        "gpü",
        "-gpu",
    ],
)
def test_what_is_no_selector(bad: str) -> None:
    with pytest.raises(ValueError, match="cannot be read from "):
        parse(bad)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("a//b!=x", "a//b: must be the key of a label: before the / stands the name of a domain"),
        ("!a/b/c", "a/b/c: must be the key of a label: before the / stands the name of a domain"),
        (
            "A.example/gpu notin (x)",
            "A.example/gpu: must be the key of a label: before the / stands the name of a domain",
        ),
        (f"{'k' * 64}!=x", f"{'k' * 40}: must be the key of a label, like topology.kubernetes.io/zone"),
        (f"gpu!={'v' * 64}", "gpu: no label has a value of more than 63 characters"),
        (f"gpu notin (a,{'v' * 64})", "gpu: no label has a value of more than 63 characters"),
    ],
)
def test_what_no_label_can_have_does_not_fit_all_machines(bad: str, words: str) -> None:
    """`!=` and `notin` fit what has no such label: one that there cannot be would select all."""
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        parse(bad)
    parse(f"{'k' * 63}!={'v' * 63}")


def test_it_says_from_where_on_and_how_long_one_may_be() -> None:
    with pytest.raises(ValueError, match=re.escape("cannot be read from '=x' on: key, !key, key=value, key in (a,b)")):
        parse("gpu=h100, =x")
    with pytest.raises(ValueError, match=f"has more than {MOST} parts"):
        parse(",".join(["gpu"] * (MOST + 1)))
    with pytest.raises(ValueError, match="is longer than 2000 characters"):
        parse("a" * 2_001)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("name=gpu-001", True),
        ("name!=gpu-001", False),
        ("rack=r1,profile=compute,enabled=true", True),
        ("class=", True),
        ("class!=", False),
        ("architecture=arm64", False),
        ("identity=tpm,cluster==default", True),
    ],
)
def test_fields(selector: str, selected: bool) -> None:
    assert fits(MACHINE, (), parse_fields(selector)) is selected


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("colour=red", f"there is no field colour; there are: {', '.join(FIELDS)}"),
        ("rack", "rack: a field is selected by = or !="),
        ("rack in (r1,r2)", "rack: a field is selected by = or !="),
        ("rack in (r1)", "rack: a field is selected by = or !="),
        ("rack notin (r1)", "rack: a field is selected by = or !="),
        ("!rack", "rack: a field is selected by = or !="),
    ],
)
def test_what_fields_do_not_have(bad: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_fields(bad)


KEYS = st.from_regex(
    r"([a-z0-9]([a-z0-9.-]{0,8}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True
)
VALUES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True)
ONE = st.one_of(
    st.builds(Requirement, KEYS, st.none(), negated=st.booleans()),
    st.builds(Requirement, KEYS, st.frozensets(VALUES, min_size=1, max_size=3), negated=st.booleans()),
    st.builds(Requirement, KEYS, st.just(frozenset({""})), negated=st.booleans()),
)


def written(each: Requirement, spaces: str) -> str:
    if each.values is None:
        return f"{spaces}{'!' if each.negated else ''}{spaces}{each.key}{spaces}"
    values = sorted(each.values)
    if len(values) == 1:
        return f"{each.key}{spaces}{'!=' if each.negated else '='}{spaces}{values[0]}"
    return f"{each.key} {'notin' if each.negated else 'in'}{spaces}({f'{spaces},'.join(values)}{spaces}){spaces}"


@given(st.lists(ONE, max_size=8), st.sampled_from(["", " ", "  "]))
def test_what_is_written_is_what_is_read(wanted: list[Requirement], spaces: str) -> None:
    assert parse(",".join(written(each, spaces) for each in wanted)) == tuple(wanted)


@given(st.text(alphabet="ab1!=(),/.- in", max_size=24))
def test_whatever_is_read_says_all_that_was_written(text: str) -> None:
    """Nothing is passed over: the parts, written down again, have the characters that were sent."""
    try:
        found = parse(text)
    except ValueError:
        return
    keys = [each.key for each in found]
    assert all(key in text for key in keys)
    assert sum(map(len, keys)) <= len(text)
    assert parse(",".join(written(each, "") for each in found)) == found
