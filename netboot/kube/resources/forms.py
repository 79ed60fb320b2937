"""What validators of the inventory's models take, as schemas: a row for each function that a model calls.

A validator without a row makes no definition: `netboot.kube.resources.schema` refuses it by name. What a row leaves
out, which only the service sees, is in docs/custom-resources.md, and `tests/unit/test_custom_resources.py` has it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from images.values.kernel_arguments import PREFIX, RESERVED
from netboot.kube.resources.cel import Schema, listed, literal, rule, with_rules
from netboot.machines.deadlines import DEFAULTS
from netboot.machines.identity import PLACEHOLDERS
from netboot.machines.remedies import SHORTEST_WAIT
from netboot.machines.values import HELD, OURS, UNATTESTED, UNCHECKED


class Bounds(NamedTuple):
    """Of a number, as its field has them; None: there is none."""

    least: int | None = None
    most: int | None = None


Form = Callable[[Schema, Bounds], Schema]
"""What is known of a value, and what its validator takes."""
INT_OR_STRING = "x-kubernetes-int-or-string"
_DURATION = "^[0-9]{1,6}[smh]$"
_DURATION_OR_NONE = "^(none|[0-9]{1,6}[smh])$"


def _mac(schema: Schema, _bounds: Bounds) -> Schema:
    """Twelve digits with `:`, `.` or `-` anywhere, of one card: the second is even, for odd ones are groups'."""
    digits, rest = "^[:.-]*[0-9A-Fa-f][:.-]*[02468aceACE]", "[:.-]*([0-9A-Fa-f][:.-]*){10}$"
    return with_rules(
        {**schema, "minLength": 12, "maxLength": 23, "pattern": digits + rest},
        rule(f"!self.matches({literal('^[0:.-]*$')})", "not the address of one network card"),
    )


def _uuid(schema: Schema, _bounds: Bounds) -> Schema:
    same = "|".join(f"[{digit}{digit.upper()}]+" if digit.isalpha() else f"{digit}+" for digit in "0123456789abcdef")
    shared = listed(text for text in sorted(PLACEHOLDERS) if len(text) == 32)
    digits = "self.replace('-', '').lowerAscii()"
    form = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
    return with_rules(
        {**schema, "minLength": 36, "maxLength": 36, "pattern": form},
        rule(f"!({digits} in {shared}) && !{digits}.matches({literal(f'^({same})$')})", _SHARED),
    )


def _serial(schema: Schema, _bounds: Bounds) -> Schema:
    same = "|".join(f"[{one}{one.upper()}. :-]+" if one.isalpha() else f"[{one}. :-]+" for one in _ALNUM)
    folded = "self.lowerAscii().trim()"
    return with_rules(
        {**schema, "minLength": 1, "maxLength": 63, "pattern": "^[A-Za-z0-9][A-Za-z0-9 ._/+-]{0,62}$"},
        rule(f"!({folded} in {listed(sorted(PLACEHOLDERS))}) && !self.matches({literal(f'^({same})$')})", _SHARED),
    )


_SHARED = "a placeholder, which many machines share"
_ALNUM = "0123456789abcdefghijklmnopqrstuvwxyz"


def _address(schema: Schema, _bounds: Bounds) -> Schema:
    return with_rules({**schema, "minLength": 2, "maxLength": 45}, rule("isIP(self)", "must be an IP address"))


def _machine_url(schema: Schema, _bounds: Bounds) -> Schema:
    form = r"^http://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
    return {**schema, "minLength": 8, "maxLength": 300, "pattern": form}


def _argument(schema: Schema, _bounds: Bounds) -> Schema:
    free = "|".join(name.replace(".", r"\.") for name, reserved in RESERVED.items() if reserved.by_profile)
    kept = "|".join(name.replace(".", r"\.") for name, reserved in RESERVED.items() if not reserved.by_profile)
    allowed = f"!self.startsWith({literal(PREFIX)}) || self.matches({literal(f'^({free})(=|$)')})"
    return with_rules(
        schema,
        rule(
            f"!self.matches({literal(f'^({kept})(=|$)')}) && ({allowed})",
            "the service sets it for every boot, or nobody reads it: docs/inventory.md says what a profile may set",
        ),
    )


