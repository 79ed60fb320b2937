"""A filter of system calls for what Landlock leaves open: ways round its rules for TCP, other processes, the kernel.

A process that needs no network makes no socket and connects none, whatever Landlock the kernel has; and none makes one
for local datagrams, which go by any path without being connected (the journal's, the service manager's). The others
cannot reach a TCP port by another name: Multipath TCP, SCTP and SMC are none of Landlock's TCP sockets, and Fast Open
connects without `connect`. Source: linux/seccomp.h, linux/filter.h; numbers: asm/unistd.h of both architectures.
"""

import ctypes
import errno
import os
import platform
import struct
from typing import NamedTuple

_PR_SET_SECCOMP, _MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH = 0, 4  # offsets in struct seccomp_data
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
_FAST_OPEN = 0x20000000  # MSG_FASTOPEN
_UNIX = 1  # AF_UNIX: names may be looked up with it, too
_DOMAINS = (2, 10, 16)  # AF_INET, AF_INET6, AF_NETLINK (names are looked up with it)
_CONNECTED = tuple(kind | flags for kind in (1, 5) for flags in (0, 0o4000, 0o2000000, 0o2004000))
"""SOCK_STREAM and SOCK_SEQPACKET, with SOCK_NONBLOCK and SOCK_CLOEXEC: with these an address is of no use."""
_PROTOCOLS = (0, 6, 17)  # the usual one, TCP, UDP


class _Machine(NamedTuple):
    """`arch`: AUDIT_ARCH_…, `calls`: numbers by name."""

    arch: int
    calls: dict[str, int]


_SAME = {"io_uring_setup": 425, "pidfd_send_signal": 424, "pidfd_open": 434, "pidfd_getfd": 438, "process_madvise": 440}
_SAME |= {"open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "mount_setattr": 442}
_CALLS: dict[str, tuple[int, int]] = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "open_by_handle_at": (304, 265),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
"""x86-64, AArch64."""
_MACHINES = {
    name: _Machine(arch, _SAME | {call: numbers[place] for call, numbers in _CALLS.items()})
    for place, (name, arch) in enumerate((("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)))
}
_OWN_ONLY = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_FLAGS = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
"""Which argument the flags are."""
_SELF_ONLY = {"prlimit64": 0, "sched_setaffinity": 0, "sched_setattr": 0, "sched_setscheduler": 0, "sched_setparam": 0}
_SELF_ONLY |= {"setpriority": 1, "ioprio_set": 1}
"""Which argument says whose; 0: the caller's. A limit set to nothing ends a process as a signal does."""
_NETWORK = ("socket", "connect")
_NEVER = tuple(
    name for name in (*_SAME, *_CALLS) if name not in {*_OWN_ONLY, *_SELF_ONLY, *_FLAGS, *_NETWORK, "socketpair"}
)


def supported() -> bool:
    """Whether the filter is known for this architecture."""
    return platform.machine() in _MACHINES


def restrict(*, network: bool, others: bool) -> None:
    """Filter from now on, this thread and what it starts. `network`: IP sockets and connections are allowed; `others`:
    signals to other processes are (a server with a process of its own below it).

    Raises:
        OSError: the kernel refuses. KeyError: not `supported`.
    """
    program = _program(_MACHINES[platform.machine()], network, None if others else os.getpid())
    filters = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        """struct sock_fprog."""

        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    libc = ctypes.CDLL(None, use_errno=True)
    whole = Filter(len(program) // 8, ctypes.addressof(filters))
    for option, argument in ((_PR_SET_NO_NEW_PRIVS, 1), (_PR_SET_SECCOMP, _MODE_FILTER)):
        more = ctypes.byref(whole) if option == _PR_SET_SECCOMP else ctypes.c_ulong(0)
        if libc.prctl(option, ctypes.c_ulong(argument), more, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            raise OSError(ctypes.get_errno(), "prctl: the kernel takes no filter of system calls")


def _program(machine: _Machine, network: bool, pid: int | None) -> bytes:
    calls = machine.calls
    refuse = _step(_RETURN, _ERRNO | errno.EPERM)
    program = [_step(_LOAD, _ARCH), _step(_EQUAL, machine.arch, 1, 0), refuse]
    program += [_step(_LOAD, _NUMBER), _step(_AT_LEAST, _X32, 0, 1), refuse]
    for name in _NEVER if network else (*_NEVER, *_NETWORK):
        program += [_step(_EQUAL, calls[name], 0, 1), refuse]
    allowed: dict[str, tuple[tuple[int, tuple[int, ...]], ...]] = {
        "socketpair": ((1, _CONNECTED),),
        "socket": ((0, _DOMAINS), (2, _PROTOCOLS)),
    }
    allowed |= {name: ((argument, (0,)),) for name, argument in _SELF_ONLY.items()}
    if pid is not None:
        allowed |= {name: ((0, (pid,)),) for name in _OWN_ONLY if name != "tkill"} | {"tkill": ((0, ()),)}
    local = _only_for(_UNIX, _one_of(1, _CONNECTED, refuse) + _step(_RETURN, _ALLOW))
    first = {"socket": _step(_LOAD, _argument(0)) + local}
    for name, arguments in allowed.items():
        checks = first.get(name, b"") + b"".join(_one_of(argument, values, refuse) for argument, values in arguments)
        program.append(_only_for(calls[name], checks + _step(_RETURN, _ALLOW)))
    for name, argument in _FLAGS.items():
        check = _step(_LOAD, _argument(argument)) + _step(_ANY_BIT, _FAST_OPEN, 0, 1) + refuse
        program.append(_only_for(calls[name], check + _step(_RETURN, _ALLOW)))
    return b"".join([*program, _step(_RETURN, _ALLOW)])


def _only_for(number: int, steps: bytes) -> bytes:
    """Steps to be taken where what was loaded last is this."""
    return _step(_EQUAL, number, 0, len(steps) // 8) + steps


def _one_of(argument: int, values: tuple[int, ...], refuse: bytes) -> bytes:
    jumps = [_step(_EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    return _step(_LOAD, _argument(argument)) + b"".join(jumps) + refuse


def _argument(number: int) -> int:
    """Where its lower half is; both architectures are little-endian."""
    return 16 + 8 * number


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
