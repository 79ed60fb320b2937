"""Who comes when many tokens are asked about at an API server; what a real one says: tests/cluster."""

import threading
from typing import Any

import pytest

from netboot.config_access import TokenReview
from netboot.kube.token_reviews import AT_ONCE, GOOD_SECONDS, KNOWN_SECONDS, Reviews
from netboot.lifecycle.errors import BadTokenError, IssuerUnavailableError
from netboot.turns import Turns

PLACE = TokenReview(audiences=("netboot",), roles={"user:sa": "viewer"})


class Asked(Reviews):
    """In place of an API server: of strangers' tokens it says nothing until it is let."""

    def __init__(self) -> None:
        self.clock = 0.0
        super().__init__(PLACE, lambda: self.clock)
        self.let, self.hanging = threading.Event(), threading.Semaphore(0)

    def _reviewed(self, token: str) -> Any:
        good = token.startswith("good")
        if not good:
            self.hanging.release()
            assert self.let.wait(60)
        return {"status": {"authenticated": good, "audiences": ["netboot"], "user": {"username": "sa"}}}


def test_a_token_that_was_good_is_not_kept_waiting_by_tokens_that_nobody_knows() -> None:
    reviews, refused = Asked(), list[str]()
    assert reviews.person("good1.aa.aa") is not None

    def stranger(number: int) -> None:
        try:
            reviews.person(f"junk{number}.aa.aa")
        except (BadTokenError, IssuerUnavailableError) as error:
            refused.append(type(error).__name__)

    strangers = [threading.Thread(target=stranger, args=(number,)) for number in range(AT_ONCE)]
    for each in strangers:
        each.start()
        assert reviews.hanging.acquire(timeout=60)
    try:
        reviews.clock = KNOWN_SECONDS
        assert reviews.person("good1.aa.aa") is not None, "asked about anew, beside the strangers"
        late = threading.Thread(target=lambda: reviews.person("good2.aa.aa"))
        late.start()  # nobody knows it: it waits
    finally:
        reviews.let.set()
        for each in (*strangers, late):
            each.join()
    assert refused == ["BadTokenError"] * AT_ONCE
    reviews.clock += GOOD_SECONDS
    assert reviews.person("good2.aa.aa") is not None


def test_where_the_line_does_not_move_nobody_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "netboot.kube.token_reviews.Turns", lambda _, most, **more: Turns(0, most, seconds=0.01, **more)
    )
    with pytest.raises(IssuerUnavailableError) as said:
        Asked().person("good.aa.aa")
    assert str(said.value) == "too many tokens are being asked about at the API server"
