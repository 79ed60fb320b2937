"""Lists of EKs: every form, every fault with its line, nothing but faults on any text."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from images.values.strict import FaultsError
from images.values.table import MOST_ROWS
from netboot.join.ek_list import read_ek_list, write_ek_list
from tests.unit.tokens.ek_certificates import der, ek_certificate, maker, pem
from tests.unit.tokens.soft import EK_ATTRIBUTES, RSA_EK, public
from tokens.credential import spki_sha256
from tokens.wire import sized

MACHINES = dict.fromkeys(("gpu-001", "gpu-002", "gpu-003"), "") | {"off-001": "off-001 is disabled"}
EK = public(RSA_EK, EK_ATTRIBUTES, storage=True)
PIN = spki_sha256(EK)
INFO = serialization.PublicFormat.SubjectPublicKeyInfo
DER_KEY = RSA_EK.public_key().public_bytes(serialization.Encoding.DER, INFO)
PEM_KEY = RSA_EK.public_key().public_bytes(serialization.Encoding.PEM, INFO).decode()
CERTIFICATE = ek_certificate(maker()[1])
COLUMNS = "the first line names the columns: machine and one of ek_sha256, ek_public, ek_certificate"
QUOTE = (
    'a quote (") is opened here, and none closes it before a comma or the end of a line: close it, or take it out; '
    "the lines after this one were not looked at"
)
A, B = "a1" * 32, "b2" * 32


def faults(text: str) -> list[str]:
    with pytest.raises(FaultsError) as caught:
        read_ek_list(text, MACHINES)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("ek_sha256", PIN),
        ("ek_sha256", PIN.upper()),
        ("ek_sha256", ":".join(PIN[i : i + 2] for i in range(0, 64, 2))),
        ("ek_public", PEM_KEY),
        ("ek_public", base64.b64encode(DER_KEY).decode()),
        ("ek_public", base64.b64encode(sized(EK.raw)).decode()),
        ("ek_certificate", pem(CERTIFICATE)),
        ("ek_certificate", base64.b64encode(der(CERTIFICATE)).decode()),
    ],
    ids=["hex", "HEX", "he:x", "public PEM", "public DER", "TPM2B_PUBLIC", "certificate PEM", "certificate DER"],
)
def test_every_form_of_an_ek(column: str, value: str) -> None:
    [row] = read_ek_list(f'machine,{column}\ngpu-001,"{value}"\n', MACHINES)
    assert (row.line, row.machine, row.order.ek_sha256) == (2, "gpu-001", PIN)
    assert ("ek_certificate" in row.order.details) == (column == "ek_certificate")


def test_columns_in_any_order_blank_lines_and_what_windows_writes() -> None:
    text = f"\ufeffek_sha256 , machine\r\n\r\n{A},gpu-001\r\n,\r\n{B}, gpu-002 \r\n"
    found = [(row.line, row.machine, row.order.ek_sha256) for row in read_ek_list(text, MACHINES)]
    assert found == [(3, "gpu-001", A), (5, "gpu-002", B)]


def test_all_faults_at_once_each_with_the_line_where_its_row_begins() -> None:
    text = (
        "machine,ek_sha256,ek_public,state\n"
        f"gpu-001,{A},,\n"
        f'gpu-002,,"{PEM_KEY}",\n'
        f"gpu-01,{B},,\n"
        "gpu-003,xyz,,\n"
        "gpu-003,,,\n"
        f"gpu-003,{A},,\n"
        f"gpu-001,{B},,\n"
        f"gpu-003,{B},,pending\n"
        f"gpu-003,{B},{base64.b64encode(DER_KEY).decode()},\n"
        f",{B},,\n"
        f"gpu-003,{B},,,,\n"
        "gpu-003,,AAAA,\n"
    )
    after = 3 + PEM_KEY.count("\n") + 1
    assert faults(text) == [
        f"list:{after}: the inventory has no machine 'gpu-01'; did you mean 'gpu-001'?",
        f"list:{after + 1}: ek_sha256: not 64 hexadecimal digits",
        f"list:{after + 2}: no EK: one of ek_sha256, ek_public, ek_certificate must be filled in",
        f"list:{after + 3}: this EK is gpu-001's in line 2: an EK belongs to one machine",
        f"list:{after + 4}: gpu-001 is here twice, first in line 2",
        f"list:{after + 5}: its state is 'pending': only approved EKs are imported; leave the line out",
        f"list:{after + 6}: ek_sha256 and ek_public are of different EKs",
        f"list:{after + 7}: no machine is named",
        f"list:{after + 8}: more cells than columns",
        *[one for one in faults(text) if one.startswith(f"list:{after + 9}: ek_public: not a public key")],
    ]
    assert len(faults(text)) == 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "",
            f"list:1: is empty; {COLUMNS}",
        ),
        (
            "machine\ngpu-001\n",
            f"list:1: {COLUMNS}",
        ),
        (f"machine,ek_sha256\noff-001,{A}\n", "list:2: off-001 is disabled"),
        ("machine,ek_sha265\n", "list:1: unknown column 'ek_sha265'; did you mean 'ek_sha256'?"),
        ("machine,machine,ek_sha256\n", "list:1: column 'machine' is here twice"),
        ("machine,ek_sha256\n", "list:1: the list has no machine in it"),
        (f'machine,ek_sha256\ngpu-001,{A}\n"gpu-002,{B}\n', f"list:3: {QUOTE}"),
    ],
)
def test_what_is_no_such_list(text: str, words: str) -> None:
    assert faults(text) == [words]


def test_faults_before_the_end_of_csv_are_not_lost() -> None:
    assert faults(f'machine,ek_sha256\nnobody,{A}\n"gpu') == [
        "list:2: the inventory has no machine 'nobody'",
        f"list:3: {QUOTE}",
    ]


def test_a_list_has_an_end() -> None:
    text = "machine,ek_sha256\n" + f"gpu-001,{A}\n" * (MOST_ROWS + 1)
    assert faults(text)[-1] == f"list:{MOST_ROWS + 2}: more than 100000 rows: divide the list"


def test_what_is_exported_can_be_imported() -> None:
    text = write_ek_list([("gpu-001", A, "approved", "first-use", 3), ("gpu-002", B, "approved", "imported", 0)])
    assert text == (
        "machine,ek_sha256,state,source,generation\n"
        f"gpu-001,{A},approved,first-use,3\n"
        f"gpu-002,{B},approved,imported,0\n"
    )
    assert [(row.machine, row.order.ek_sha256) for row in read_ek_list(text, MACHINES)] == [
        ("gpu-001", A),
        ("gpu-002", B),
    ]
    assert faults(write_ek_list([("gpu-001", A, "pending", "first-use", 0)])) == [
        "list:2: its state is 'pending': only approved EKs are imported; leave the line out"
    ]


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet=st.sampled_from('machine,ek_sha256\n\r"\0 gpu-001abc;-B'), max_size=200))
def test_any_text_is_a_list_or_has_faults(text: str) -> None:
    for whole in (text, "machine,ek_sha256\n" + text, "machine,ek_public,ek_certificate\n" + text):
        try:
            assert read_ek_list(whole, MACHINES)
        except FaultsError as error:
            assert error.faults
