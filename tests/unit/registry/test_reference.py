"""What people type, to places in registries and at plain origins."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.registry.errors import BadReferenceError
from images.registry.reference import Origin, Reference, read_origin, read_place, read_reference

DIGEST = "sha256:" + "ab" * 32
FORM = "write REGISTRY/REPOSITORY[:TAG], like registry.example:5000/netboot/images:stable"
WORDS = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=10)
HOSTS = st.one_of(
    st.builds("{}.{}".format, WORDS, WORDS),
    st.builds("{}:{}".format, WORDS, st.integers(1, 65535)),
    st.just("localhost"),
)
REPOSITORIES = st.lists(WORDS, min_size=1, max_size=4).map("/".join)
TAGS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("localhost/images", Reference("localhost", "images")),
        ("registry.example/a/b:stable", Reference("registry.example", "a/b", "stable")),
        ("registry.example:5000/a:1@" + DIGEST, Reference("registry.example:5000", "a", "1", DIGEST)),
        ("[::1]:5000/a-b/c__d@" + DIGEST, Reference("[::1]:5000", "a-b/c__d", "latest", DIGEST)),
    ],
)
def test_references(text: str, reference: Reference) -> None:
    assert read_reference(text) == reference


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", f"'' names no registry: {FORM}"),
        ("images:stable", f"'images:stable' names no registry: {FORM}"),
        ("netboot/images:stable", f"'netboot/images:stable' names no registry: {FORM}"),
        (
            "https://registry.example/a",
            f"'https://registry.example/a' has a scheme: {FORM}; plain HTTP is an option of its own (--plain-http)",
        ),
        (
            "builder:secret@registry.example/images",
            "a registry is written without a user: give --username, and the password on stdin",
        ),
        ("registry.example:0/images", f"'registry.example:0' is no host of a registry: {FORM}"),
        ("registry.example:70000/images", f"'registry.example:70000' is no host of a registry: {FORM}"),
        ("-a.example/images", f"'-a.example' is no host of a registry: {FORM}"),
        (
            "registry.example/Images",
            "'Images' is no repository: lower-case letters, digits, '.', '_', '-' and '/'",
        ),
        ("registry.example/", "'' is no repository: lower-case letters, digits, '.', '_', '-' and '/'"),
        ("registry.example/../a", "'../a' is no repository: lower-case letters, digits, '.', '_', '-' and '/'"),
        ("registry.example/a:", "'' is no tag: letters, digits, '_', '.' and '-', at most 128"),
        ("registry.example/a:b c", "'b c' is no tag: letters, digits, '_', '.' and '-', at most 128"),
        (
            "registry.example/a@sha256:ab",
            "'sha256:ab' is no digest of a registry: sha256: and 64 hexadecimal characters",
        ),
    ],
)
def test_what_is_no_reference(text: str, words: str) -> None:
    with pytest.raises(BadReferenceError) as error:
        read_reference(text)
    assert str(error.value) == words


@given(HOSTS, REPOSITORIES, TAGS, st.booleans())
def test_what_is_written_is_read_again(host: str, repository: str, tag: str, digest: bool) -> None:
    reference = Reference(host, repository, tag, DIGEST if digest else None)
    again = read_reference(str(reference))
    assert str(again) == str(reference)
    assert again.name == reference.name
    assert read_place(reference.place) == reference.place


@given(st.text(max_size=60) | st.text("ab.:/@-_", max_size=30))
def test_anything_is_a_reference_or_told_so(text: str) -> None:
    try:
        assert read_reference(text).place in text
    except BadReferenceError as error:
        assert str(error)


@given(st.text(max_size=40).map("http://".__add__) | st.text("ab.:/@-_[]?#", max_size=30).map("http://".__add__))
def test_anything_is_an_origin_or_told_so(text: str) -> None:
    try:
        origin, _ = read_origin(text)
        assert text.startswith(origin.base)
        assert "@" not in origin.base.split("/")[2]
    except BadReferenceError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("registry", "loopback"),
    [
        ("localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("127.8.8.8", True),
        ("[::1]:5000", True),
        ("localhost.example", False),
        ("127.0.0.1.example:5000", False),
        ("192.0.2.1:5000", False),
    ],
)
def test_plain_http_is_for_loopback(registry: str, loopback: bool) -> None:
    assert Reference(registry, "a").loopback is loopback


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("http://origin.example:8000/v1/images/" + "ab" * 32, ("http://origin.example:8000/v1", "ab" * 32)),
        ("https://origin.example/v1/images/" + "ab" * 32 + "/manifest.json", ("https://origin.example/v1", "ab" * 32)),
        ("http://192.0.2.1/v1/", ("http://192.0.2.1/v1", None)),
    ],
)
def test_origins(text: str, found: tuple[str, str | None]) -> None:
    assert read_origin(text) == (Origin(found[0]), found[1])


@pytest.mark.parametrize(
    "text",
    [
        "http://origin.example/v1?token=1",
        "http://origin.example/v1 2",
        "http:///v1",
        "ftp://origin.example/v1",
        "http://origin.example:70000/v1",
        "http://origin.example/v1/images/stable",
    ],
)
def test_what_is_no_origin(text: str) -> None:
    with pytest.raises(BadReferenceError) as error:
        read_origin(text)
    assert str(error.value) == (
        f"{text!r} is no plain origin: write http://HOST[:PORT]/v1/images/DIGEST, without user, query or spaces"
    )


def test_a_login_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadReferenceError) as error:
        read_origin("http://user:word@origin.example/v1")
    assert str(error.value) == "a plain origin is written without a user: no login is sent to it"


def test_a_place_names_no_image() -> None:
    for text, words in (
        ("registry.example/a:stable", "write REGISTRY/REPOSITORY without a tag"),
        ("http://origin.example/v1/images/" + "ab" * 32, "let the URL end before /images/"),
    ):
        with pytest.raises(BadReferenceError) as error:
            read_place(text)
        assert str(error.value) == f"images are asked for by their digests here: {words}"
