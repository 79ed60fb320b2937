"""Rows of `netboot.failures`: an act that is asked for with conditions, or again; writes of the inventory; who is
blocked."""

import logging

from images import errors as images
from netboot.answer import Answer
from netboot.lifecycle import errors as lifecycle

_DEBUG, _INFO, _WARNING, _ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR

ACTS: dict[type[BaseException], Answer] = {
    lifecycle.BlockedError: Answer(
        403, "blocked", _INFO, "blocked here", "an admin lifts it, at the site: `netboot access unblock`", says=True
    ),
    lifecycle.ActRefusedError: Answer(
        409,
        "act-refused",
        _INFO,
        "that cannot be wanted of this machine",
        "see how it stands, with `netboot machine show`, and ask again once that is done",
        says=True,
    ),
    lifecycle.NotDeclaredError: Answer(
        404,
        "not-declared",
        _DEBUG,
        "the inventory declares no such thing",
        "see what is declared of that kind, for example by `netboot inventory list racks`",
        says=True,
    ),
    lifecycle.InventoryReadOnlyError: Answer(
        409,
        "inventory-read-only",
        _INFO,
        "that is not the service's to write",
        "edit the inventory where its files are kept; `netboot inventory show` prints the YAML of what is declared, "
        "`netboot machine declare --out FILE` writes that of a machine that asked, `netboot machine import --out FILE` "
        "that of a list",
        says=True,
    ),
    lifecycle.NameTakenError: Answer(
        409,
        "name-taken",
        _INFO,
        "that name is taken",
        "`netboot inventory list machines` has those that are taken",
        says=True,
    ),
    lifecycle.NoClusterError: Answer(
        400,
        "no-cluster",
        _INFO,
        "this service knows no cluster",
        "restart the service once they are declared: docs/kubernetes.md",
        says=True,
    ),
    lifecycle.TooManyRemovedError: Answer(
        409,
        "too-many-removed",
        _INFO,
        "so many machines would go that it may be an accident",
        "edit the files by hand, look with `netboot config diff`, and let that in with `netboot config accept`",
        says=True,
    ),
    lifecycle.PreconditionFailedError: Answer(
        412,
        "precondition-failed",
        _INFO,
        "it was changed meanwhile; nothing was done",
        "look at it again, and send the ETag of that answer if it is still meant",
        says=True,
    ),
    lifecycle.IdempotencyKeyReusedError: Answer(
        422,
        "idempotency-key-reused",
        _INFO,
        "the key is of another request",
        "send a new key with each act; the same one only with the same request again",
        says=True,
    ),
    lifecycle.StillRunningError: Answer(
        409,
        "still-running",
        _INFO,
        "it is being done",
        "ask again with the same key, or look whether it was done",
        says=True,
    ),
    lifecycle.AnswerNotKeptError: Answer(
        409,
        "answer-not-kept",
        _INFO,
        "it was done; nothing was done now",
        "look at what it came to, `netboot audit` has it; a token that nobody has: see `netboot token list`, take it "
        "back with `netboot token revoke`, and ask for another with a new key",
        says=True,
    ),
    images.NotDurableError: Answer(
        503,
        "not-durable",
        _ERROR,
        "it is in place, and a power cut may undo it",
        "see the log of the service, and the disk",
        retry_after=10,
    ),
    lifecycle.DoneInPartError: Answer(
        409,
        "done-in-part",
        _WARNING,
        "a part of it was done",
        "look at how it stands, `netboot audit` has what was done, and ask for the rest with a new key",
        says=True,
    ),
    lifecycle.OutcomeUnknownError: Answer(
        409,
        "outcome-unknown",
        _INFO,
        "cannot tell whether it was done",
        "look whether it was, then ask with a new key where it is still wanted",
        says=True,
    ),
    lifecycle.OverloadedError: Answer(
        503, "overloaded", _WARNING, "too much at once", "try again", says=True, retry_after=5
    ),
}
