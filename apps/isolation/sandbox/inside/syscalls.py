"""Numbers of the system calls that the filter knows, for x86_64 and aarch64.

Source: the tables `asm/unistd_64.h` and `asm-generic/unistd.h` of the Linux kernel.
`None` stands where an architecture does not have a call.
"""

from __future__ import annotations

NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # Network.
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "setsockopt": (54, 208),
    # Processes.
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "prlimit64": (302, 261),
    "prctl": (157, 167),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # The machine.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "iopl": (172, None),
    "ioperm": (173, None),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    # Memory that processes share, and memory at all.
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mmap": (9, 222),
    "mremap": (25, 216),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    # What a file is said to be, which Landlock does not look at.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "truncate": (76, 45),
}

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Of each machine its column above and its number in `seccomp_data.arch`."""
# The call `seccomp`, and where the three calls of Landlock begin.
SECCOMP = {"x86_64": 317, "aarch64": 277}
LANDLOCK = 444


def number_of(name: str, machine: str) -> int | None:
    """The number of a call on a machine; `None` where there is none."""
    return NUMBERS[name][ARCHITECTURES[machine][0]]


def names_on(machine: str) -> dict[int, str]:
    """The names of the calls by their numbers on a machine."""
    column = ARCHITECTURES[machine][0]
    found = ((numbers[column], name) for name, numbers in NUMBERS.items())
    return {number: name for number, name in found if number is not None}
