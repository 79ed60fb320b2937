"""Changing `management.tokens`, the file of who may use the management API; each change is in the service's audit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from netboot.cli.file_acts import Stood, record, recorded
from netboot.cli.outcomes import ApiError, cannot
from netboot.config import Config
from netboot.config_management import Management
from netboot.stores import access_tokens
from netboot.stores.access_tokens import AccessToken, AccessTokens


def change(
    config: Config, act: str, name: str, made: Callable[[tuple[AccessToken, ...]], tuple[AccessToken, ...]]
) -> None:
    """The same of its tokens alone."""
    edit(config, act, name, lambda there: there.model_copy(update={"tokens": made(there.tokens)}))


def in_place_of(tokens: tuple[AccessToken, ...], made: AccessToken, path: Path) -> tuple[AccessToken, ...]:
    """These with that one, in the place of what had its name. Raises ApiError: the file takes no more."""
    kept = tuple(each for each in tokens if each.name != made.name)
    if len(kept) >= access_tokens.MOST:
        raise ApiError(f"{path} holds {access_tokens.MOST} tokens, and takes no more", "revoke some", 1)
    return (*kept, made)


def edit(config: Config, act: str, name: str, made: Callable[[AccessTokens], AccessTokens]) -> None:
    """Change the file, and record the act of that name in the audit, where a service has made one."""
    management = config.management
    there_is(management)  # one that is lost is not begun anew by the way

    def write(before: Stood, after: Stood, result: str) -> None:
        record(config.data, act, {"name": name}, before=_shown(before), after=_shown(after), result=result)

    with recorded(lambda: _of(access_tokens.read(management.tokens), name), write):
        try:
            access_tokens.change(management.tokens, made)
        except OSError as error:
            raise cannot(f"cannot write {management.tokens}", error) from None


def _of(there: AccessTokens, name: str) -> dict[str, Any] | None:
    """What the file has of that name."""
    found = [each.model_dump(mode="json") for each in (*there.tokens, *there.blocked)]
    return next((each for each in found if each["name"] == name), None)


def _shown(stood: Stood) -> Stood:
    """The same without what opens anything."""
    return None if stood is None else {name: each for name, each in stood.items() if name != "sha256"}


def there_is(management: Management) -> AccessTokens:
    """The file. Raises NoTokensError: it cannot be used, or is gone where an issuer or a cluster names people."""
    there = access_tokens.read(management.tokens)
    if there is access_tokens.ABSENT and management.others:
        raise access_tokens.absent(management.tokens)
    return there
