"""netboot.yaml: defaults, resolved paths, every fault at once."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.bundle import SiteBundle
from images.values.strict import FaultsError
from netboot.addresses import Address, parse_address
from netboot.config import Config, Provisioning, load_config
from netboot.config_limits import Retry
from netboot.config_outside import EnrolmentsInKubernetes, InKubernetes, KeysSecret
from netboot.config_replicas import Replicas

NAMESPACE = "must be a namespace: lower-case letters, digits and '-', at most 63, beginning and ending with no '-'"
LEAST = "site: lab\nprovisioning: {url: 'http://192.0.2.1:8080/'}\n"


def load(folder: Path, text: str) -> Config:
    (folder / "netboot.yaml").write_text(text)
    return load_config(folder / "netboot.yaml")


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(FaultsError) as caught:
        load(folder, text)
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


def test_state_in_an_api_server_stands_for_its_sections(tmp_path: Path) -> None:
    config = load(tmp_path, LEAST + "state: {kubernetes: {namespace: site, kubeconfigs: /run/keys}}\n")
    keys = Path("/run/keys")
    assert config.inventory_kubernetes == InKubernetes(
        kubeconfig=keys / "inventory.kubeconfig",
        shipper=keys / "shipper.kubeconfig",
        orders=keys / "orders.kubeconfig",
        namespace="site",
        holds=True,
    )
    assert config.enrolments_kubernetes == EnrolmentsInKubernetes(
        join=keys / "enrolments-join.kubeconfig", reader=keys / "enrolments-reader.kubeconfig", namespace="site"
    )
    assert config.keys_kubernetes == KeysSecret(kubeconfig=keys / "keys.kubeconfig", namespace="site")
    assert config.replicas == Replicas()
    written_out = """\
inventory_kubernetes:
  holds: true
  shipper: secrets/shipper.kubeconfig
  orders: secrets/orders.kubeconfig
enrolments_kubernetes: {}
keys_kubernetes: {}
replicas: {}
"""
    short = load(tmp_path, LEAST + "state: {kubernetes: {}}\n")
    assert short.model_copy(update={"state": None}) == load(tmp_path, LEAST + written_out)


def test_what_is_said_beside_state_counts_key_by_key(tmp_path: Path) -> None:
    more = "replicas: {count: 5}\nkeys_kubernetes: {secret: other}\ninventory_kubernetes: {orders: a.kubeconfig}\n"
    config = load(tmp_path, LEAST + "state: {kubernetes: {}}\n" + more)
    assert config.replicas == Replicas(count=5)
    secret = KeysSecret(kubeconfig=tmp_path / "secrets/keys.kubeconfig", secret="other")
    assert config.keys_kubernetes == secret
    assert config.inventory_kubernetes is not None
    assert config.inventory_kubernetes.orders == tmp_path / "a.kubeconfig"
    assert config.inventory_kubernetes.shipper == tmp_path / "secrets/shipper.kubeconfig"


def test_embedded_state_is_what_there_is_without_the_key(tmp_path: Path) -> None:
    assert load(tmp_path, LEAST + "state: embedded\n") == load(tmp_path, LEAST)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("kubernetes", ["state: must be `embedded`, or `{kubernetes: {}}` (given: 'kubernetes')"]),
        (
            "{kubernetes: {namespace: Site}}",
            [f"state.kubernetes.namespace: {NAMESPACE} (given: 'Site')"],
        ),
        ("{kubernetes: {}, more: 1}", ["state.more: unknown key; valid keys: kubernetes"]),
        (
            "{etcd: {}}",
            ["state.etcd: unknown key; valid keys: kubernetes", "state.kubernetes: this key is required"],
        ),
    ],
)
def test_a_state_that_there_is_not(tmp_path: Path, state: str, expected: list[str]) -> None:
    assert faults(tmp_path, LEAST + f"state: {state}\n") == [f"netboot.yaml:3: {each}" for each in expected]


def test_two_keys_are_enough_and_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "netboot.yaml").write_text(LEAST)
    config = load_config(Path("netboot.yaml"))
    assert (config.data, config.store) == (tmp_path / "data", tmp_path / "store")
    assert (config.inventory, config.keys) == (tmp_path / "inventory", tmp_path / "keys")
    assert config.management.token_file == tmp_path / "secrets/operator.token"
    assert config.provisioning == Provisioning(url="http://192.0.2.1:8080")
    assert config.provisioning.listen == Address("::", 8080)
    assert config.provisioning.workers >= 1
    assert config.management.base_url == "http://127.0.0.1:8081"
    assert config.all_origins == ("http://192.0.2.1:8080",)
    assert config.retry == Retry(unknown_seconds=(20, 40), refused_seconds=(45, 90), unavailable_seconds=(5, 20))


def test_absolute_paths_stay(tmp_path: Path) -> None:
    assert load(tmp_path, LEAST + "data: /var/lib/netboot\n").data == Path("/var/lib/netboot")


def test_five_mistakes_are_five_faults(tmp_path: Path) -> None:
    text = """
