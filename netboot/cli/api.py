"""`netboot api`: the management API, for those who write programs against it."""

import json

import click


@click.group("api")
def group() -> None:
    """The management API, for programs."""


@group.command()
def openapi() -> None:
    """Print the document of the API (OpenAPI 3.1) of this version; a running service has its own at /v1/openapi.json.

    \b
      netboot api openapi > netboot.json
    """
    from netboot.web.app import api_document  # brings Flask

    click.echo(json.dumps(api_document(), indent=2))
