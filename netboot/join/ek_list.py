"""Lists of EKs as CSV: what a maker, a spreadsheet or `netboot machine enrolments --export csv` gives."""

import base64
import binascii
import csv
import difflib
import io
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from images.values.strict import Fault, FaultsError
from images.values.types import Sha256
from netboot.join.enrolment import Details, Import
from tokens.credential import spki_sha256
from tokens.ekcert import read_ek_certificate, read_public_key
from tokens.errors import TokenError
from tokens.wire import read_public

FORMS = ("ek_sha256", "ek_public", "ek_certificate")
COLUMNS = ("machine", *FORMS, "state", "source", "generation")
"""The last three are of our own export; only rows whose `state` is approved, or empty, are taken."""
MOST_ROWS = 100_000
_SHA256: TypeAdapter[str] = TypeAdapter(Sha256)


class Row(NamedTuple):
    """One machine of a list, and the line where it stands."""

    line: int
    machine: str
    order: Import


def read_ek_list(text: str, machines: Collection[str], file: str = "list") -> list[Row]:
    """The rows of a CSV text whose first line names its columns: `machine` and one or several of `FORMS`.

    Raises:
        FaultsError: with every fault, each with its line.
    """
    faults: list[Fault] = []
    rows: dict[str, Row] = {}
    whose: dict[str, str] = {}
    try:
        for line, cells in _cells(text, file):
            faults += _take(line, cells, machines, file, rows, whose)
    except FaultsError as error:
        faults += error.faults
    if faults:
        raise FaultsError(faults)
    if not rows:
        raise FaultsError([Fault(file, 1, "", "the list has no machine in it")])
    return list(rows.values())


def _take(
    line: int, cells: dict[str, str], machines: Collection[str], file: str, rows: dict[str, Row], whose: dict[str, str]
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


def _cells(text: str, file: str) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    begun = 1
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_names(names, file)
        begun = reader.line_num + 1
        for number, cells in enumerate(reader):
            if number >= MOST_ROWS:
                raise FaultsError([Fault(file, begun, "", f"more than {MOST_ROWS} rows: divide the list")])
            if any(cell.strip() for cell in cells):
                yield (
                    begun,
                    {name: cell.strip() for name, cell in zip(names, cells, strict=False)} | _more(cells, names),
                )
            begun = reader.line_num + 1
    except csv.Error as error:
        raise FaultsError([Fault(file, begun, "", f"not CSV: {error}")]) from None


def _more(cells: list[str], names: list[str]) -> dict[str, str]:
    return {"": "more cells than columns"} if len(cells) > len(names) else {}


def _check_names(names: list[str], file: str) -> None:
    columns = f"the first line names the columns: machine and one of {', '.join(FORMS)}"
    if not names:
        raise FaultsError([Fault(file, 1, "", f"is empty; {columns}")])
    faults = []
    for name in names:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else columns
            faults.append(Fault(file, 1, "", f"unknown column {name[:60]!r}; {hint}"))
    if not faults and ("machine" not in names or not set(names) & set(FORMS)):
        faults.append(Fault(file, 1, "", columns))
    if len(set(names)) != len(names):
        faults.append(Fault(file, 1, "", "a column is here twice"))
    if faults:
        raise FaultsError(faults)


def _machine(name: str, machines: Collection[str]) -> str:
    if not name:
        raise ValueError("no machine is named")
    if name not in machines:
        near = difflib.get_close_matches(name, list(machines), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"the inventory has no machine {name[:80]!r}{hint}")
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
