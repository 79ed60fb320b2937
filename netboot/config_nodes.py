"""Sections of `netboot.yaml` that machines are told in the site bundle: where their journals go, who may log in."""

from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from images.artifact.bundle import Principal
from images.values.strict import Strict
from netboot.addresses import Url
from netboot.authorities import read_authorities, read_ssh_authorities


def _some(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("must name at least one: without any nobody could log in")
    return value


class Journal(Strict):
    """A systemd-journal-remote that takes the journals of machines whose images have the feature `journal-upload`."""

    url: Url
    """`https://` over TLS, or `http://` for all to read on the way; its port is 19532 unless it says another."""
    authorities: Path | None = None
    """PEM, one or several: what machines believe it by; only, and always, with `https://`."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if urlsplit(self.url).path:
            raise ValueError("journal.url is a scheme, a host and if need be a port: the path is systemd's")
        if self.url.startswith("https:") != (self.authorities is not None):
            raise ValueError("an https:// url wants authorities, by which machines know it; an http:// one has none")
        return self


class Ssh(Strict):
    """Who may log in as root, where an image has the feature `ssh` and a profile names principals (`netboot.ssh=`)."""

    authorities: Path
    """Public keys as `ssh-keygen` writes them, one a line: whose certificates are believed."""
    principals: Annotated[tuple[Principal, ...], AfterValidator(_some), Field(max_length=16)]
    """Those among which profiles choose."""


def told(journal: Journal | None, ssh: Ssh | None) -> dict[str, Any]:
    """What of these is in a site bundle.

    Raises:
        images.values.strict.FaultsError: a file of authorities cannot be read.
    """
    fields: dict[str, Any] = {}
    if journal is not None:
        fields["journal_url"] = journal.url
        if journal.authorities is not None:
            fields["journal_authorities"] = read_authorities(journal.authorities, "journal.authorities")
    if ssh is not None:
        fields["ssh_authorities"] = read_ssh_authorities(ssh.authorities, "ssh.authorities")
        fields["ssh_principals"] = ssh.principals
    return fields
