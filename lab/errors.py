"""Errors of the lab.

LabError
├── DeadlineError    something did not happen in time; the message says what was waited for and shows the end of the log
├── EndedError       a process or a machine ended while something was expected of it
│   └── LateError    a command did not end in time: a DeadlineError, too
├── DefectError      the service that is tried logged a traceback; the message is that
└── UnusableError    this host cannot do what is asked; the message says what it lacks
"""


class LabError(Exception):
    """Anything that goes wrong in the lab; the message names the log to read."""


class DeadlineError(LabError):
    """It did not happen in time."""


class EndedError(LabError):
    """It ended too early."""


class LateError(EndedError, DeadlineError):
    """A command was ended, for it had not ended by itself in time."""


class DefectError(LabError):
    """The service that is tried has a defect."""


class UnusableError(LabError):
    """This host lacks something."""