site: Lab 1
stoer: /srv/store
minimum_epoch: -1
provisioning:
  listen: localhost:8080
  workers: 100
  body_seconds: 0
retry: {unknown_seconds: [40, 20]}
"""
    assert faults(tmp_path, text) == [
        (
            "netboot.yaml:2: site: must be lower-case letters, digits, '-' and '.', at most 63, "
            "beginning and ending with a letter or digit (given: 'Lab 1')"
        ),
        "netboot.yaml:3: stoer: unknown key; did you mean 'store'?",
        "netboot.yaml:4: minimum_epoch: must be 0 at least (given: -1)",
        "netboot.yaml:5: provisioning.url: this key is required",
        (
            "netboot.yaml:6: provisioning.listen: must be 'address:port' or '[IPv6 address]:port', in quotes, "
            "port 1 to 65535; not a host name (given: 'localhost:8080')"
        ),
        "netboot.yaml:7: provisioning.workers: must be 64 at most (given: 100)",
        "netboot.yaml:8: provisioning.body_seconds: must be more than 0 (given: 0)",
        "netboot.yaml:9: retry.unknown_seconds: must be [least, most] with least not above most",
    ]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://192.0.2.1",
            "192.0.2.1:8080",
            "http://",
            "http://user@host",
            "http://a b",
            "http://h/?q=1",
            "http://h:0",
        ),
        *("http://h:65536", "http://h:99999", 'http://h/"', "http://h/${x}", "http://h/#x", "http://h\n", "http://é"),
    ],
)
def test_a_url_is_safe_in_a_script_or_refused(tmp_path: Path, url: str) -> None:
    for text in (f"site: lab\nprovisioning: {{url: {url!r}}}\n", f"{LEAST}origins: [{url!r}]\n"):
        text = text.replace(repr(url), '"' + url.replace('"', '\\"').replace("\n", "\\n") + '"')
        (fault,) = faults(tmp_path, text)
        assert "must be http:// or https://, a host or address, and if need be a port and a path" in fault


def test_machines_fetch_in_plain_http(tmp_path: Path) -> None:
    for text in ("site: lab\nprovisioning: {url: 'https://192.0.2.1'}\n", f"{LEAST}origins: ['https://rack1']\n"):
        (fault,) = faults(tmp_path, text)
        assert "must be http://: machines fetch in plain HTTP and believe signatures, not connections" in fault


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1:80", Address("192.0.2.1", 80)),
        ("[2001:DB8::1]:65535", Address("2001:db8::1", 65535)),
        ("[::]:8080", Address("::", 8080)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "value",
    [
        "",
        ":80",
        "80",
        80,
        None,
        "::1:80",
        "[192.0.2.1]:80",
        "192.0.2.1:0",
        "192.0.2.1:65536",
        "192.0.2.1:٨",
        "*:80",
        "[]:1",
    ],
)
def test_what_is_no_address(value: object) -> None:
    with pytest.raises(ValueError, match="must be 'address:port'"):
        parse_address(value)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_a_fault(text: str) -> None:
    try:
        address = parse_address(text)
    except ValueError as error:
        assert str(error).startswith("must be 'address:port'")
    else:
        assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("ours", "theirs"), [("0.0.0.0:1", "127.0.0.1:1"), ("[::1]:1", "[::1]:1"), ("1.1.1.1:1", "[::]:1")]
)
def test_the_two_listeners_may_not_meet(tmp_path: Path, ours: str, theirs: str) -> None:
    text = f"site: lab\nprovisioning: {{url: 'http://h', listen: '{ours}'}}\nmanagement: {{listen: '{theirs}'}}\n"
    assert faults(tmp_path, text) == [
        (
            f"netboot.yaml:1: management.listen ({theirs}) and provisioning.listen ({ours}) meet; "
            "give one of them another port"
        )
    ]


@pytest.mark.parametrize(
    ("management", "base"),
    [
        ("{listen: '0.0.0.0:9'}", "http://127.0.0.1:9"),
        ("{listen: '[::]:9'}", "http://[::1]:9"),
        ("{listen: '[2001:db8::1]:9'}", "http://[2001:db8::1]:9"),
        ("{url: 'https://netboot.example/api/'}", "https://netboot.example/api"),
    ],
)
def test_where_the_command_line_finds_the_api(tmp_path: Path, management: str, base: str) -> None:
    assert load(tmp_path, f"{LEAST}management: {management}\n").management.base_url == base


def test_caches_come_first_and_the_service_is_the_last_resort(tmp_path: Path) -> None:
    config = load(tmp_path, f"{LEAST}minimum_epoch: 3\norigins: ['http://rack1/', 'http://192.0.2.1:8080']\n")
    assert config.site_bundle(7) == SiteBundle(
        site="lab",
        issued=7,
        minimum_epoch=3,
        origins=("http://rack1", "http://192.0.2.1:8080"),
        report="http://192.0.2.1:8080",
    )


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FaultsError, match=r"nowhere.yaml: cannot be read: No such file or directory"):
        load_config(tmp_path / "nowhere.yaml")


def test_upstream(tmp_path: Path) -> None:
    text = LEAST + "upstream: {place: 'registry.example:5000/netboot/images', credentials: secrets/registry.json}\n"
    upstream = load(tmp_path, text).upstream
    assert upstream is not None
    assert upstream.place == "registry.example:5000/netboot/images"
    assert upstream.credentials == tmp_path / "secrets/registry.json"
    assert (upstream.authority, upstream.plain_http) == (None, False)
    origin = load(tmp_path, LEAST + "upstream: {place: 'http://cache.example:8000/v1/'}\n").upstream
    assert origin is not None
    assert origin.place == "http://cache.example:8000/v1"


ORIGIN = "write http://HOST[:PORT]/v1/images/DIGEST, without user, query or spaces"
REGISTRY = "write REGISTRY/REPOSITORY[:TAG], like registry.example:5000/netboot/images:stable"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("r.example/a:b", "images are asked for by their digests here: write REGISTRY/REPOSITORY without a tag"),
        ("netboot/images", f"'netboot/images' names no registry: {REGISTRY}"),
        ("https://r.example/v1?a", f"'https://r.example/v1?a' is no plain origin: {ORIGIN}"),
        ("https://…@r.example/v1", "a plain origin is written without a user: no login is sent to it"),
    ],
)
def test_an_upstream_that_is_none(tmp_path: Path, place: str, words: str) -> None:
    found = faults(tmp_path, LEAST + f"upstream: {{place: {place.replace('…', 'user:word')!r}}}\n")
    assert found == [f"netboot.yaml:3: upstream.place: {words} (given: {place!r})"]
