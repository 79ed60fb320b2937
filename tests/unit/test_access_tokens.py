"""Who is blocked: by name, and by what reads as the same."""

import pytest

from netboot.stores.access_tokens import AccessTokens, Blocked


@pytest.mark.parametrize(
    ("name", "blocked"),
    [
        ("oidc:b\u00f3b", True),
        ("oidc:bo\u0301b", True),
        ("oidc:b\u00f3b ", True),
        ("oidc:\u00a0b\u00f3b", True),
        ("oidc:B\u00f3b", False),
        ("oidc:bob", False),
        ("k8s:b\u00f3b", False),
    ],
)
@pytest.mark.parametrize("written", ["oidc:b\u00f3b", "oidc:bo\u0301b", "oidc: b\u00f3b "])
def test_a_block_is_of_a_name_however_that_is_encoded(written: str, name: str, blocked: bool) -> None:
    assert AccessTokens(blocked=(Blocked(name=written, at_ms=1),)).blocks(name) is blocked
