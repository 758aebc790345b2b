"""Attacks from inside of a run. Each says "escaped", or how it was held back."""
# ruff: noqa: PTH101, PTH108, PTH123, S103, PLC0415, PERF401
# An agent is written as agents are.

import os
import signal
import socket
import subprocess
import sys


def every_attack(replay):
    """All attacks one after another, with where to strike as the input."""
    at = replay.input
    outcomes = {}
    for name, attack in ATTACKS.items():
        if name in at["without"]:
            continue
        try:
            attack(at)
        except BaseException as error:  # noqa: BLE001
            outcomes[name] = f"blocked: {type(error).__name__}: {error}"
        else:
            outcomes[name] = "escaped"
        replay.tools["next"](after=name)
    return outcomes


def read(at):
    with open(at["secret"]) as file:
        file.read()


def read_environ(at):
    with open(f"/proc/{at['parent']}/environ", "rb") as file:
        file.read()


def write(at):
    with open(at["outside"], "w") as file:
        file.write("was here")


def remove(at):
    os.unlink(at["secret"])


def change_mode(at):
    os.chmod(at["secret"], 0o777)


def tcp(at):
    socket.create_connection(("127.0.0.1", at["tcp"]), timeout=1).close()


def udp(at):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
        b"x", ("127.0.0.1", at["udp"])
    )


def unix(at):
    socket.socket(socket.AF_UNIX).connect(at["unix"])


def abstract_unix(at):
    socket.socket(socket.AF_UNIX).connect("\0" + at["abstract"])


def signal_parent(at):
    os.kill(at["parent"], 0)


def end_warden(_at):
    os.kill(os.getppid(), signal.SIGSTOP)


def memory(_at):
    bytearray(4 * 1024**3)


def large_file(_at):
    with open("large", "wb") as file:
        file.writelines(bytes(1024**2) for _ in range(300))


def forks(_at):
    children = []
    for _ in range(300):
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)


def native_call(_at):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    family = libc.socket(16, 3, 0), libc.syscall(101, 0, 0, 0, 0)
    if libc.fork() == -1 and max(family) == -1:
        raise OSError(ctypes.get_errno(), "native")


ATTACKS = {
    one.__name__: one
    for one in (
        *(read, read_environ, write, change_mode, remove, tcp, udp, unix),
        *(abstract_unix, signal_parent, end_warden, memory, large_file, forks),
        native_call,
    )
}


def stops_its_warden(_replay):
    os.kill(os.getppid(), signal.SIGSTOP)
    if os.fork() == 0:
        signal.pause()
    return "stopped"


def kills_its_warden(_replay):
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()


def as_a_command():
    """The attacks of a process that may start others, and a daemon that stays."""
    import json

    at = json.loads(sys.stdin.readline())["input"]
    outcomes = {}
    for name in ("read", "write", "tcp", "udp", "unix", "signal_parent", "memory"):
        try:
            ATTACKS[name](at)
            outcomes[name] = "escaped"
        except BaseException as error:  # noqa: BLE001
            outcomes[name] = f"blocked: {type(error).__name__}"
    started = []
    try:
        for _ in range(60):
            started.append(
                subprocess.Popen(["/bin/sleep", at["nap"]], start_new_session=True)
            )
    except OSError as error:
        outcomes["processes"] = f"blocked: {error}"
    outcomes["started"] = len(started)
    print(json.dumps({"output": outcomes}), flush=True)


if __name__ == "__main__":
    as_a_command()
