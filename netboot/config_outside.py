"""Sections of `netboot.yaml` about whom the service speaks to outside of its own site: where its inventory is, and
images come from that it does not have, who says whether anything may begin now, and who is told how boots went."""

from collections.abc import Iterator, Mapping
from os.path import normpath
from pathlib import Path
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from images.registry.errors import BadReferenceError
from images.registry.reference import read_place
from images.values.strict import Fault, FaultsError, Strict
from images.values.types import Matching
from netboot.addresses import TlsUrl, Url


def parse_upstream(value: str) -> str:
    """A repository of a registry, or the URL of a plain origin.

    Raises:
        ValueError: it is neither.
    """
    try:
        return str(read_place(value))
    except BadReferenceError as error:
        raise ValueError(str(error)) from None


Namespace = Annotated[
    str,
    Matching(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "must be a namespace: lower-case letters, digits and '-', at most 63, beginning and ending with no '-'",
    ),
]


class InKubernetes(Strict):
    """Where custom resources are the inventory, in the place of files."""

    FILES: ClassVar = ("kubeconfig", "shipper", "orders")
    kubeconfig: Path = Path("secrets/inventory.kubeconfig")
    """Of an account that may read them, and nothing else."""
    namespace: Namespace = "netboot"
    shipper: Path | None = None
    """Kubeconfig of an account that may write their status; None: nobody does."""
    holds: bool = False
    """Whether Holds there hold machines, beside what is held otherwise."""
    orders: Path | None = None
    """Kubeconfig of an account that may write Orders and Rollouts, which replicas share; None: each has
    its own."""

    @model_validator(mode="after")
    def _boots_are_known_where_orders_are(self) -> Self:
        """An order is bound to a boot: who carries it out has to know which one came after it."""
        if self.orders is not None and self.shipper is None:
            raise ValueError("`orders` wants `shipper`, too: replicas that share orders share what they know of boots")
        return self


class EnrolmentsInKubernetes(Strict):
    """Where Enrolments of an API server say who has which TPM, in the place of a file."""

    join: Path = Path("secrets/enrolments-join.kubeconfig")
    """Of an account that may write their status, and that windows were used."""
    reader: Path = Path("secrets/enrolments-reader.kubeconfig")
    """Of one that may read them, and nothing else."""
    namespace: Namespace = "netboot"


ObjectName = Annotated[
    str,
    Matching(
        r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?",
        "must be an object's name: lower-case letters, digits, '.' and '-', at most 63, beginning and ending with a "
        "letter or a digit",
    ),
]
SHARED = "shared-keys"
"""Beside `data`: the folder of keys that replicas share."""
SEALING, NONCES, BOOT_IDS = "sealing.keys", "nonce.keys", "boot-id.key"
"""Keys that replicas share: how the Secret names them, and the files that are made of it."""


class KeysSecret(Strict):
    """The Secret that has the keys which replicas share, and where they are kept here."""

    kubeconfig: Path = Path("secrets/keys.kubeconfig")
    """Of an account that may read this Secret, and say which keys are in use here; nothing else."""
    namespace: Namespace = "netboot"
    secret: ObjectName = "netboot-keys"  # noqa: S105 - an object's name
    folder: Path | None = None
    """Of the files that are made of it; None: `shared-keys` beside `data`, which other processes read."""
    replica: ObjectName | None = None
    """How this one is named where it says which keys it has in use; None: the host's name."""

    def in_use(self, data: Path) -> tuple[Path, dict[str, Path]]:
        """Where its key of boot ids is kept, and those of `join`, by the names of that section. `data`: that of the
        configuration."""
        folder = self.place(data)
        return folder / BOOT_IDS, {"sealing_keys": folder / SEALING, "nonce_keys": folder / NONCES}

    def place(self, data: Path) -> Path:
        """The folder."""
        return self.folder or data.with_name(SHARED)

    def apart(self, config: Strict, data: Path, file: Path) -> None:
        """That nothing else of the site is in its folder, nor that in a folder of something else. `config`: with
        absolute paths, and those of the site's own keys; `file`: where it was read, for words.

        Raises:
            FaultsError: it is not; the folder's mode, owner and walls are for keys alone.
        """
        own, ours = "keys_kubernetes.folder", Path(normpath(self.place(data)))
        others = [(key, Path(normpath(path))) for key, path in _paths(config) if key != own]
        faults = [
            Fault(str(file), 0, own, f"{ours} {how} {key} ({path}): give it a folder of its own, beside `data`")
            for key, path in others
            for how in (["holds"] if path.is_relative_to(ours) else ["lies in"] if ours.is_relative_to(path) else [])
        ]
        if faults:
            raise FaultsError(faults)


