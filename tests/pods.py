"""A Pod's only container without a kubelet: its volumes as a kubelet makes them, and podman held by what it says.

What is in a volume lies in a folder to which `..data` leads, so that all of it changes at once; files are root's, of
the Pod's `fsGroup`, and readable to it (https://kubernetes.io/docs/tasks/configure-pod-container/security-context/).
"""

import base64
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.kube.accounts import Admin

Object = dict[str, Any]
_READ_ONLY, _WRITABLE = 0o440, 0o660


@dataclass(frozen=True)
class Pod:
    """`document`: as the API server has it; `folder`: for its volumes, those of claims as `claims/<name>`."""

    document: Object
    admin: Admin
    folder: Path

    @property
    def container(self) -> Object:
        """The only one."""
        (one,) = self.document["spec"]["containers"]
        found: Object = one
        return found

    def options(self) -> list[str]:
        """Of `podman run`."""
        held, whole = self.container["securityContext"], self.document["spec"]["securityContext"]
        assert (held["readOnlyRootFilesystem"], held["allowPrivilegeEscalation"]) == (True, False)
        assert held["capabilities"] == {"drop": ["ALL"]}
        user = f"--user={whole['runAsUser']}:{whole['runAsGroup']}"
        name = f"--hostname={self.document['metadata']['name']}"
        return [name, user, f"--group-add={whole['fsGroup']}", *self._mounts()]

    def _mounts(self) -> Iterator[str]:
        volumes = {volume["name"]: self._volume(volume) for volume in self.document["spec"]["volumes"]}
        for mount in self.container["volumeMounts"]:
            source = volumes[mount["name"]]
            if "subPath" in mount:
                source = (source / mount["subPath"]).resolve()
            yield f"--volume={source}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}"

    def _volume(self, volume: Object) -> Path:
        group = self.document["spec"]["securityContext"]["fsGroup"]
        if "persistentVolumeClaim" in volume:
            claim = self.folder / "claims" / str(volume["persistentVolumeClaim"]["claimName"])
            claim.mkdir(parents=True, exist_ok=True)
            for path in (claim, *claim.rglob("*")):
                if not path.is_symlink():
                    os.chown(path, 0, group)
                    path.chmod(path.stat().st_mode | (0o2770 if path.is_dir() else _WRITABLE))
            return claim
        made = self.folder / "volumes" / str(volume["name"])
        data = made / "..now"
        data.mkdir(parents=True)
        (made / "..data").symlink_to(data.name)
        kind = next(kind for kind in ("configMap", "secret", "projected") if kind in volume)
        given = volume[kind]
        for name, content in self._files(kind, given):
            (data / name).write_bytes(content)
            os.chown(data / name, 0, group)
            (data / name).chmod(given["defaultMode"] | _READ_ONLY)
            (made / name).symlink_to(Path("..data", name))
        return made

    def _files(self, kind: str, given: Object) -> Iterator[tuple[str, bytes]]:
        if kind == "projected":
            for source in given["sources"]:
                ((inner, of),) = source.items()
                yield from self._files(inner, of)
        elif kind == "serviceAccountToken":
            yield given["path"], self._token(given["expirationSeconds"])
        else:
            name = given.get("name") or given["secretName"]
            found = self.admin("GET", f"{self._namespace()}/{kind.lower()}s/{name}").json()
            content = {key: text.encode() for key, text in found.get("data", {}).items()}
            if kind == "secret":
                content = {key: base64.b64decode(text) for key, text in content.items()}
            paths = {item["key"]: item["path"] for item in given.get("items", ())} or {key: key for key in content}
            yield from ((path, content[key]) for key, path in paths.items())

    def _token(self, seconds: int) -> bytes:
        account = self.document["spec"]["serviceAccountName"]
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = self.admin("POST", f"{self._namespace()}/serviceaccounts/{account}/token", request)
        return str(answer.json()["status"]["token"]).encode()

    def _namespace(self) -> str:
        return f"/api/v1/namespaces/{self.document['metadata']['namespace']}"
