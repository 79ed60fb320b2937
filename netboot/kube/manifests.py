"""The files of `deploy/kubernetes`, which travel with the package: accounts, rights and admission policies; and
the rule of `deploy/node-readiness`, the accounts of `deploy/inventory`, `deploy/enrolments` and `deploy/keys`."""

import re
from importlib import resources
from typing import Any

import yaml

from netboot.kube.shared_keys import in_use_name

DEFAULT_NAMESPACE = "netboot"
_POLICY = r"(?m)^(kind: ValidatingAdmissionPolicy(?:Binding)?\nmetadata:\n  name: .*|  policyName: .*)$"
DEFAULT_SECRET = "netboot-keys"  # noqa: S105 - an object's name


def manifest_text(namespace: str = DEFAULT_NAMESPACE) -> str:
    """All files as one YAML stream for `kubectl apply -f -`, for another namespace where the configuration says so."""
    return _in_namespace(_stream("manifests"), namespace)


def inventory_text(namespace: str = DEFAULT_NAMESPACE) -> str:
    """The accounts that read the inventory's custom resources, and write the status of machines, and what they may,
    likewise."""
    return _in_namespace(_stream("inventory"), namespace)


def enrolments_text(namespace: str = DEFAULT_NAMESPACE) -> str:
    """The accounts that read Enrolments and write their status, and the policies that keep them to that, likewise."""
    text = _in_namespace(_stream("enrolments"), namespace)
    if namespace == DEFAULT_NAMESPACE:
        return text
    return re.sub(_POLICY, rf"\g<1>-{namespace}", text)  # they are of no namespace: another site has its own


def keys_text(namespace: str = DEFAULT_NAMESPACE, secret: str = DEFAULT_SECRET) -> str:
    """The account that reads the Secret with the keys which replicas share, and where each says what it has in use."""
    text = _in_namespace(_stream("keys"), namespace)
    text = text.replace(f"resourceNames: [{DEFAULT_SECRET}]", f"resourceNames: [{secret}]")
    return text.replace(in_use_name(DEFAULT_SECRET), in_use_name(secret))


def _stream(folder: str) -> str:
    """The files of a folder, in the order of their names."""
    there = (resources.files("netboot.kube") / folder).iterdir()
    files = sorted((file for file in there if file.name.endswith(".yaml")), key=lambda file: file.name)
    return "---\n".join(file.read_text(encoding="utf-8") for file in files)


def _in_namespace(text: str, namespace: str) -> str:
    if namespace == DEFAULT_NAMESPACE:
        return text
    for at in (r"(?m)^( *namespace: )", r"(?m)^(kind: Namespace\nmetadata:\n  name: )"):
        text = re.sub(rf"{at}netboot(-leaders)?$", rf"\g<1>{namespace}\g<2>", text)
    text = text.replace("request.namespace == 'netboot'", f"request.namespace == '{namespace}'")
    return text.replace("system:serviceaccount:netboot:", f"system:serviceaccount:{namespace}:")


def readiness_rule() -> str:
    """The rule for the Node Readiness Controller, for `kubectl apply -f -` where its kind is known."""
    return (resources.files("netboot.kube") / "readiness" / "rule.yaml").read_text(encoding="utf-8")


def manifests(namespace: str = DEFAULT_NAMESPACE) -> list[dict[str, Any]]:
    """Those of `deploy/kubernetes`, parsed, in the order in which they can be applied."""
    return list(yaml.safe_load_all(manifest_text(namespace)))
