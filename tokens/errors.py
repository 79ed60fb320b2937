"""Why a credential, a statement or a request was not accepted: a class for each reason, no secret in any.

TokenError
├── MalformedError              the bytes are not the structure they should be
├── StateError                  sealed state
│   ├── UnknownKeyError           sealed under a key that is not in the keyset (any more)
│   ├── ForgedStateError          the seal does not fit the bytes, or was made for another purpose
│   ├── ExpiredStateError
│   └── FutureStateError          sealed by a clock that is ahead of ours: the message says by how much
├── TpmError                    what a TPM said, or who says it is one
│   ├── UnsupportedKeyError       an algorithm, curve or size that we do not accept
│   ├── WeakAttestationKeyError   the AK's attributes allow it to sign what a TPM did not make
│   ├── WrongPlaceError           the AK is not under the endorsement hierarchy of this EK
│   ├── NotAQuoteError
│   ├── WrongNonceError           the quote does not cover this exchange
│   ├── WrongSelectionError       other PCRs than were asked for, or an unextended bank
│   ├── PcrMismatchError          the PCR values are not those that were quoted
│   ├── PolicyError               the quoted PCRs are not what the policy allows
│   ├── EventLogError             the log does not lead to the quoted PCRs
│   ├── BadQuoteSignatureError
│   └── ChainError                an EK certificate that does not lead to a root that is trusted
└── CsrError                    a certificate request that is denied; the words are for the operator
    ├── BindingError              the token is not for this node with this key
    ├── ForeignNameError          a serving certificate for a name or address that is not this machine's
    └── NotAllowedError           well formed, and the machine may not have it now
        ├── OtherBootError          asked for with a certificate that is not known to be of the boot in force
        └── TooManyError            more certificates of the boot in force are alive than a kubelet needs
"""


class TokenError(Exception):
    """Anything that makes a credential, a statement or a request unacceptable."""


class MalformedError(TokenError):
    """The bytes are not the structure they should be."""


class StateError(TokenError):
    """Sealed state that cannot be used."""


class UnknownKeyError(StateError):
    """Sealed under a key that is not in the keyset (any more)."""


class ForgedStateError(StateError):
    """The seal does not fit the bytes, or was made for another purpose."""


class ExpiredStateError(StateError):
    """Sealed too long ago."""


class FutureStateError(StateError):
    """Sealed by a clock that is ahead of ours."""


class TpmError(TokenError):
    """A TPM's statement that cannot be accepted."""


class UnsupportedKeyError(TpmError):
    """An algorithm, curve or size that we do not accept."""


class WeakAttestationKeyError(TpmError):
    """The AK's attributes allow it to sign what a TPM did not make."""


class WrongPlaceError(TpmError):
    """The AK is not under the endorsement hierarchy of this EK."""


class NotAQuoteError(TpmError):
    """Not a quote made by a TPM."""


class WrongNonceError(TpmError):
    """The quote does not cover this exchange."""


class WrongSelectionError(TpmError):
    """Other PCRs than were asked for, or an unextended bank."""


class PcrMismatchError(TpmError):
    """The PCR values are not those that were quoted."""


class PolicyError(TpmError):
    """The quoted PCRs are not what the policy allows."""


class EventLogError(TpmError):
    """The event log does not lead to the quoted PCRs."""


class BadQuoteSignatureError(TpmError):
    """The quote's signature is not the AK's."""


class ChainError(TpmError):
    """An EK certificate that does not lead to a root that is trusted here."""


class CsrError(TokenError):
    """A certificate request that is denied, with the reason for the operator."""


class BindingError(CsrError):
    """The token is not for this node with this key."""


class ForeignNameError(CsrError):
    """A serving certificate for a name or address that is not this machine's."""


class NotAllowedError(CsrError):
    """Well formed, and the machine may not have it now."""


class OtherBootError(NotAllowedError):
    """Asked for with a certificate that is not known to be one of the machine's boot in force."""


class TooManyError(NotAllowedError):
    """More certificates of the boot in force are alive than a kubelet needs: somebody else may have its key."""
