"""What `management.oidc` and `management.token_review` may say, and which doors they open."""

from pathlib import Path
from typing import Any

import pytest

from images.values.strict import FaultsError
from netboot.cli.check import check_site
from netboot.config import load_config
from netboot.confine.access import access_of
from netboot.credentials import PUT_IT_THERE
from tests.sites import make_site

OIDC = 'issuer: "https://login.example:8443/realms/x/", client_id: netboot, roles: {"group:sre": admin}'


def site(folder: Path, section: str) -> Path:
    make_site(folder)
    file = folder / "netboot.yaml"
    file.write_text(f"{file.read_text()}  {section}\n")
    return file


def test_an_issuer_opens_its_port_to_the_process_that_is_asked_and_to_no_other(tmp_path: Path) -> None:
    file = site(tmp_path, f"oidc: {{{OIDC}, client_secret_file: secrets/oidc.secret}}")
    config = load_config(file)
    assert config.management.oidc is not None
    assert config.management.oidc.issuer == "https://login.example:8443/realms/x/", "as it writes itself"
    provisioning = config.provisioning.listen.port
    asks = access_of("management", "management", "", config)
    assert (asks.connect, tmp_path / "secrets/oidc.secret" in asks.handed) == (
        frozenset({53, 8443, provisioning}),
        True,
    )
    for kind in ("boot", "join", "controllers"):
        other = access_of(kind, kind, "", config)
        assert (other.connect, tmp_path / "secrets/oidc.secret" in other.handed) == (frozenset(), False)


def test_a_cluster_that_reviews_tokens_opens_the_ports_of_api_servers(tmp_path: Path) -> None:
    config = load_config(site(tmp_path, 'token_review: {audiences: [netboot], roles: {"user:x": viewer}}'))
    asks = access_of("management", "management", "", config)
    assert asks.kubeconfigs == {tmp_path / "secrets/review.kubeconfig"}
    assert asks.connect == frozenset({53, 443, 6443, config.provisioning.listen.port})


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (
            'issuer: "http://login.example", client_id: x, roles: {"user:x": viewer}',
            "must be https://, or of this machine",
        ),
        ('issuer: "https://login.example", client_id: x, roles: {sre: admin}', "management.oidc.roles.sre"),
        ('issuer: "https://login.example", client_id: x, roles: {"group:sre": root}', "management.oidc.roles"),
        ('issuer: "https://login.example", client_id: x, roles: {}', "management.oidc.roles"),
        (
            'issuer: "https://login.example", client_id: x, scopes: [email], roles: {"user:x": viewer}',
            "scopes must have openid: without it there is no identity token",
        ),
    ],
)
def test_what_is_refused(section: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(FaultsError) as faults:
        load_config(site(tmp_path, f"oidc: {{{section}}}"))
    assert words in str(faults.value)


def test_files_that_are_named_are_looked_at(tmp_path: Path) -> None:
    said: Any = f"oidc: {{{OIDC}, client_secret_file: oidc.secret, certificate_authority: ca.crt}}\n"
    file = site(tmp_path, said + '  token_review: {audiences: [netboot], roles: {"user:x": viewer}}')
    secret = tmp_path / "oidc.secret"
    missing = {fault.message for fault in check_site(file).faults}
    assert {
        f"management.oidc.client_secret_file: {secret} cannot be read: No such file or directory: {PUT_IT_THERE}",
        f"management.oidc.certificate_authority cannot be read: No such file or directory: {PUT_IT_THERE}",
    } < missing
    assert any("review.kubeconfig cannot be read (No such file or directory)" in each for each in missing)
    secret.write_text("s3cret\n")
    secret.chmod(0o644)
    assert f"others can read management.oidc.client_secret_file {secret} (mode 0644): `chmod 600 {secret}`" in {
        fault.message for fault in check_site(file).faults
    }