def _paths(value: object, key: str = "") -> Iterator[tuple[str, Path]]:
    """All that a section names, by dotted keys."""
    if isinstance(value, Path):
        yield key, value
    elif isinstance(value, Strict):
        for name in type(value).model_fields:
            yield from _paths(getattr(value, name), f"{key}.{name}" if key else name)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _paths(each, f"{key}.{name}")


class UpstreamPlace(Strict):
    """Where images of channels come from that are not in the store yet."""

    place: Annotated[str, AfterValidator(parse_upstream)]
    """`registry.example:5000/netboot/images`, or `http://cache.example:8000/v1`."""
    credentials: Path | None = None
    """The registry's login, as `docker login` writes it (config.json); None: none."""
    authority: Path | None = None
    """PEM that vouches for its certificate; None: those that the system trusts."""
    plain_http: bool = False
    """No TLS, also where the registry is not on this machine."""


class PauseSignal(Strict):
    """Who is asked, again and again, whether what acts by itself may begin anything: `hook`, or a query of
    `prometheus`. Whoever cannot be asked has said no."""

    hook: TlsUrl | None = None
    """Answers `{"pause": false}`, or `{"pause": true, "reason": "..."}`."""
    prometheus: TlsUrl | None = None
    """Prometheus, or what speaks its HTTP API, without `/api/v1/query`."""
    query: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """One number: 0 lets things begin, any other does not."""
    token_file: Path | None = None
    """A bearer token, in a file that nobody else may read."""
    authority: Path | None = None
    """PEM that vouches for its certificate; None: those that the system trusts."""
    every_seconds: Annotated[int, Field(ge=5, le=300)] = 15
    deadline_seconds: Annotated[float, Field(gt=0, le=30)] = 5.0

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.hook is None) == (self.prometheus is None):
            raise ValueError("either hook or prometheus, with query, says whom to ask: give one of them")
        if (self.query is None) != (self.prometheus is None):
            raise ValueError("prometheus and query go together")
        return self

    @property
    def where(self) -> str:
        """Whom we ask, as messages name it."""
        return self.hook or self.prometheus or ""


class Traces(Strict):
    """Where each boot goes as a trace of OpenTelemetry's, over OTLP/HTTP."""

    endpoint: Url
    """The collector, without `/v1/traces`."""
    headers_file: Path | None = None
    """`Name: value` lines, in a file that nobody else may read; only with https, or a collector on this machine."""
    authority: Path | None = None
    """PEM that vouches for its certificate; None: those that the system trusts."""
    deadline_seconds: Annotated[float, Field(gt=0, le=30)] = 10.0

    @model_validator(mode="after")
    def _kept_secret(self) -> Self:
        url = urlsplit(self.endpoint)
        if self.headers_file is not None and url.scheme != "https" and url.hostname not in ("127.0.0.1", "::1"):
            raise ValueError("headers_file wants an https:// endpoint: everybody on the way would read what is in it")
        return self

    @property
    def port(self) -> int:
        """Where it listens."""
        url = urlsplit(self.endpoint)
        return url.port or (443 if url.scheme == "https" else 80)