def _policy(schema: Schema, _bounds: Bounds) -> Schema:
    """`none` is `{none: []}`, for one key has one type; that nothing is said is left out, and no empty map."""
    alone = "!('none' in self) || (self.size() == 1 && self['none'].size() == 0)"
    index = literal("^([0-9]|1[0-9]|2[0-3]|none)$")
    return with_rules(
        {**{name: value for name, value in schema.items() if name != "x-kubernetes-validations"}, "minProperties": 1},
        rule(f"self.all(key, key.matches({index}))", "keys are PCRs, 0 to 23, or none"),
        rule(alone, "{none: []}, which takes whatever was measured, stands alone and is empty"),
    )


def _span(form: str) -> Form:
    """Seconds, or a text like `15m`."""

    def of(_schema: Schema, bounds: Bounds) -> Schema:
        least, most = bounds.least or 0, bounds.most or 0
        held = f"duration(self) >= duration('{least}s') && duration(self) <= duration('{most}s')"
        return with_rules(
            {INT_OR_STRING: True, "pattern": form, "maxLength": 7, "minimum": least, "maximum": most},
            rule(f"type(self) != string || self == 'none' || ({held})", f"from {least} to {most} seconds"),
        )

    return of


def _long_enough(schema: Schema, bounds: Bounds) -> Schema:
    return _span(_DURATION)(schema, bounds._replace(least=SHORTEST_WAIT))


def _share(_schema: Schema, _bounds: Bounds) -> Schema:
    form = "^(0*([1-9][0-9]?|100)%|0*[1-9][0-9]*)$"
    return {INT_OR_STRING: True, "pattern": form, "maxLength": 6, "minimum": 1, "maximum": 999_999}


def _boots(_schema: Schema, bounds: Bounds) -> Schema:
    return {INT_OR_STRING: True, "pattern": "^none$", "maxLength": 4, "minimum": 1, "maximum": bounds.most}


def _once(schema: Schema, _bounds: Bounds) -> Schema:
    return {**schema, "x-kubernetes-list-type": "set"}


def _quarantine_last(schema: Schema, _bounds: Bounds) -> Schema:
    last = "self.size() < 2 || self.indexOf('quarantine') in [-1, self.size() - 1]"
    return with_rules(schema, rule(last, "quarantine is the last: a machine in quarantine is left alone"))


def _printable(schema: Schema, _bounds: Bounds) -> Schema:
    return {**schema, "pattern": r"^ *[^\pC\pZ]([^\pC\pZ]| )*$"}


def _shown(schema: Schema, _bounds: Bounds) -> Schema:
    return {**schema, "pattern": r"^([^\pC\pZ]| )*$"}


def _moment_with_zone(schema: Schema, _bounds: Bounds) -> Schema:
    """In a year that calendars have, and at most a day from UTC: of these `date-time` of an API server says nothing."""
    year, zone = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])", "([01][0-9]|2[0-3]):[0-5][0-9]"
    form = rf"^{year}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,9}})?(Z|[+-]{zone})$"
    return {**schema, "format": "date-time", "pattern": form}


FORMS: Mapping[str, Form] = {
    "images.values.kernel_arguments._of_profile": _argument,
    "netboot.addresses.parse_machine_url": _machine_url,
    "netboot.clock._is_moment": _moment_with_zone,
    "netboot.lifecycle.holds.one_line": _printable,
    "netboot.lifecycle.order_objects.printable": _shown,
    "netboot.machines.boot_limit._none": _boots,
    "netboot.machines.classes._seconds": _span(_DURATION),
    "netboot.machines.deadlines._seconds": _span(_DURATION_OR_NONE),
    "netboot.machines.identity.parse_mac": _mac,
    "netboot.machines.identity.parse_serial": _serial,
    "netboot.machines.identity.parse_uuid": _uuid,
    "netboot.machines.maintenance._once": _once,
    "netboot.machines.remedies._long_enough": _long_enough,
    "netboot.machines.remedies._quarantine_last": _quarantine_last,
    "netboot.machines.strategy._seconds": _span(_DURATION),
    "netboot.machines.strategy._share": _share,
    "netboot.machines.values._ip_address": _address,
    "netboot.machines.values._policy": _policy,
}
"""By the function's module and name."""


