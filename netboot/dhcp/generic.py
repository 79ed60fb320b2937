"""A plan as a table of options, for whoever has another server."""

from netboot.dhcp.plan import FIRMWARE, Plan


def render(plan: Plan) -> str:
    """The whole text."""
    server = str(plan.tftp) if plan.tftp is not None else "(the TFTP server)"
    rows = [("client", "recognised by", "option 60", "option 66, next-server", "option 67, boot file")]
    rows.append(("iPXE, first of all", "option 175, or option 77 = iPXE", "-", "-", plan.script))
    for firmware in FIRMWARE:
        numbers = " or ".join(map(str, firmware.architectures))
        echo, where = ("HTTPClient", "-") if firmware.http else ("-", server)
        rows.append((firmware.words, f"option 93 = {numbers}", echo, where, plan.file(firmware)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)
