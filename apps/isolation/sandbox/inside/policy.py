"""Which system calls are answered how: the wall where Landlock does not reach.

The network: sockets of streams may be made, because programs make them to ask about
themselves, but none can be connected, bound or sent through to an address. Processes:
a callable starts none, a command may start some. What it does not do is look at
files, but for what Landlock cannot deny.
"""

from __future__ import annotations

from .seccomp import (
    ABSENT,
    ALLOW,
    ASK,
    DENY,
    NO_MEMORY,
    Clause,
    Rules,
    equals,
    has_any,
    masked,
    over,
)

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _SEQPACKET, _TYPE = 1, 5, 0xF
_TCP = 6
_TYPE_FOR, _TALK_TO_CONSOLE = 0x5412, 0x541C
_FAST_OPEN = 0x20000000
_OF_SOCKET, _LINGER = 1, 13
_PARENT_DEATH, _DUMPABLE = 1, 4
_THREAD, _NAMESPACES = 0x10000, 0x7E020000

_MACHINE = [
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "kcmp",
    "pidfd_getfd",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_send_signal",
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "open_tree_attr",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "swapon",
    "swapoff",
    "reboot",
    "sethostname",
    "setdomainname",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
    "acct",
    "quotactl",
    "quotactl_fd",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "clock_adjtime",
    "open_by_handle_at",
    "fanotify_init",
    "iopl",
    "ioperm",
    "syslog",
    "vhangup",
    "shmget",
    "shmat",
    "shmctl",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "semget",
    "semop",
    "semctl",
    "semtimedop",
    "mq_open",
    "mq_unlink",
]
# Programs try these as a matter of course, and do without.
_QUIET = [
    "name_to_handle_at",
    "setpriority",
    "ioprio_set",
    "sched_setscheduler",
    "sched_setattr",
    "sched_setparam",
    "migrate_pages",
    "move_pages",
]
# Files that lie in memory and in no folder could not be counted.
_GONE = [
    "clone3",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "memfd_create",
    "memfd_secret",
]
_ABOUT_FILES = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "lchown",
    "fchown",
    "fchownat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
    "file_setattr",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
]


def rules(
    own_pid: int, *, is_command: bool, memory: int, landlock: int, has_mounts: bool
) -> Rules:
    """The rules for one process.

    `memory` are the bytes that one request for memory may have, `landlock` is the
    version in place (0: none), `has_mounts` says that what lies outside is not
    mounted, or not to be written.
    """
    found: Rules = {name: ([], ASK) for name in _MACHINE}
    found |= {name: ([], DENY) for name in _QUIET}
    found |= {name: ([], ABSENT) for name in _GONE}
    found |= _network()
    found |= _processes(own_pid, start=ALLOW if is_command else ASK)
    found |= _signals(own_pid, is_free=is_command and (has_mounts or landlock >= 6))
    found["mmap"] = ([([over(1, memory)], ASK)], ALLOW)
    found["mremap"] = ([([over(2, memory)], ASK)], ALLOW)
    if not has_mounts:
        found |= {name: ([], ASK) for name in _ABOUT_FILES}
        if landlock < 3:
            found["truncate"] = ([], ASK)
    return found


def without_asking(found: Rules, *, is_command: bool) -> Rules:
    """The same rules where nobody can be asked: what would be asked fails at once.

    A command may start processes, as many as its limit of them lets it.
    """
    refusals = {"mmap": NO_MEMORY, "mremap": NO_MEMORY}
    if is_command:
        refusals |= {"execve": ALLOW, "execveat": ALLOW}

    def plain(name: str, answer: int) -> int:
        return refusals.get(name, DENY) if answer == ASK else answer

    return {
        name: ([(tests, plain(name, to)) for tests, to in clauses], plain(name, last))
        for name, (clauses, last) in found.items()
    }


def _network() -> Rules:
    is_stream = masked(1, _TYPE, _STREAM)
    made: list[Clause] = [
        ([equals(0, family), is_stream, equals(2, protocol)], ALLOW)
        for family, protocol in (
            (_UNIX, 0),
            (_INET, 0),
            (_INET, _TCP),
            (_INET6, 0),
            (_INET6, _TCP),
        )
    ]
    made.append(([equals(0, _NETLINK)], DENY))
    return {
        "socket": (made, ASK),
        "socketpair": (
            [([is_stream], ALLOW), ([masked(1, _TYPE, _SEQPACKET)], ALLOW)],
            ASK,
        ),
        # Whoever closes the other end of such a socket would have to wait.
        "setsockopt": ([([equals(1, _OF_SOCKET), equals(2, _LINGER)], DENY)], ALLOW),
        "connect": ([], ASK),
        "bind": ([], ASK),
        "listen": ([], ASK),
        "sendto": ([([over(4, 0)], ASK), ([has_any(3, _FAST_OPEN)], ASK)], ALLOW),
        "sendmsg": ([([has_any(2, _FAST_OPEN)], ASK)], ALLOW),
        "sendmmsg": ([([has_any(3, _FAST_OPEN)], ASK)], ALLOW),
    }


def _processes(own_pid: int, *, start: int) -> Rules:
    is_own: list[Clause] = [([equals(0, 0)], ALLOW), ([equals(0, own_pid)], ALLOW)]
    return {
        "clone": (
            [([has_any(0, _NAMESPACES)], DENY), ([has_any(0, _THREAD)], ALLOW)],
            start,
        ),
        "fork": ([], start),
        "vfork": ([], start),
        # That it ends with its parent, and that it can be looked into from outside.
        "prctl": (
            [([equals(0, one)], DENY) for one in (_PARENT_DEATH, _DUMPABLE)],
            ALLOW,
        ),
        # Limits of others of the same account; only a call that sets some.
        "prlimit64": ([*is_own, ([over(2, 0)], ASK)], ALLOW),
        # Signals by way of files: who is told of what happens on a descriptor.
        "fcntl": ([([equals(1, command)], DENY) for command in (8, 10, 15)], ALLOW),
        "ioctl": (
            [
                *([([equals(1, one)], DENY) for one in (_TYPE_FOR, _TALK_TO_CONSOLE)]),
                # Everything that asks about, or changes, the network through a socket.
                ([masked(1, 0xFF00, 0x8900)], DENY),
            ],
            ALLOW,
        ),
        "execve": ([], ASK),
        "execveat": ([], ASK),
    }


def _signals(own_pid: int, *, is_free: bool) -> Rules:
    """Signals to oneself; to others only where these are the run's own for sure."""
    if is_free:
        return {}
    to_itself: list[Clause] = [([equals(0, own_pid)], ALLOW)]
    return {
        "kill": (to_itself, ASK),
        "tgkill": (to_itself, ASK),
        "tkill": ([], ASK),
    }
