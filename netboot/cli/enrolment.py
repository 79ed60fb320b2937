"""`netboot machine enroll|approve|release|replace|retire|enrolments`: whose TPM is whose. Asks the running service."""

import sys
from typing import TYPE_CHECKING, Any

import click

from images.values import files
from netboot.cli import complete
from netboot.cli.client import NOT_ALLOWED, ApiError, Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.given_files import GivenFile
from netboot.cli.identity import row, shown
from netboot.cli.ordering import machine_act, may_say_why_option
from netboot.cli.outcomes import confirm
from netboot.cli.output import say, show
from netboot.cli.selection import Selection, selected, selection_options
from netboot.cli.times import moment, window_option

if TYPE_CHECKING:
    from netboot.client.models import Approval, EnrolmentActed, EnrolmentsWindow, EnrolmentView

SHORTEST_PREFIX = 8
"""Digits of an EK's hash that are taken for having looked at it."""


@click.command()
@click.argument("machine", required=False, shell_complete=complete.machines)
@window_option
@click.option("--csv", "csv_", metavar="FILE", type=GivenFile(files.LARGE), help="Enrol this list ('-': stdin).")
@may_say_why_option
@dry_run_option
@api_command
def enroll(
    machine: str | None,
    window_seconds: int,
    csv_: Any,
    reason: str,
    dry_run: bool,
    connection: Connection,
    output: str,
) -> None:
    """Enrol the TPM of MACHINE on first use, or those of a list.

    Without --csv a window opens: the first TPM that proves itself in it as MACHINE becomes `pending` and gets no token
    before `netboot machine approve`. A window is for one TPM; it ends by itself. A machine that is disabled, or joins
    no cluster of this service, is refused.

    \b
    With --csv the list is believed as it is, all of it or nothing, with every fault named at once. It may have machines
    that are disabled, which join when they are enabled. Its first line names its columns:
      machine          name in the inventory
      and one of
      ek_sha256        hexadecimal SHA-256 of the DER SubjectPublicKeyInfo of its endorsement key
      ek_public        that key: PEM, or base64 of DER or of a TPM2B_PUBLIC (tpm2_createek -u)
      ek_certificate   its certificate: PEM, or base64 of DER

    \b
    Example:
      netboot machine enroll gpu-001 --window 2h --reason "new board"
      printf 'machine,ek_sha256\\ngpu-001,%s\\n' "$HASH" | netboot machine enroll --csv -
    """
    if (machine is None) == (csv_ is None):
        raise click.UsageError("name a machine, or give a list with --csv")
    client = connection.open()
    if csv_ is not None:
        _enroll_list(client, csv_, reason, output, dry_run=dry_run)
        return
    body: EnrolmentsWindow = {"window_seconds": window_seconds, "reason": reason, "dry_run": dry_run}
    answer = client.enrolments.enroll(machine or "", body)
    until = moment(answer["enrolment"]["window_until"])
    may = f"{machine} {'could' if dry_run else 'may'} enrol its TPM until {until}"
    then = "; nothing was changed" if dry_run else f": boot it, then run `netboot machine approve {machine}`"
    show(output, answer, (), (), may + then)


def _enroll_list(client: Client, csv_: Any, reason: str, output: str, *, dry_run: bool) -> None:
    file = getattr(csv_, "name", "stdin")  # a pipe need not have one
    try:
        text = csv_.read().decode()
    except UnicodeDecodeError:
        raise click.ClickException(f"{file} is not UTF-8 text: write it as that") from None
    answer = client.enrolments.import_(text, reason=reason or None, file=file, dry_run="true" if dry_run else None)
    changed, would = len(answer["enrolled"]), "would enrol" if answer["dry_run"] else "enrolled"
    show(output, answer, (), (), f"{would} {changed} machines; {answer['machines'] - changed} were already")


@click.command()
@click.argument("machine", shell_complete=complete.machines)
@click.option("--ek", metavar="PREFIX", help=f"Do not ask: it must begin so ({SHORTEST_PREFIX} digits or more).")
@may_say_why_option
@dry_run_option
@api_command
def approve(
    machine: str,
    ek: str | None,
    reason: str,
    dry_run: bool,
    connection: Connection,
    output: str,
) -> None:
    """Let the TPM that MACHINE showed in its window join; or bring a retired machine back, as it was before.

    It shows the hash of the endorsement key, what the certificate says, and the identifiers that came with them, beside
    those of the inventory. Compare the hash with the machine's own (`tpm2_createek`, the BMC, the delivery note).
    Refused when anything changed since it was shown.

    \b
    Example:
      netboot machine approve gpu-001
      netboot machine approve gpu-001 --ek 5f2c41d0        for scripts
    """
    if ek is not None and not (len(ek) >= SHORTEST_PREFIX and set(ek.lower()) <= set("0123456789abcdef")):
        raise click.UsageError(f"--ek: give {SHORTEST_PREFIX} hexadecimal digits or more")
    client = connection.open()
    known = client.enrolments.get(machine)
    seen = known["enrolment"]
    if ek is None:
        for name, text in shown(known):
            say(f"{name:<18} {text}", err=output == "json")
        if seen["state"] in _QUESTIONS and not dry_run:
            confirm(_QUESTIONS[seen["state"]], "answer at a terminal, or give --ek", err=output == "json")
    elif not (seen["ek_sha256"] or "").startswith(ek.lower()):
        if seen["ek_sha256"] is None:
            remedy = f"`netboot machine enroll {machine}` opens a window; boot it in that, then approve"
            raise ApiError(f"{machine} has shown no TPM", remedy, NOT_ALLOWED)
        raise ApiError(
            f"the TPM that {machine} showed is {seen['ek_sha256']}, not {ek}",
            "look with `netboot machine show`; `netboot machine replace --part tpm` refuses a wrong one",
            NOT_ALLOWED,
        )
    body: Approval = {"ek_sha256": seen["ek_sha256"], "revision": seen["revision"], "reason": reason}
    answer = client.enrolments.approve(machine, {**body, "dry_run": dry_run})
    show(output, answer, (), (), _approved(answer["enrolment"], dry_run=answer["dry_run"]))


