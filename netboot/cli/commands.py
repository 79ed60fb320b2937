"""`netboot`: all commands. They are loaded when they are called, so that `--help` and completion stay quick."""

import importlib

import click

from netboot.cli.dry_run import explicit

COMMANDS = {
    "init": "netboot.cli.init:command",
    "config": "netboot.cli.config:group",
    "key": "netboot.cli.key:group",
    "image": "netboot.cli.image:group",
    "channel": "netboot.cli.channel:group",
    "rollout": "netboot.cli.rollout:group",
    "drift": "netboot.cli.drift:command",
    "dhcp": "netboot.cli.dhcp:group",
    "machine": "netboot.cli.machine:group",
    "inventory": "netboot.cli.inventory:group",
    "node": "netboot.cli.node:group",
    "fabric": "netboot.cli.fabric:group",
    "token": "netboot.cli.token:group",
    "context": "netboot.cli.context:group",
    "login": "netboot.cli.login:login",
    "logout": "netboot.cli.login:logout",
    "whoami": "netboot.cli.login:whoami",
    "access": "netboot.cli.access:group",
    "audit": "netboot.cli.audits:command",
    "boot": "netboot.cli.boot:group",
    "freeze": "netboot.cli.freeze:freeze",
    "unfreeze": "netboot.cli.freeze:unfreeze",
    "remedies": "netboot.cli.remedies:group",
    "explain": "netboot.cli.explain:command",
    "api": "netboot.cli.api:group",
    "cluster": "netboot.cli.cluster:group",
    "doctor": "netboot.cli.doctor:command",
    "migrate": "netboot.cli.migrate:command",
    "export": "netboot.cli.export:command",
    "serve": "netboot.cli.serve:command",
    "backup": "netboot.cli.backup:backup",
    "restore": "netboot.cli.backup:restore",
    "docs": "netboot.cli.pages:command",
    "completion": "netboot.cli.completion:command",
    "process": "netboot.cli.serve:process",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, with the option whose value may be left out."""
        return super().parse_args(ctx, explicit(args))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """In the order in which a new operator needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command, or None for a name that there is not."""
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="netboot", message="netboot %(version)s")
def cli() -> None:
    """Bring disk-less machines into a cluster: build images, serve them, follow every boot.

    \b
    A first site, from nothing:
      netboot init site --hardware server                  a working site in ./site
      cd site
      netboot image build ubuntu-24.04-gpu                 build and sign an image into the store, for servers
      netboot serve                                        start the service
      netboot channel set stable ubuntu-24.04-gpu          machines of this channel boot this image
      netboot boot watch                                   and follow them

    \b
    Which image: the one above is for servers with NVIDIA's GPUs; for other servers there is ubuntu-24.04-cpu, and of
    Debian debian-12-gpu and debian-12-cpu. On a laptop, for virtual machines alone, the small one is quickest:
      netboot init site --hardware vm
      cd site
      netboot image build debian-12-minimal

    Pages that messages name, like docs/store.md, are installed with the command: `netboot docs PAGE` prints one.
    """
