"""The self-check: whether a cluster is fit to be joined through us. Pure over the `Preconditions` port.

Where anybody but our approver would approve a node's certificate, the binding of token, key and node is worth nothing:
then nothing is issued. The issuer asks at its start and in its readiness, `netboot doctor` shows all of it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from netboot.config_replicas import elections_of
from netboot.join.leases_seen import LEASES_REMEDY, LeasesSeen, leases_words
from netboot.join.ports import ClusterAccess
from netboot.join.rights import CSR_GROUP, CSRS, ELECTING, ELECTIONS, OURS, RIGHTS, TELLS_OF_LEASES
from netboot.join.self_check import PolicyState, Preconditions
from netboot.join.signing import LONGEST_SECONDS, SIGNING_REMEDY, Signing, signing_words

NODECLIENT = f"system:{CSR_GROUP}:{CSRS}:nodeclient"
SELFNODECLIENT = f"system:{CSR_GROUP}:{CSRS}:selfnodeclient"
BOOTSTRAPPERS = ("system:bootstrappers", "system:bootstrappers:netboot", "system:authenticated")
"""Of everybody who comes with a token of ours; the apiserver adds the first and the last."""
NODES = ("system:nodes", "system:authenticated")
KUBEADM_TOKENS = "system:bootstrappers:kubeadm:default-node-token"
IDENTIFIES = (1, 32)
"""First minor release whose apiserver says with which certificate a request was made (kubernetes/kubernetes#125634)."""
FIXED = {(1, 32): 8, (1, 33): 4}
"""First patch release without CVE-2025-5187 (a node deletes its own Node object, and registers without its taints), of
those that are not refused anyway; 1.34.0 has none of it."""
UPGRADE = "upgrade the control plane to 1.32.8, 1.33.4, 1.34.0 or newer"
CLOCK_WARN_MS, CLOCK_REFUSE_MS = 10_000, 30_000
APPLY = "`netboot cluster manifests | kubectl apply -f -`"


class Finding(NamedTuple):
    """One precondition. `words`: what was found; `remedy`: what to do, "" where nothing is to be done."""

    name: str
    outcome: Literal["ok", "warn", "refuse"]
    words: str
    remedy: str = ""


Connected = tuple[ClusterAccess, Callable[[], tuple[Finding, ...]]]
"""A cluster, and its self-check."""


def check(preconditions: Preconditions, namespace: str = "netboot") -> tuple[Finding, ...]:
    """Everything that the issuer's account can find out, in about forty quick requests.

    One Lease of no machine is written for it (`leases_seen`), and nothing else; nothing where a right is missing.

    Raises:
        ClusterUnavailableError: it cannot be told right now; neither "fit" nor "unfit" may be concluded.
    """
    first = (
        _version(preconditions.server_version()),
        _clock(preconditions.clock_ahead_ms()),
        rights(preconditions, "issuer", namespace),
    )
    if refusals(first[2:]):
        return first  # the rest could not be asked
    policies = preconditions.policies()
    return (
        *first,
        _secrets_unread(preconditions),
        *_policies(policies),
        *([_leases_seen(preconditions.leases_seen())] if policies[TELLS_OF_LEASES].found == "as shipped" else []),
        *_approvals(preconditions),
        _signing(preconditions.signing()),
    )


def refusals(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What forbids to issue; empty: the cluster is fit."""
    return tuple(finding for finding in findings if finding.outcome == "refuse")


def rights(preconditions: Preconditions, role: str, namespace: str = "netboot", *, electing: bool = False) -> Finding:
    """Whether an account has what it needs. `preconditions`: of that account's own connection; `electing`: there are
    several replicas.

    Raises:
        ClusterUnavailableError.
    """
    wanted = (*RIGHTS[role], *(ELECTING.get(role, ()) if electing else ()))
    places = {OURS: namespace, ELECTIONS: elections_of(namespace)}
    needed = [right._replace(namespace=places.get(right.namespace, right.namespace)) for right in wanted]
    missing = [str(right) for right in needed if not preconditions.can(**right._asdict())]
    name = f"rights of the {role}"
    if not missing:
        return Finding(name, "ok", f"the account has the {len(needed)} rights that it needs")
    return Finding(name, "refuse", f"the account may not: {', '.join(missing)}", f"apply deploy/kubernetes: {APPLY}")


def _version(version: str) -> Finding:
    name = "version of Kubernetes"
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(-(?:alpha|beta|rc))?", version)
    if not match:
        return Finding(name, "refuse", f"the apiserver says that it is {version!r}, which is no version", "see its URL")
    minor, patch = (int(match[1]), int(match[2])), int(match[3])
    if minor < IDENTIFIES:
        return Finding(
            name,
            "refuse",
            f"{version} does not say with which certificate a node asks for the next one, so a key that was stolen in "
            "an earlier boot could not be told from the node's own, and no certificate is renewed",
            UPGRADE,
        )
    if patch < FIXED.get(minor, 0) or (match[4] and minor <= (1, 34) and patch == 0):
        return Finding(
            name,
            "refuse",
            f"{version} has CVE-2025-5187: a node could delete its own Node object and come back without its taints",
            UPGRADE,
        )
    return Finding(name, "ok", version)


def _signing(signing: Signing | None) -> Finding:
    name = "signing duration"
    if signing is None or not signing.seconds:
        words = (
            "not seen yet; the first serving certificate of a kubelet shows it. A certificate cannot be revoked, so a "
            "machine that was taken out of service ends when its last one does"
        )
        remedy = "`--cluster-signing-duration=24h` or less, of kube-controller-manager (its default is a year)"
        return Finding(name, "ok", words, remedy)
    if signing.seconds > LONGEST_SECONDS:
        return Finding(name, "refuse", signing_words(signing), SIGNING_REMEDY)
    return Finding(name, "ok", signing_words(signing))


def _clock(ahead_ms: int) -> Finding:
    name, off = "clock", abs(ahead_ms)
    message = f"the apiserver's clock is {off / 1000:.0f} s {'ahead of' if ahead_ms > 0 else 'behind'} ours"
    remedy = "set both clocks by the same NTP servers"
    if off > CLOCK_REFUSE_MS:
        why = "tokens would be expired at birth, or live too long"
        return Finding(name, "refuse", f"{message}, more than {CLOCK_REFUSE_MS // 1000} s: {why}", remedy)
    if off > CLOCK_WARN_MS:
        return Finding(name, "warn", message, remedy)
    return Finding(name, "ok", "ours and the apiserver's agree")


def _secrets_unread(preconditions: Preconditions) -> Finding:
    name = "least privilege of the issuer"
    if not any(preconditions.can(verb, "", "secrets", namespace="kube-system") for verb in ("get", "list")):
        return Finding(name, "ok", "the account may not read Secrets")
    return Finding(
        name,
        "warn",
        "the account may read Secrets of kube-system, which it has no need to",
        "use the account of deploy/kubernetes: `netboot cluster kubeconfigs`; look for other bindings to it",
    )


def _policies(states: dict[str, PolicyState]) -> Iterator[Finding]:
    for policy, state in states.items():
        name, remedy = f"admission policy {policy}", f"apply deploy/kubernetes: {APPLY}"
        if state.found == "as shipped":
            yield Finding(name, "ok", "there, bound and as shipped")
        elif state.found == "different":
            changed = f"{state.field} is not as this version of netboot ships it, so it is not known what is denied"
            compare = "compare with `netboot cluster manifests | kubectl diff -f -`"
            yield Finding(name, "refuse", changed, f"{compare}; {remedy}")
        else:
            kind = "ValidatingAdmissionPolicy" if state.found == "absent" else "ValidatingAdmissionPolicyBinding"
            yield Finding(name, "refuse", f"there is no {kind} {policy}", remedy)


def _leases_seen(seen: LeasesSeen) -> Finding:
    name, words = "Leases in admission", leases_words(seen)
    return Finding(name, "ok", words) if seen.found == "current" else Finding(name, "refuse", words, LEASES_REMEDY)


def _approvals(preconditions: Preconditions) -> Iterator[Finding]:
    def approves(user: str, groups: tuple[str, ...], what: str) -> bool:
        return preconditions.may(user, groups, "create", CSR_GROUP, CSRS, what)

    name = "first certificates"
    if approves("system:bootstrap:abcdef", BOOTSTRAPPERS, "nodeclient"):
        consequence = "Kubernetes itself would approve any node's name for every holder of a bootstrap token"
        yield _bound(preconditions, name, BOOTSTRAPPERS, NODECLIENT, consequence)
    elif approves("system:bootstrap:abcdef", (KUBEADM_TOKENS, "system:bootstrappers"), "nodeclient"):
        yield Finding(
            name,
            "warn",
            "whoever has a token of kubeadm's can become any node, also one of netboot's: "
            f"{_names(preconditions, (KUBEADM_TOKENS,), NODECLIENT)}",
            "`kubectl delete clusterrolebinding kubeadm:node-autoapprove-bootstrap`, and `kubectl certificate approve` "
            "what `kubeadm join` asks for; or let no such token live (`kubeadm token list`)",
        )
    else:
        yield Finding(name, "ok", "nobody but netboot approves them")
    name = "renewals"
    if approves("system:node:netboot-self-check", NODES, "selfnodeclient"):
        consequence = "a machine that was taken out of service could renew its certificate for ever"
        yield _bound(preconditions, name, NODES, SELFNODECLIENT, consequence)
    else:
        yield Finding(name, "ok", "nobody but netboot approves them")


def _bound(preconditions: Preconditions, name: str, groups: tuple[str, ...], role: str, consequence: str) -> Finding:
    named = _names(preconditions, groups, role)
    return Finding(name, "refuse", f"{consequence}: {named}", _unbind(preconditions, groups, role))


def _names(preconditions: Preconditions, groups: tuple[str, ...], role: str) -> str:
    guilty = _guilty(preconditions, groups, role)
    return "; ".join(f"ClusterRoleBinding {name} binds ClusterRole {bound}" for name, bound in guilty) or (
        f"no ClusterRoleBinding to {' or '.join(groups)} says so; another authorizer of the apiserver may"
    )


def _guilty(preconditions: Preconditions, groups: tuple[str, ...], role: str) -> list[tuple[str, str]]:
    """The bindings of that role; where there is none, all that might contain it."""
    bindings = preconditions.bindings_to(groups)
    harmless = ("system:node-bootstrapper", "system:basic-user", "system:discovery", "system:public-info-viewer")
    exact = [(name, bound) for name, bound in bindings if bound == role]
    return exact or [(name, bound) for name, bound in bindings if bound not in harmless]


def _unbind(preconditions: Preconditions, groups: tuple[str, ...], role: str) -> str:
    """The commands; nodes that netboot does not boot keep their renewals by a binding to each of them alone."""
    deletes = [f"`kubectl delete clusterrolebinding {name}`" for name, _ in _guilty(preconditions, groups, role)]
    keep = (
        "for each node that netboot does not boot, first `kubectl create clusterrolebinding kept-renewal-<node> "
        f"--clusterrole={SELFNODECLIENT} --user=system:node:<node>`; then "
        if role == SELFNODECLIENT
        else ""
    )
    return keep + (" and ".join(deletes) or "look at the apiserver's --authorization-mode and --authorization-config")


ADVICE = (
    Finding(
        "signing rate",
        "ok",
        "the controller-manager signs about 21 certificates/s at its default 20 QPS: 437 nodes take 21 s, 10,000 eight "
        "minutes",
        "for more, `--kube-api-qps=100 --kube-api-burst=200` of kube-controller-manager",
    ),
    Finding(
        "tokencleaner",
        "ok",
        "netboot deletes its tokens; those of a crash expire, and stay as Secrets until somebody deletes them",
        "`--controllers=*,tokencleaner` of kube-controller-manager deletes them (off by default)",
    ),
)
"""What cannot be seen from outside; for words."""
