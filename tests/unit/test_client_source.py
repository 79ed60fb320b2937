"""The client's made part is as the API's document is now."""

from tests.client_source import made

ANEW = "make it anew: `make client`"


def test_what_is_made_from_the_document_is_as_the_document_is() -> None:
    for path, text in made().items():
        assert path.read_text() == text, ANEW
