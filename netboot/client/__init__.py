"""The management API from Python: docs/python-client.md. Nothing of the service is imported by it."""

from netboot.client.client import Client, connect
from netboot.client.errors import CannotTellError, ClientError, FailedError, NotAllowedError, Problem, UnknownError
from netboot.client.service import Service, TokenFile
from netboot.client.watch import Watch

__all__ = ["CannotTellError", "Client", "ClientError", "FailedError", "NotAllowedError", "Problem", "Service"]
__all__ += ["TokenFile", "UnknownError", "Watch", "connect"]
