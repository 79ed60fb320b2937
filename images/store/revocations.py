"""Why images are revoked: `revocations.json` of the store. What is in force, the signed site bundle says.

The file is for people, and for whoever signs the next bundle; no machine is told what is in it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, RootModel, ValidationError

from images.errors import CorruptError
from images.store.store import Store
from images.values import files
from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import Sha256

FILE = "revocations.json"
LONGEST_REASON = 500


class Revocation(Strict):
    """Of one image. `at`: seconds since 1970."""

    reason: Annotated[str, Field(min_length=1, max_length=LONGEST_REASON)]
    at: Annotated[int, Field(ge=0)]


class _File(RootModel[dict[Sha256, Revocation]]):
    pass


def read(root: Path) -> dict[str, Revocation]:
    """Digest → why it is revoked, or is to be once a bundle is signed.

    Raises:
        CorruptError: with the remedy. StoreError: it cannot be read now.
    """
    path = root / FILE
    try:
        return _File.model_validate_json(files.bytes_of(path, files.LARGE)).root
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise files.refused(f"cannot read {path}", error) from error
    except ValidationError as error:
        raise CorruptError(
            f"{path} is damaged ({first_fault(error)}): put the backup's in its place; without it, the site bundle "
            "still names the images, and nothing says why"
        ) from None


def write(store: Store, changes: Mapping[str, Revocation | None]) -> None:
    """Write these down; None: take it out. What others write meanwhile stays.

    Raises:
        CorruptError, BusyError, StoreError.
    """
    with store.writing():
        before = read(store.root)
        after = {digest: said for digest, said in {**before, **changes}.items() if said is not None}
        if after != before:
            text = json.dumps({digest: said.model_dump() for digest, said in after.items()}, sort_keys=True, indent=1)
            files.write(store.root / FILE, text.encode() + b"\n", staging=store.root / "tmp")
