"""Bootstrap tokens and the binding: exact forms, because Kubernetes fails open on some of them."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokens.binding import binding, binding_group
from tokens.bootstrap import BootstrapToken, mint, parse, secret_manifest
from tokens.errors import MalformedError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOKEN = BootstrapToken("abc123", "0123456789abcdef")


def test_the_secret_is_exactly_this() -> None:
    assert secret_manifest(TOKEN, "gpu-001", b"spki", NOW) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bootstrap-token-abc123", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abc123",
            "token-secret": "0123456789abcdef",
            "expiration": "2026-01-02T03:09:05Z",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:netboot,system:bootstrappers:netboot:v1:"
            + binding("gpu-001", b"spki"),
            "description": "netboot: gpu-001",
        },
    }


@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(seconds=-1), timedelta(minutes=15, seconds=1)])
def test_no_token_lives_longer_than_a_quarter_of_an_hour(lifetime: timedelta) -> None:
    with pytest.raises(ValueError, match="at most 15 minutes"):
        secret_manifest(TOKEN, "gpu-001", b"spki", NOW, lifetime)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="must have a zone"):
        secret_manifest(TOKEN, "gpu-001", b"spki", NOW.replace(tzinfo=None))


def test_minted_tokens_have_kubernetes_form_and_show_nothing() -> None:
    token = mint()
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", token.reveal())
    assert parse(token.reveal()).matches(token)
    assert not token.matches(mint())
    assert repr(TOKEN) == "BootstrapToken(id='abc123')"


@given(st.text(max_size=40))
def test_what_is_not_a_token_is_refused_and_not_repeated(text: str) -> None:
    try:
        parse(text)
    except MalformedError as error:
        assert str(error) == "not a bootstrap token: six, a dot, and sixteen lower-case letters or digits"


@given(st.binary(max_size=100), st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True))
def test_the_group_fits_kubernetes_pattern(spki: bytes, name: str) -> None:
    assert re.fullmatch(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", binding_group(name, spki))
    assert len(binding_group(name, spki)) == 96


def test_name_and_key_are_both_bound() -> None:
    assert len({binding("n1", b"a"), binding("n2", b"a"), binding("n1", b"b")}) == 3
    with pytest.raises(ValueError, match="not a node's name"):
        binding("N1\0", b"a")
