"""How a started Python becomes one of the processes of the service."""

from importlib import import_module

from netboot import logs
from netboot.process import ProcessSpec, end_with


def start(spec: ProcessSpec) -> None:
    """Be the process of this kind until told to stop: `run` of the file here that bears the kind's name.

    Raises:
        OrphanedError: the supervisor has ended already.
    """
    end_with(spec.supervisor)
    logs.set_up(spec.name)
    import_module(f"netboot.processes.{spec.kind}").run(spec)
