"""`netboot machine import`: machines of a list that is kept elsewhere are declared. Asks the running service."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import click

from images.values import files
from netboot.cli.client import ApiError, Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.given_files import GivenFile
from netboot.cli.inventory_yaml import Yaml, yaml_options
from netboot.cli.moves import count
from netboot.cli.ordering import may_say_why_option
from netboot.cli.output import printable, show
from netboot.client.errors import ClientError

if TYPE_CHECKING:
    from netboot.client.models import DeclaredMany, DeclaringMany
    from netboot.machines.imported import Listed

_FILE = GivenFile(files.LARGE)
REMEDY = "correct the list, and import it whole"


@click.command("import")
@click.option("--csv", "csv_", metavar="FILE", type=_FILE, help="A list in CSV ('-': stdin).")
@click.option("--redfish-json", "redfish", metavar="FILE", type=_FILE, help="Redfish's ComputerSystems.")
@click.option(
    "--netbox", metavar="FILE", type=_FILE, multiple=True, help="NetBox's devices, interfaces; several times."
)
@click.option("--profile", help="Of machines whose list says none.")
@click.option("--class", "class_name", help="Of machines whose list says none.")
@click.option("--rack", help="Of machines whose list says none.")
@click.option(
    "--name-from",
    type=click.Choice(["HostName", "AssetTag", "SerialNumber"]),
    default="HostName",
    show_default=True,
    help="Which property of Redfish is the name.",
)
@yaml_options
@may_say_why_option
@dry_run_option
@api_command
def import_(
    csv_: BinaryIO | None,
    redfish: BinaryIO | None,
    netbox: tuple[BinaryIO, ...],
    profile: str | None,
    class_name: str | None,
    rack: str | None,
    name_from: str,
    yaml: Yaml | None,
    reason: str,
    dry_run: bool,
    connection: Connection,
    output: str,
) -> None:
    """Declare the machines of a list: all of them, or none and every fault.

    Only where the service may write the inventory (`inventory_writable`). A machine that is declared already is a
    fault. For an inventory that is kept in git nothing is asked: --out writes the YAML into a file that is not there
    yet, whole or not at all, --print shows it, and `netboot config check` judges it there.

    \b
      netboot machine import --csv rack7.csv --profile default --dry-run
      netboot machine import --redfish-json systems.json --profile default --class hgx-h100
      netboot machine import --netbox devices.json --netbox interfaces.json --profile default
      netboot machine import --csv rack7.csv --profile default --out inventory/rack7.yaml
    """
    if sum(map(bool, (csv_, redfish, netbox))) != 1:
        raise click.UsageError("name one list: --csv, --redfish-json or --netbox")
    from netboot.machines.imported import MOST, left_out, wrong

    read = _read(csv_, redfish, netbox, name_from)
    said = {"profile": profile, "class": class_name, "rack": rack}
    left_out(read.items, {key: value for key, value in said.items() if value is not None})
    if yaml is not None:
        if (others := wrong(read.items)) or read.faults:
            _refuse(read, others)
        yaml.put([item.declared for item in read.items], output)
        return
    if len(read.items) > MOST:
        raise ApiError(f"{len(read.items)} machines are more than {MOST}, which go at once", "divide the list", 1)
    answer = _declare(connection.open(), read, reason, dry_run=dry_run)
    one = len(answer["machines"]) == 1
    so = "would be" if dry_run else "is" if one else "are"
    show(output, answer, (), (), f"{count(len(answer['machines']))} {so} declared in {answer['file']}")


def _read(csv_: BinaryIO | None, redfish: BinaryIO | None, netbox: Sequence[BinaryIO], name_from: str) -> "Listed":
    if csv_ is not None:
        from netboot.machines.from_csv import read_csv

        return read_csv(csv_.read(), _name(csv_))
    if redfish is not None:
        from netboot.machines.from_redfish import read_redfish

        return read_redfish(redfish.read(), _name(redfish), name_from)
    from netboot.machines.from_netbox import read_netbox

    return read_netbox([(_name(each), each.read()) for each in netbox])


def _name(file: BinaryIO) -> str:
    name = getattr(file, "name", None)  # a pipe need not have one
    return "".join(c if c.isprintable() else "?" for c in name)[-200:] if isinstance(name, str) else "stdin"


def _declare(client: Client, read: "Listed", reason: str, *, dry_run: bool) -> "DeclaredMany":
    """A list with faults is sent, too, if only to be judged: all faults are to be named at once."""
    body: DeclaringMany = {"machines": [{"place": item.at, "declared": item.declared} for item in read.items]}
    if not read.items:
        _refuse(read)
    try:
        answer = client.declared.import_({**body, "reason": reason, "dry_run": dry_run or bool(read.faults)})
    except ClientError as error:
        if error.problem is not None and error.problem.faults:
            whole = error.problem.detail.partition(" ")[0]  # "1234 faults; …", of which a problem has the first
            _refuse(read, error.problem.faults, int(whole) if whole.isdecimal() else 0)
        if read.faults:
            _refuse(read, [f"what else is wrong cannot be told: {error.message}"])
        raise
    if read.faults:
        _refuse(read)
    return answer


def _refuse(read: "Listed", others: Sequence[str] = (), found: int = 0) -> NoReturn:
    """With the faults of the list itself and the others, in the order of the list. `found`: how many others there are,
    where that may be more."""
    from netboot.machines.imported import in_order, unseen

    faults = in_order(read, others)
    count = len(faults) + unseen(read, others, found)
    words = f"{count} fault{'s' if count != 1 else ''}; nothing was imported"
    left = [f"and {count - len(faults)} more"] if count > len(faults) else []
    raise ApiError(printable("\n".join([*faults, *left, words])), REMEDY, 1)
