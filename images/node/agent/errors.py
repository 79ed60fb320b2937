"""Why the agent waits and tries again. Every message is a line for the console: cause and remedy.

AgentError
├── SettingsError       what the initrd should have left is not there, or not right
├── TpmError            the TPM refuses or does not answer
├── NetworkError        nobody answers, or TLS does not believe who does
│   └── ValidityError     … because of the dates in its certificate: the clock may be wrong
├── AnswerError         what came is no answer to what was asked
├── RefusedError        the server said no, with a status
└── RequestError        the certificate request was denied, or is of no use any more: begin again
"""


class AgentError(Exception):
    """Anything after which the agent tries again; `after` is the least time to wait, in seconds."""

    def __init__(self, message: str, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after


class SettingsError(AgentError):
    """What the initrd should have left is not there, or not right."""


class TpmError(AgentError):
    """The TPM refuses or does not answer; `code` is its response code, 0 where it gave none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class NetworkError(AgentError):
    """Nobody answers, or TLS does not believe who does."""


class ValidityError(NetworkError):
    """By this machine's clock the server's certificate is not valid yet (`early`), or no longer."""

    def __init__(self, message: str, *, early: bool) -> None:
        super().__init__(message)
        self.early = early


class AnswerError(AgentError):
    """What came is no answer to what was asked."""


class RefusedError(AgentError):
    """The server answered, and not with success: `status` is HTTP's."""

    def __init__(self, message: str, status: int, after: float = 0.0) -> None:
        super().__init__(message, after)
        self.status = status


class RequestError(AgentError):
    """The certificate request was denied, or is of no use any more: begin again with hello."""
