"""Names for a shell that completes them: of the service that the command line means so far, or of the files here.

A shell waits while they are looked for, so that whatever is not known in time is not offered, and nothing is said of
what is in the way.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

SECONDS = 1.5
"""For all of it: who presses Tab does not wait longer."""
_MOST = 1000
_WHERE = ("config", "server", "token_file", "authority", "context")

Look = Callable[[dict[str, Any]], Iterable[tuple[str, str]]]
"""Names, each with a word of help or "", by what was typed so far."""
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completer(look: Look) -> Complete:
    """What a parameter offers."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: dict[str, str] = {}

        def gather() -> None:
            try:
                for name, help_ in look(context.params):
                    if name.startswith(incomplete):
                        found[name] = help_
                    if len(found) >= _MOST:
                        return
            except Exception:  # noqa: BLE001 - a shell shows it in the middle of what is typed
                return

        before = logging.root.manager.disable
        logging.disable()
        gathering = threading.Thread(target=gather, daemon=True)  # it ends with the process, wherever it waits
        gathering.start()
        gathering.join(SECONDS)
        logging.disable(before)
        return [CompletionItem(name, help=help_ or None) for name, help_ in sorted(found.copy().items())]

    return complete


def client(typed: dict[str, Any]) -> Any:
    """Of the service that is meant so far."""
    from netboot.cli.client import Connection

    return Connection(**{name: _path_of(name, typed.get(name)) for name in _WHERE}).open(SECONDS)


def _path_of(name: str, value: Any) -> Any:
    return Path(value) if value is not None and name in ("config", "token_file", "authority") else value


def _machines(typed: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for machine in client(typed).machines.each():
        yield machine["name"], machine["profile"]


def _channels(typed: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for channel in client(typed).channels.list()["channels"]:
        yield channel["name"], channel.get("image_name") or ""


def _boots(typed: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for boot in client(typed).boots.list(machine=typed.get("machine"), limit=200)["boots"]:
        yield boot["boot"], f"{boot['machine']} {boot['state']}"


def _tokens(typed: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for token in client(typed).join_tokens.list()["tokens"]:
        yield token["id"], token["machine"]


def _images(typed: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Names of recipes, for their newest images, and digests; of the store, where the command works on it."""
    if "server" not in typed:
        from images.store.store import Store
        from netboot.cli.paths import Paths

        store = Store(Paths(_path_of("config", typed.get("config")), typed.get("store")).store)
        images = [(image.digest, image.manifest.name) for image in store.images()]
    else:
        images = [(image["image"], image["name"]) for image in client(typed).images.list()["images"]]
    for digest, name in images:
        yield name, "its newest image"
        yield digest[:12], name


def _keys(typed: dict[str, Any]) -> Iterable[tuple[str, str]]:
    from images.artifact.keyring import KeyRing
    from netboot.cli.paths import Paths

    for info in KeyRing(Paths(_path_of("config", typed.get("config")), keys=typed.get("keys")).keys).infos():
        yield info.id, "trusted" if info.trusted else "retired"


machines, channels, boots = completer(_machines), completer(_channels), completer(_boots)
tokens, images, keys = completer(_tokens), completer(_images), completer(_keys)