_QUESTIONS = {"pending": "Let it join?", "retired": "Bring it back as it was before?"}


def _approved(enrolment: "EnrolmentView", *, dry_run: bool) -> str:
    machine, ek = enrolment["machine"], enrolment["ek_sha256"]
    if enrolment["state"] == "approved":
        return f"{machine} {'could' if dry_run else 'may'} join with EK {ek}"
    waits = f"EK {ek} still waits for approval" if enrolment["state"] == "pending" else "no TPM is on record"
    return f"{machine} {'would be' if dry_run else 'is'} in service again, as it was before: {waits}"


def _released(answer: "EnrolmentActed") -> str:
    enrolment = answer["enrolment"]
    so = "would be" if answer["dry_run"] else "is"
    return f"{enrolment['machine']} {so} released (generation {enrolment['generation']})"


@machine_act(lambda client: client.enrolments.release, _released, why=may_say_why_option)
def release() -> None:
    """Forget which key holds the credential of this boot of MACHINE, so that another one may.

    For a TPM that was cleared, or a machine that lost its key: it says on its console that it waits for this.

    \b
      netboot machine release gpu-001
    """


def _replaced(answer: "EnrolmentActed") -> str:
    refused, may = ("would be", "could") if answer["dry_run"] else ("is", "may")
    if answer["no_window"]:
        return f"the old TPM {refused} refused; no window: {answer['no_window']}"
    machine, until = answer["enrolment"]["machine"], moment(answer["enrolment"]["window_until"])
    return f"the old TPM {refused} refused; {machine} {may} enrol another until {until}"


@machine_act(
    lambda client: client.enrolments.replace,
    _replaced,
    click.option("--part", type=click.Choice(["tpm"]), required=True, help="What was replaced."),
    window_option,
    why=may_say_why_option,
)
def replace() -> None:
    """The TPM of MACHINE has left it (with its board, say): refuse that one for ever, and open a window for the next.

    Also for a pending TPM that is not the right one. The history is kept. No window opens for a machine that is
    disabled, joins no cluster or is not in the inventory; it is said why.

    \b
    Example:  netboot machine replace gpu-001 --part tpm --reason "board RMA 4711"
    """


def _retired(answer: "EnrolmentActed") -> str:
    so = "is retired already" if not answer["did"] else "would be retired" if answer["dry_run"] else "is retired"
    return f"{answer['enrolment']['machine']} {so}: no new tokens, no renewals"


@machine_act(lambda client: client.enrolments.retire, _retired, why=may_say_why_option)
def retire() -> None:
    """Take MACHINE out of service: no new tokens, and its certificate is not renewed.

    A certificate that it has stays valid until it ends (a day at most). `netboot machine approve` brings it back.

    \b
      netboot machine retire gpu-001
    """


@click.command()
@click.option("--export", type=click.Choice(["csv"]), help="As `enroll --csv` reads it.")
@click.option("--state", type=click.Choice(["pending", "approved", "retired"]), help="Only these.")
@selection_options
@api_command
def enrolments(
    export: str | None,
    state: str | None,
    selection: Selection,
    connection: Connection,
    output: str,
) -> None:
    """List whose TPM is whose, and what waits for approval.

    \b
    Example:
      netboot machine enrolments --state pending
      netboot machine enrolments --state approved --export csv > eks.csv
    """
    listed = connection.open().enrolments.list(**selection.asked)
    chosen = [enrolment for enrolment in listed["enrolments"] if state in (None, enrolment["state"])]
    if export is not None:
        from netboot.join.ek_list import write_ek_list

        rows = (
            (each["machine"], each["ek_sha256"], each["state"], each["source"], each["generation"])
            for each in chosen
            if each["ek_sha256"]
        )
        sys.stdout.write(write_ek_list(rows))
        return
    columns = ("machine", "state", "since", "EK", "source", "window", "conflict")
    show(
        output, {"enrolments": chosen}, columns, [row(output, each) for each in chosen], "none", names=selected(chosen)
    )


COMMANDS = (enroll, approve, release, replace, retire, enrolments)
