"""What is said of a wrong value in a file of an operator: in our words, whichever field of whichever model it is in."""

import re
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from images.values.strict import Document, FaultsError, _models, check, parse
from netboot.config import Config
from netboot.machines.values import Inventory

PYDANTICS = re.compile(
    r"Input|should (be|match|have)|valid (string|integer|boolean|number|dict|tuple)|pattern|validation"
)
WRONG: tuple[object, ...] = (
    *(None, True, 5, -1, 10**30, 1.5, float("nan")),
    *("", "\x00\u00e9 /", "x" * 1000),
    *([], ["\x00 "], [7] * 2000, [[]], [{}]),
    *({}, {"\x00 ": "\x00 "}, {7: 7}, {"a": {}}),
)


def reachable(*roots: type[BaseModel]) -> Iterator[type[BaseModel]]:
    left, seen = list(roots), set[type[BaseModel]]()
    while left:
        model = left.pop()
        if model not in seen:
            seen.add(model)
            yield model
            left += [inner for field in model.model_fields.values() for inner in _models(field.annotation)]


MODELS = sorted(reachable(Inventory, Config), key=lambda model: model.__name__)


@pytest.mark.filterwarnings(
    "ignore:__int__ returned non-int:DeprecationWarning"
)  # of pydantic, for a network of `true`
@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.__name__))
def test_no_fault_has_words_of_pydantics(model: type[BaseModel]) -> None:
    said = set()
    for name, field in model.model_fields.items():
        key = field.alias or name
        for value in WRONG:
            try:
                check(Document("f", {key: value}, {}), model)
            except FaultsError as error:
                said |= {f"{fault.key}: {fault.message}" for fault in error.faults}
    assert sorted(words for words in said if PYDANTICS.search(words)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: GPU_1",
            "must be lower-case letters, digits, '-' and '.', at most 63, beginning and ending with a letter or digit",
        ),
        (
            "node: {labels: {'a b': x}}",
            "is no key of a label: a name of letters, digits and -_., behind a domain and / where it is yours",
        ),
        (
            "node: {labels: {a: 'b c'}}",
            "is no value of a label: at most 63 letters, digits and -_., beginning and ending with a letter or digit",
        ),
        ("node: {labels: {a: 7}}", "must be text: put a number, true, false or a date into quotes"),
        (
            "node: {taints: [gpu]}",
            "must be a taint like gpu=true:NoSchedule or gpu:NoSchedule; also PreferNoSchedule, NoExecute",
        ),
        (
            "node: {name: GPU_1}",
            "must be lower-case letters, digits, '-' and '.', at most 253, beginning and ending with a letter or digit",
        ),
        ("architecture: riscv64", "must be 'amd64' or 'arm64'"),
        ("enabled: 3", "must be true or false"),
    ],
)
def test_what_is_said_of_a_machine(text: str, message: str) -> None:
    with pytest.raises(FaultsError) as caught:
        check(parse(f"machines:\n- {text}\n", "f"), Inventory)
    assert message in [fault.message for fault in caught.value.faults]


@pytest.mark.parametrize(
    "text", ["a:\n\tb: 1\n", "a:\tb:\tc\n", "a: 1\n\tb: 2\n", "a:\n  b: 1\n\tc: 2\n", "\ta: 1\n", "a:\t- b\n"]
)
def test_a_tab_wherever_it_stands_is_called_one(text: str) -> None:
    try:
        parse(text, "f")
    except FaultsError as error:
        assert "found" not in str(error) or "tab" in str(error), str(error)
        assert "indentation" not in str(error), str(error)