def _by_type(schema: Schema, _bounds: Bounds) -> Schema:
    return {**schema, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


def _by_kind(schema: Schema, _bounds: Bounds) -> Schema:
    return {**schema, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["kind"]}


def _moment(schema: Schema, _bounds: Bounds) -> Schema:
    return {**schema, "format": "date-time"}


def _names(names: Mapping[str, object]) -> Form:
    def of(schema: Schema, _bounds: Bounds) -> Schema:
        known = rule(f"self.all(key, key in {listed(names)})", f"there are {', '.join(names)}")
        return with_rules({**schema, "maxProperties": len(names)}, known)

    return of


def _for_ever(schema: Schema, _bounds: Bounds) -> Schema:
    return with_rules(schema, rule("self == oldSelf", "stays as it is: make another object"))


def _never_null(schema: Schema, _bounds: Bounds) -> Schema:
    """Null is nothing there, for rules too: an API server takes it out."""
    return {key: value for key, value in schema.items() if key != "nullable"}


def _labels(schema: Schema, _bounds: Bounds) -> Schema:
    said = f"labels under {OURS} are netboot's own to give"
    return with_rules(schema, rule(f"self.all(key, !key.startsWith({literal(OURS)}))", said))


def _taints(schema: Schema, _bounds: Bounds) -> Schema:
    ours = "|".join((f"{UNCHECKED}:NoExecute", f"{UNATTESTED}(=[^:]*)?:(NoSchedule|NoExecute)", f"{HELD}[=:].*"))
    said = f"of taints under {OURS} there are unchecked:NoExecute, unattested:NoSchedule or NoExecute, and held"
    allowed = f"!each.startsWith({literal(OURS)}) || each.matches({literal(f'^({ours})$')})"
    return with_rules(schema, rule(f"self.all(each, {allowed})", said))


FIELDS: Mapping[str, Form] = {
    "Class.deadlines": _names(DEFAULTS),
    "Profile.deadlines": _names(DEFAULTS),
    "EnrolmentSpec.replaced": _once,
    "EnrolmentStatus.alerts": _by_kind,
    "Hold.machine": _for_ever,
    "HoldStatus.conditions": _by_type,
    "Machine.former_names": _once,
    "Match.macs": _once,
    "Node.addresses": _once,
    "Node.labels": _labels,
    "Node.taints": _taints,
    "OrderSpec.end": _never_null,
    "ObjectStatus.conditions": _by_type,
    "ConditionTold.lastTransitionTime": _moment,
    "BootTold.started": _moment,
    "BootTold.reached": _moment,
}
"""What the checks of whole inventories say of one object alone, by model and field."""

MODELS: Mapping[str, Schema] = {
    "OrderSpec._ends_in_a_while": rule(
        "timestamp(self.deadline) >= timestamp(self.since) && "
        "timestamp(self.deadline) - timestamp(self.since) <= duration('24h')",
        "deadline must be within a day of since",
    ),
    "EnrolmentSpec._in_or_out": rule(
        "!has(self.ek_sha256) || !has(self.replaced) || !(self.ek_sha256 in self.replaced)",
        "a TPM that was taken out of the machine is not let in: take it out of replaced first",
    ),
    "Match._recognisable": rule(
        "(has(self.macs) && self.macs.size() > 0) || has(self.uuid) || has(self.serial)",
        "needs at least one of macs, uuid and serial: nothing could be recognised by this",
    ),
}
"""Of validators of whole models, by model and function."""
