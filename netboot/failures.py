"""The one table of failures: what each exception becomes on the wire, in the log and in a machine's script.

All servers read it; `netboot.failures_of_acts` is a part of it. What is not in it (nor any of its bases) is a defect of
ours: status 500, no detail. Errors of builds are not: no server builds.
"""

import logging

from images import errors as images
from images.values.strict import FaultsError
from netboot.answer import UNEXPECTED, Answer
from netboot.failures_of_acts import ACTS
from netboot.join import errors as join
from netboot.lifecycle import errors as lifecycle

__all__ = ["TABLE", "UNEXPECTED", "Answer", "answer_to"]
_DEBUG, _INFO, _WARNING, _ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
_CORRECT = "correct the request"
_AGAIN = "try again"

_STORE = Answer(
    503, "store", _ERROR, "the store cannot be used right now", "see the log of the service", retry_after=10
)

TABLE: dict[type[BaseException], Answer] = {
    FaultsError: Answer(400, "faults", _INFO, "what was sent has faults", _CORRECT, says=True),
    lifecycle.LifecycleError: UNEXPECTED,
    lifecycle.BadClaimError: Answer(
        400, "bad-request", _DEBUG, "what was sent cannot be read", _CORRECT, says=True, script="refused"
    ),
    lifecycle.NoSuchBootError: Answer(
        404, "no-such-boot", _DEBUG, "no such boot", "see `netboot boot list`", says=True, script="refused"
    ),
    lifecycle.NoSuchMachineError: Answer(
        404, "no-such-machine", _DEBUG, "no such machine", "see `netboot machine list`", says=True, script="refused"
    ),
    lifecycle.NoSuchChannelError: Answer(
        404, "no-such-channel", _DEBUG, "no such channel", "see `netboot channel list`", says=True
    ),
    lifecycle.NoSuchImageError: Answer(
        404, "no-such-image", _DEBUG, "no such image", "see `netboot image list`", says=True
    ),
    lifecycle.NotAttestedError: Answer(
        409, "not-attested", _DEBUG, "it has not attested", "see `netboot boot show`", says=True
    ),
    lifecycle.ChannelPinnedError: Answer(
        409, "channel-pinned", _INFO, "the inventory pins this channel", "edit the channel in the inventory", says=True
    ),
    lifecycle.InventoryChangedError: Answer(
        409, "inventory-changed", _INFO, "what waits is another inventory", "look with `netboot config diff`", says=True
    ),
    lifecycle.UnfitImageError: Answer(
        422,
        "unfit-image",
        _INFO,
        "machines of the channel could not boot it",
        "choose another image or channel; or say `force`, which sets it all the same",
        says=True,
    ),
    lifecycle.RevokedImageError: Answer(
        422, "revoked-image", _INFO, "that image is revoked", "see `netboot image revocations`", says=True
    ),
    lifecycle.NoSuchRolloutError: Answer(
        404, "no-such-rollout", _DEBUG, "no such rollout", "see `netboot rollout history`", says=True
    ),
    lifecycle.NoSuchRemedyError: Answer(
        404, "no-such-remedy", _DEBUG, "no such remedy", "see `netboot remedies status`", says=True
    ),
    lifecycle.RolloutRefusedError: Answer(
        409, "rollout-refused", _INFO, "that cannot be", "see `netboot rollout status`", says=True
    ),
    lifecycle.NotAuthenticatedError: Answer(
        401,
        "not-authenticated",
        _INFO,
        "the operator's token is missing, wrong or revoked",
        "send one that is in force, by `--token-file` or in the file of the context (`netboot context list`): an admin "
        "makes another, `netboot access token create`; for commands of the service's host, `netboot access token host`",
        script="refused",
    ),
    lifecycle.TokenExpiredError: Answer(
        401,
        "token-expired",
        _INFO,
        "the operator's token has expired",
        "an admin makes another: `netboot access token create`; for commands of its host: `netboot access token host`",
        says=True,
        script="refused",
    ),
    lifecycle.BadTokenError: Answer(
        401,
        "bad-token",
        _INFO,
        "the token cannot be taken",
        "log in again: `netboot login`",
        says=True,
        script="refused",
    ),
    lifecycle.LoginExpiredError: Answer(
        401, "login-expired", _INFO, "the login has ended", "log in again: `netboot login`", says=True, script="refused"
    ),
    lifecycle.LoginRefusedError: Answer(
        401, "login-refused", _INFO, "the issuer gives no token", "log in again", says=True, script="refused"
    ),
    lifecycle.NoRoleError: Answer(
        403, "no-role", _INFO, "no role here", "ask an admin of the service for one: `roles` in netboot.yaml", says=True
    ),
    lifecycle.NotAllowedError: Answer(
        403,
        "not-allowed",
        _INFO,
        "that needs another role",
        "an admin of the service gives roles: `netboot access token create`",
        says=True,
    ),
    lifecycle.CannotTellError: Answer(503, "unavailable", _WARNING, "cannot tell right now", _AGAIN, retry_after=5),
    lifecycle.NotReadyError: Answer(
        503,
        "not-ready",
        _WARNING,
        "nothing has been published yet",
        "see `netboot config check`",
        says=True,
        retry_after=5,
    ),
    lifecycle.NoProofYetError: Answer(
        503,
        "no-proof-yet",
        _DEBUG,
        "it is not made yet",
        "try again later; without `proof_key` none is made: `netboot key proofs rotate`",
        says=True,
        retry_after=30,
    ),
    lifecycle.JournalUnavailableError: Answer(
        503, "journal-unavailable", _ERROR, "cannot be written down right now", _AGAIN, retry_after=10
    ),
    lifecycle.StateUnavailableError: Answer(
        503,
        "state-unavailable",
        _ERROR,
        "the state cannot be read right now",
        "try again; where it stays so, `netboot doctor` and the log of the service say which file it is",
        retry_after=5,
    ),
    lifecycle.InventoryUnreadError: Answer(
        503,
        "inventory-unread",
        _WARNING,
        "the inventory cannot be read",
        "see `netboot doctor`",
        says=True,
        retry_after=30,
    ),
    lifecycle.IssuerUnavailableError: Answer(
        503,
        "issuer-unavailable",
        _WARNING,
        "who vouches for people cannot be asked right now",
        "try again; a token of `netboot access token create` works meanwhile",
        says=True,
        retry_after=5,
    ),
    lifecycle.NoTokensError: Answer(
        503,
        "no-tokens",
        _ERROR,
        "the service has no usable token file",
        "see management.token_file and the log",
        retry_after=30,
    ),
    lifecycle.TooOftenError: Answer(429, "too-often", _DEBUG, "too much in a short time", _AGAIN, retry_after=15),
    join.JoinError: UNEXPECTED,
    join.UnknownMachineError: Answer(
        404, "unknown-machine", _INFO, "no such machine", "declare or enrol the machine, then wait", says=True
    ),
    join.NoSuchTokenError: Answer(404, "no-such-token", _INFO, "no such token", "see `netboot token list`", says=True),
    join.RefusedError: Answer(
        403,
        "refused",
        _INFO,
        "this machine may not join",
        "put that right, with `netboot machine show` of it beside; the machine asks again by itself",
        says=True,
    ),
    join.PendingError: Answer(
        403, "pending", _INFO, "an operator has not approved it yet", "see `netboot machine list`", says=True
    ),
    join.NotShownError: Answer(
        409,
        "not-shown",
        _INFO,
        "the enrolment is not what was shown",
        "look with `netboot machine show`, then approve what it shows",
        says=True,
    ),
    join.HeldError: Answer(
        409, "held", _WARNING, "another key holds this boot's credential", "reboot the machine", says=True
    ),
    join.StaleError: Answer(410, "stale", _INFO, "the state is too old", "begin again with hello", says=True),
    join.ClusterUnavailableError: Answer(
        503, "cluster-unavailable", _WARNING, "the cluster cannot be used now", _AGAIN, says=True, retry_after=10
    ),
    join.CordonedError: Answer(
        503, "cordoned", _INFO, "its Node is cordoned", "see that the controllers run", says=True, retry_after=3
    ),
    join.NodeKeptError: Answer(
        503,
        "node-kept",
        _WARNING,
        "finalizers keep its Node",
        "take them off, in the cluster",
        says=True,
        retry_after=10,
    ),
    images.ImageError: UNEXPECTED,
    images.StoreError: _STORE,
    images.NotPermittedError: _STORE._replace(code="store-not-permitted"),  # of the service's account, not of who asks
    images.NotFoundError: Answer(
        404, "not-found", _DEBUG, "no such image, blob, key or channel", "see `netboot image list`", says=True
    ),
    images.CorruptError: Answer(
        502, "corrupt", _ERROR, "what is stored is damaged", "run `netboot image verify`", says=True
    ),
    images.BusyError: Answer(503, "busy", _INFO, "another writer holds the store", _AGAIN, says=True, retry_after=5),
    images.InUseError: Answer(
        409, "in-use", _INFO, "a channel, a boot or a recent use refers to it", "see `netboot channel list`", says=True
    ),
    images.SignatureError: Answer(
        422, "signature", _WARNING, "its signature cannot be accepted", "run `netboot image verify`", says=True
    ),
    images.UnknownSignerError: Answer(
        422,
        "unknown-signer",
        _WARNING,
        "it is signed by a key that is not trusted here",
        "ask its signer for the public key, compare its id with what they tell you, and only then copy it to `keys`",
        says=True,
    ),
    images.BadSignatureError: Answer(
        422, "bad-signature", _WARNING, "its signature does not fit", "build or copy the image again", says=True
    ),
    **ACTS,
}


def answer_to(error: BaseException) -> Answer:
    """The row of an exception, or of the nearest of its bases; `UNEXPECTED` for what has none."""
    return next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), UNEXPECTED)
