"""`/v1/tokens`: operator-issued bootstrap tokens, for automation. The token is in one answer, once."""

import base64
import binascii
import re
import secrets
from typing import Annotated, ClassVar, Literal

from flask import request
from pydantic import Field, StringConstraints

from images.values.strict import Strict
from netboot.join.enrolment import Act
from netboot.join.errors import ClusterUnavailableError, CordonedError, NoSuchTokenError
from netboot.join.issue import Issuer
from netboot.join.issued_tokens import issued, revoke
from netboot.join.messages import AttestAnswer
from netboot.join.operator_tokens import TokenRequest, issue_for_operator, open_boot_window
from netboot.join.ports import Credential
from netboot.lifecycle import bootid
from netboot.lifecycle.errors import ActRefusedError, BadClaimError, CannotTellError, NoClusterError
from netboot.lifecycle.views import machine_named
from netboot.machines.values import AssuranceLevel, Machine
from netboot.web import render
from netboot.web.binding import Shown
from netboot.web.cordons import hold
from netboot.web.dependencies import dependencies
from netboot.web.enrolments import Reason
from netboot.web.operators import audit, operator
from netboot.web.pages import PageAsked, Paged, page
from netboot.web.preconditions import OF_MACHINE, alone
from netboot.web.windows import WindowSeconds, new_window, nowhere, until

_ID = re.compile(r"[a-z0-9]{6}")


class NewToken(Strict):
    """The body of a POST. `spki`: base64 of the DER SubjectPublicKeyInfo of the key that the machine will join with."""

    machine: Annotated[str, StringConstraints(max_length=63)]
    spki: Annotated[str, StringConstraints(max_length=2048)] | None = None
    lifetime_seconds: Annotated[int, Field(ge=60, le=900)] = 300
    window_seconds: WindowSeconds = 1800
    """Without `spki`: how long the boot window is open."""
    reason: Reason = ""


class TokenCreated(AttestAnswer):
    """The token, here and nowhere else, with what its machine joins by."""

    http_status: ClassVar[int] = 201
    http_kept: ClassVar[bool] = False
    id: str
    machine: str


class WindowOpen(Shown):
    """In which the machine may boot and prove itself."""

    kind: Literal["boot"]
    until_ms: int


class WindowOpened(Shown):
    """Without a key: the machine gets its token by itself, within that time."""

    http_status: ClassVar[int] = 202
    http_kept: ClassVar[bool] = False
    machine: str
    window: WindowOpen


class TokenShown(Shown):
    """A token without its secret, as its machine's Lease has it."""

    id: str | None
    machine: str
    node: str
    cluster: str
    assurance: AssuranceLevel
    boot: str
    holder: str
    issued_ms: int
    expires_ms: int
    expired: bool


class TokensShown(Paged):
    """The newest first. `problems`: cluster → why it cannot tell."""

    tokens: tuple[TokenShown, ...]
    problems: dict[str, str]


class TokenRevoked(Shown):
    """Whose it was."""

    revoked: str
    machine: str
    cluster: str


def created(body: NewToken) -> TokenCreated | WindowOpened:
    """A token for one machine and one key (201); without a key, a boot window for that machine (202)."""
    machine = machine_named(dependencies().live.view(), body.machine)
    act = Act(operator().who, body.reason)
    with alone([(OF_MACHINE, machine.name)]):
        return _window(machine, body, act) if body.spki is None else _token(machine, body, body.spki, act)


def _window(machine: Machine, body: NewToken, act: Act) -> WindowOpened:
    if why := nowhere(machine):
        raise ActRefusedError(why)
    deps, end_ms = dependencies(), until(body.window_seconds)
    now = deps.clock.now_ms()
    was = deps.register.view(machine.name, now)
    open_boot_window(deps.register, machine, new_window(), end_ms, act, now)
    before, after = (
        {"window": kind, "until_ms": end} for kind, end in ((was.window, was.window_until_ms), ("boot", end_ms))
    )
    audit("boot-window", machine=machine.name, reason=body.reason, before=before, after=after)
    return WindowOpened(machine=machine.name, window=WindowOpen(kind="boot", until_ms=end_ms))


