"""The query of a machine that is in a boot: which machine it says it is."""

from urllib.parse import parse_qs

from netboot.machines.identity import parse_mac


def machine_and_mac(query: str) -> tuple[str, str]:
    """`machine` and `mac` of a query as it came; "" for what is not there once, or is no MAC."""
    try:
        fields = parse_qs(query, max_num_fields=8)
    except ValueError:
        return "", ""
    machine, mac = (found[0] if len(found := fields.get(name, [])) == 1 else "" for name in ("machine", "mac"))
    try:
        return machine, parse_mac(mac)
    except ValueError:
        return machine, ""
