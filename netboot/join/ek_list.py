"""Lists of EKs as CSV: what a maker, a spreadsheet or `netboot machine enrolments --export csv` gives."""

import base64
import binascii
import csv
import difflib
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from images.values import table
from images.values.strict import Fault, FaultsError
from images.values.types import Sha256
from netboot.join.enrolment import Details, Import
from tokens.credential import spki_sha256
from tokens.ekcert import read_ek_certificate, read_public_key
from tokens.errors import TokenError
from tokens.wire import read_public

FORMS = ("ek_sha256", "ek_public", "ek_certificate")
COLUMNS = table.Columns(
    ("machine", *FORMS, "state", "source", "generation"),
    f"machine and one of {', '.join(FORMS)}",
    lambda names: "machine" in names and bool(names & set(FORMS)),
)
"""The last three are of our own export; only rows whose `state` is approved, or empty, are taken."""
_SHA256: TypeAdapter[str] = TypeAdapter(Sha256)


class Row(NamedTuple):
    """One machine of a list, and the line where it stands."""

    line: int
    machine: str
    order: Import


def read_ek_list(text: str, machines: Mapping[str, str], file: str = "list") -> list[Row]:
    """The rows of a CSV text whose first line names its columns: `machine` and one or several of `FORMS`.

    `machines`: those of the inventory, each with why it may not be in a list; "": it may.

    Raises:
        FaultsError: with every fault, each with its line.
    """
    faults: list[Fault] = []
    rows: dict[str, Row] = {}
    whose: dict[str, str] = {}
    try:
        for line, cells in table.rows(text, file, COLUMNS):
            faults += _take(line, cells, machines, file, rows, whose)
    except FaultsError as error:
        faults += error.faults
    if faults:
        raise FaultsError(faults)
    if not rows:
        raise FaultsError([Fault(file, 1, "", "the list has no machine in it")])
    return list(rows.values())


def _take(
    line: int,
    cells: dict[str, str],
    machines: Mapping[str, str],
    file: str,
    rows: dict[str, Row],
    whose: dict[str, str],
) -> Iterator[Fault]:
    try:
        row = Row(line, _machine(cells.get("machine", ""), machines), _order(cells))
    except ValueError as error:
        yield Fault(file, line, "", str(error))
        return
    other, owner = rows.setdefault(row.machine, row), whose.setdefault(row.order.ek_sha256, row.machine)
    if other is not row:
        yield Fault(file, line, "", f"{row.machine} is here twice, first in line {other.line}")
    elif owner != row.machine:
        yield Fault(file, line, "", f"this EK is {owner}'s in line {rows[owner].line}: an EK belongs to one machine")


def write_ek_list(rows: Iterable[tuple[str, str, str, str, int]]) -> str:
    """CSV of (machine, EK, state, source, generation)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("machine", "ek_sha256", "state", "source", "generation"))
    writer.writerows(rows)
    return out.getvalue()


def _machine(name: str, machines: Mapping[str, str]) -> str:
    if not name:
        raise ValueError("no machine is named")
    if name not in machines:
        near = difflib.get_close_matches(name, list(machines), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"the inventory has no machine {name[:80]!r}{hint}")
    if machines[name]:
        raise ValueError(machines[name])
    return name


def _order(cells: dict[str, str]) -> Import:
    if "" in cells:
        raise ValueError(cells[""])
    state = cells.get("state", "")
    if state not in ("", "approved"):
        raise ValueError(f"its state is {state[:40]!r}: only approved EKs are imported; leave the line out")
    forms = {form: cells[form] for form in FORMS if cells.get(form)}
    if not forms:
        raise ValueError(f"no EK: one of {', '.join(FORMS)} must be filled in")
    pins = {form: _pin(form, value) for form, value in forms.items()}
    if len(set(pins.values())) > 1:
        raise ValueError(f"{' and '.join(pins)} are of different EKs")
    details = ""
    if "ek_certificate" in forms:
        der = read_ek_certificate(forms["ek_certificate"].encode()).der
        details = Details(ek_certificate=base64.b64encode(der).decode()).model_dump_json(exclude_defaults=True)
    return Import(next(iter(pins.values())), details)


def _pin(form: str, value: str) -> str:
    try:
        if form == "ek_sha256":
            return _SHA256.validate_python(value.lower().replace(":", ""))
        if form == "ek_certificate":
            return read_ek_certificate(value.encode()).ek_sha256
        return _public(value)
    except ValidationError:
        raise ValueError("ek_sha256: not 64 hexadecimal digits") from None
    except TokenError as error:
        raise ValueError(f"{form}: {error}") from None


def _public(value: str) -> str:
    """PEM or base64 of DER (SubjectPublicKeyInfo), or base64 of a TPM2B_PUBLIC as tpm2-tools write it."""
    try:
        return read_public_key(value.encode())
    except TokenError as error:
        try:
            return spki_sha256(read_public(base64.b64decode(value, validate=True)))
        except (TokenError, binascii.Error, ValueError):
            raise error from None