def _token(machine: Machine, body: NewToken, spki: str, act: Act) -> TokenCreated:
    deps = dependencies()
    try:
        key = base64.b64decode(spki, validate=True)
    except (binascii.Error, ValueError):
        raise BadClaimError("spki is not base64 (standard alphabet, padded)") from None
    asked, peer = TokenRequest(machine, key, _boot(machine), body.lifetime_seconds), request.remote_addr or ""
    try:
        answer = issue_for_operator(_issuer(), deps.register, asked, new_window(), act, peer)
    except CordonedError as error:  # this process may hold a machine itself
        hold(machine.name, error.cordon)
        answer = issue_for_operator(_issuer(), deps.register, asked, new_window(), act, peer)
    token_id = answer.token.partition(".")[0]
    facts = {"issued": token_id, "cluster": machine.cluster, "seconds": body.lifetime_seconds}
    after = {"id": token_id, "expires_ms": answer.expires_ms}
    audit("token", facts, machine=machine.name, reason=body.reason, after=after)
    return render.grown(TokenCreated, answer, id=token_id, machine=machine.name)


def listed(query: PageAsked) -> TokensShown:
    """What the Leases say of tokens, without their secrets; clusters that cannot tell are named."""
    issuer, now = _issuer(), dependencies().clock.now_ms()
    tokens: list[TokenShown] = []
    problems: dict[str, str] = {}
    for name in sorted(issuer.clusters):
        try:
            tokens += [_shown(token, now) for token in issued(issuer.clusters[name])]
        except CannotTellError as error:
            problems[name] = str(error)
    if problems and len(problems) == len(issuer.clusters):
        raise ClusterUnavailableError("; ".join(problems.values()))
    tokens.sort(key=lambda token: (-token.issued_ms, token.id or "", token.cluster, token.node))
    found, more = page(query, tokens, lambda token: f"{token.issued_ms}.{token.id or ''}.{token.cluster}.{token.node}")
    return TokensShown(tokens=tuple(found), problems=problems, next_page=more)


def revoked(token_id: str) -> TokenRevoked:
    """Delete a token's Secret."""
    if not _ID.fullmatch(token_id):
        raise BadClaimError("a token's id is six lower-case letters and digits, without the secret")
    problem: CannotTellError | None = None
    clusters = _issuer().clusters
    for name in sorted(clusters):
        try:
            credential = revoke(clusters[name], token_id)
        except CannotTellError as error:
            problem = error
            continue
        if credential is not None:
            facts = {"cluster": credential.cluster, "revoked": token_id}
            audit("token-revoked", facts, machine=credential.machine, before={"id": token_id})
            return TokenRevoked(revoked=token_id, machine=credential.machine, cluster=credential.cluster)
    raise problem or NoSuchTokenError("no machine's Lease names a token of that id")


def _issuer() -> Issuer:
    """What issues tokens, where this service has any cluster.

    Raises:
        NoClusterError: it has none.
    """
    issuer = dependencies().issuer
    if issuer is None:
        raise NoClusterError("this service knows no cluster: declare `join` and `clusters` in netboot.yaml")
    return issuer


def _boot(machine: Machine) -> str:
    """The boot that the machine itself reported last, or one of its own for what has none."""
    deps = dependencies()
    current = deps.states.machines([machine.name]).get(machine.name)
    if current is not None and current.current is not None:
        return current.current.boot
    number = secrets.randbelow(64)
    return bootid.mint(deps.boot_key(), machine.name, bootid.NO_IMAGE, deps.clock.now_ms(), number)


def _shown(credential: Credential, now_ms: int) -> TokenShown:
    expires = credential.token_expires_ms or 0
    return TokenShown(
        id=credential.token_id,
        machine=credential.machine,
        node=credential.node,
        cluster=credential.cluster,
        assurance=credential.assurance,
        boot=credential.boot,
        holder=credential.holder,
        issued_ms=credential.at_ms,
        expires_ms=expires,
        expired=expires <= now_ms,
    )
