"""The services that a person works with, by name, and which of them is in use: `~/.config/netboot/contexts.json`, 0600.

As kubectl's contexts, with a file of its own for each person: where the site's configuration is not at hand, it says
where the service is, with which token and by which authority.
"""

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Annotated, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from images.errors import StoreError
from images.values import files
from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import Name
from netboot.addresses import Url
from netboot.client.errors import CannotTellError, FailedError, UnknownError

MODE = 0o600
WAITED_SECONDS = 20.0
"""For another command: it may ask an issuer two things, and each has an end."""
_LONGER = 32 * 1024
"""By how much tokens may be longer than those before, in bytes."""


class Login(Strict):
    """What `netboot login` got from an issuer. Tokens are secrets: they are in this file, and shown nowhere."""

    issuer: str
    client_id: str
    certificate_authority: Path | None = None
    """PEM that vouches for the issuer's certificate; None: those that the system trusts."""
    audience: str | None = None
    token: str = Field(repr=False)
    expires_ms: int
    refresh_token: str = Field(default="", repr=False)


class Context(Strict):
    """One service. Paths are absolute."""

    name: Name
    server: Url
    token_file: Path | None = None
    certificate_authority: Path | None = None
    """PEM, by which its certificate is believed; None: by what the system trusts."""
    proxy: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/@]+$")] | None = None
    """By way of which it is asked, in TLS all the way."""
    login: Login | None = None
    """It goes before `token_file`."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.proxy is not None and not self.server.startswith("https://"):
            raise ValueError("a proxy would read the token: give a server that is https://, or leave the proxy out")
        return self


class Contexts(Strict):
    """All of them; `current`: which is in use."""

    current: Name | None = None
    contexts: tuple[Context, ...] = ()

    def named(self, name: str) -> Context | None:
        """The context of that name."""
        return next((each for each in self.contexts if each.name == name), None)


_YOURS = "see that the file and its folder are yours, and that there is room"


class ContextsError(FailedError):
    """The file cannot be used; the words say why, and what to do."""


def file() -> Path:
    """Where they are kept, by the XDG Base Directory Specification."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(home) if Path(home).is_absolute() else Path.home() / ".config"
    return folder / "netboot" / "contexts.json"


def read() -> Contexts:
    """What is kept; nothing where there is no file.

    Raises:
        ContextsError: it cannot be read, is not what this program writes, or has tokens and others can read it.
    """
    path = file()
    try:
        with files.opened(path) as opened:
            there = Contexts.model_validate_json(files.whole(opened, files.SMALL, path))
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ContextsError(f"{path} cannot be read: {error.strerror}", _YOURS) from None
    except ValidationError as error:
        fault = first_fault(error)
        where = f"{fault.key}: " if fault.key else ""
        message = f"{path} cannot be used: {where}{fault.message}; correct it, or remove it and add contexts anew"
        raise ContextsError(message) from None
    if mode & 0o077 and any(each.login is not None for each in there.contexts):
        raise ContextsError(f"others can read the tokens in {path} (mode {mode:04o}): `chmod 600 {path}`")
    return there


def change(edit: Callable[[Contexts], Contexts]) -> Contexts:
    """Replace what is kept by what `edit` makes of it, one writer at a time: tokens that are renewed work once. What is
    kept then.

    Raises:
        ContextsError: as `read`, or it cannot be written. CannotTellError: another is at it for long. What `edit`
        raises; nothing is changed then.
    """
    path = file()
    with _alone(path.parent):
        there = read()
        contexts = edit(there)
        if contexts != there:
            text = json.dumps(contexts.model_dump(mode="json", exclude_none=True), indent=2)
            _write(path, text.encode() + b"\n")
        return contexts


def require_room() -> None:
    """Try, for `edit`, whether a file of that size, and tokens that are longer, can be written: an issuer may give the
    next token once.

    Raises:
        ContextsError: it cannot.
    """
    path = file()
    trial = path.with_name(f".{path.name}.trial")
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    try:
        _write(trial, bytes(size + _LONGER))
    finally:
        trial.unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    try:
        files.write(path, data, mode=MODE)
    except StoreError as error:
        raise ContextsError(str(error), _YOURS) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Raises ContextsError: there can be no such folder. CannotTellError: another holds it, and does not end."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ContextsError(f"cannot write {file()}: {error.strerror}", _YOURS) from None
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    until = monotonic() + WAITED_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() >= until:
                remedy = f"`fuser {folder}` names it: let it go on, or end it"
                raise CannotTellError(f"another netboot is at {file()}, and does not end", remedy) from None
            sleep(0.05)
        else:
            return


def with_login(contexts: Contexts, name: str, login: Login | None) -> Contexts:
    """The same, where the context of that name, which may be gone, has this login."""
    changed = (each.model_copy(update={"login": login}) if each.name == name else each for each in contexts.contexts)
    return contexts.model_copy(update={"contexts": tuple(changed)})


def known(there: Contexts, name: str) -> Context:
    """The context of that name.

    Raises:
        UnknownError: there is none.
    """
    context = there.named(name)
    if context is None:
        raise UnknownError(f"no context has the name {name}", "see `netboot context list`")
    return context
