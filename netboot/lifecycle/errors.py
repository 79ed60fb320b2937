"""Errors of the service. Each has its row in `netboot.failures`.

LifecycleError
├── BadClaimError              what was sent does not pass the allow-list
├── NoSuchBootError            no such boot, or it is another machine's
├── NoSuchMachineError
├── NoSuchChannelError
├── NotDeclaredError           the inventory has no such thing, or no such kind of things
├── NoSuchImageError
├── ChannelPinnedError         the inventory says which image; edit it there
├── ActRefusedError            what an operator wants of a machine cannot be
├── NotAttestedError           a boot that did not attest has no proof
├── UnfitImageError            machines of the channel could not boot the image
├── RevokedImageError          the signed site bundle revokes the image
├── NoSuchRolloutError
├── NoSuchRemedyError
├── RolloutRefusedError        what is asked of a rollout cannot be, as it is now
├── TooOftenError              more than is written down for one boot, one address or all
├── NotAuthenticatedError      the operator's token is missing, wrong or revoked
│   ├── TokenExpiredError
│   ├── BadTokenError          of an issuer, which is not by it, or not for us
│   ├── LoginExpiredError      of an issuer, whose time is over
│   └── LoginRefusedError      the issuer gives no token
├── NotAllowedError            the operator's role does not suffice
│   └── NoRoleError            who asks is known, and has none
│       └── BlockedError
├── PreconditionFailedError    it was changed since whoever asks looked
├── IdempotencyKeyReusedError  for another request
├── StillRunningError          the first request with its key is
├── AnswerNotKeptError         it was done with its key before
├── DoneInPartError            and the rest was not, or may be undone
├── OutcomeUnknownError        it was begun with its key before
└── CannotTellError            right now; trying again is right
    ├── NotReadyError          nothing has been published yet
    ├── JournalUnavailableError
    ├── StateUnavailableError
    ├── InventoryUnreadError   its files change, or cannot be read to their end
    ├── IssuerUnavailableError who vouches for people cannot be asked
    ├── NoTokensError         there is no operator's token to compare with
    ├── NoProofYetError        of a boot that attested
    └── OverloadedError        too many at once, or from one address
"""


class LifecycleError(Exception):
    """Anything that the service answers with words of its own."""


class BadClaimError(LifecycleError):
    """What was sent does not pass the allow-list. `field`: the value that does not, by its name there; "": none does,
    or none alone."""

    def __init__(self, message: str = "", *, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class NoClusterError(LifecycleError):
    """The service knows no cluster, so there is nothing of what is asked for."""


class NoSuchBootError(LifecycleError):
    """No such boot, or it is another machine's."""


def unheard_of(boot: str) -> NoSuchBootError:
    """Of a boot that nobody knows, to whoever named it."""
    return NoSuchBootError(f"no such boot: {boot[:80]} was never heard of, or is longer ago than is kept")


class NoSuchMachineError(LifecycleError):
    """The inventory has no machine of that name."""


class NoSuchChannelError(LifecycleError):
    """The inventory has no channel of that name."""


class NotDeclaredError(LifecycleError):
    """The inventory's files declare no item of that kind and name, or there is no such kind."""


class NoSuchImageError(LifecycleError):
    """The store has no image of that digest."""


class NotAttestedError(LifecycleError):
    """A boot that did not attest has no proof."""


class ChannelPinnedError(LifecycleError):
    """The inventory says which image; edit it there."""


class InventoryChangedError(LifecycleError):
    """What is to be accepted is not what waits: the files changed since it was shown, or nothing waits."""


class InventoryReadOnlyError(LifecycleError):
    """The inventory, or that file of it, is not the service's to write; the message says where to edit it."""


class NameTakenError(LifecycleError):
    """Something of that kind is declared by this name already."""


class TooManyRemovedError(LifecycleError):
    """So many machines would go that it may be an accident."""


class UnfitImageError(LifecycleError):
    """Machines of the channel could not boot the image."""


class RevokedImageError(LifecycleError):
    """The signed site bundle revokes the image."""


class ActRefusedError(LifecycleError):
    """What an operator wants of a machine cannot be; the words say why, and what to do first."""


class NoSuchRolloutError(LifecycleError):
    """There is no rollout of that number."""


class NoSuchRemedyError(LifecycleError):
    """There is no remedy of that number, or it is longer ago than is kept."""


class RolloutRefusedError(LifecycleError):
    """What is asked of a rollout cannot be, as it is now."""


class NotAuthenticatedError(LifecycleError):
    """The operator's token is missing, wrong or revoked."""


class TokenExpiredError(NotAuthenticatedError):
    """The token was one of ours."""


class BadTokenError(NotAuthenticatedError):
    """A token of an issuer is not by it, or not for us; the words say which."""


class LoginExpiredError(NotAuthenticatedError):
    """The time of an issuer's token is over."""


class LoginRefusedError(NotAuthenticatedError):
    """The issuer gives no token. `code`: why, as RFC 6749, 5.2 and RFC 8628, 3.5 name it; "": otherwise."""

    def __init__(self, message: str = "", *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class NotAllowedError(LifecycleError):
    """Who asks is known, and has not the role that this needs."""


class NoRoleError(NotAllowedError):
    """Somebody vouches for who asks, and this site gives them no role, or has blocked them."""


class BlockedError(NoRoleError):
    """Who asks is known, and blocked here."""


class PreconditionFailedError(LifecycleError):
    """What is to be changed is not (any more) what whoever asks saw of it."""


class IdempotencyKeyReusedError(LifecycleError):
    """With the key of this request another one was made before."""


class StillRunningError(LifecycleError):
    """The first request with this key has not been answered yet."""


class AnswerNotKeptError(LifecycleError):
    """What the first request with this key wanted was done; its answer is too large, too old or too secret to keep."""


class DoneInPartError(LifecycleError):
    """A part of what was asked for is done, and the rest is not, or may be undone by a power cut."""


class OutcomeUnknownError(LifecycleError):
    """The first request with this key was begun, and ended without an answer; or something was written, and what it
    came to cannot be told."""


class CannotTellError(LifecycleError):
    """Cannot tell right now; trying again is right."""


class NotReadyError(CannotTellError):
    """Nothing has been published yet."""


class JournalUnavailableError(CannotTellError):
    """The disk refuses, or the journal is full."""


class StateUnavailableError(CannotTellError):
    """The state cannot be read."""


class InventoryUnreadError(CannotTellError):
    """The inventory's files change all the time, or cannot be read to their end."""


class IssuerUnavailableError(CannotTellError):
    """Who vouches for people, an issuer or an API server, cannot be asked right now."""


class NoTokensError(CannotTellError):
    """There is no operator's token to compare with: nobody can be told from anybody."""


class TooOftenError(LifecycleError):
    """More than is written down for one boot, for one address or for all."""


class NoProofYetError(CannotTellError):
    """Of a boot that attested: it is made later."""


class OverloadedError(CannotTellError):
    """Too many at once, or from one address."""
