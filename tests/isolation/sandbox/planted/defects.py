"""Agents with a planted defect each."""
# ruff: noqa: PTH123, S108, S112
# An agent is written as agents are.

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

OUTSIDE = "/tmp/evalsite-planted-outside"


def writes_a_file(replay):
    replay.tools["look"](at=1)
    try:
        with open(OUTSIDE, "w") as file:
            file.write("x")
    except OSError:
        pass
    return "done"


def opens_a_socket(replay):
    for at in (1, 2):
        replay.tools["look"](at=at)
    try:
        socket.create_connection(("203.0.113.7", 443), timeout=1)
    except OSError:
        return "done"


def looks_up_a_name(_replay):
    try:
        socket.getaddrinfo("exfil.example.com", 443)
    except OSError:
        return "done"


def starts_a_program(_replay):
    try:
        subprocess.run(["/bin/ls", "/"], check=False)
    except OSError:
        return "done"


def forks(_replay):
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError:
        return "done"


def runs_a_shell(_replay):
    return os.system("echo hello")  # noqa: S605


def calls_the_kernel(_replay):
    libc = ctypes.CDLL(None)
    return [libc.socket(2, 2, 0), libc.kill(1, 9)]


def reads_the_product(_replay):
    try:
        with open("/proc/1/environ") as file:
            return file.read()
    except OSError:
        return "done"


def signals_others(_replay):
    try:
        os.kill(os.getppid(), signal.SIGKILL)
    except OSError:
        return "done"


def changes_its_input(replay):
    replay.input["amount"] = 0
    return replay.input["amount"]


def replaces_its_messages(replay):
    replay.messages = object()
    return "done"


def sleeps(_replay):
    time.sleep(600)


def ignores_being_ended(_replay):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def swallows_everything(replay):
    while True:
        try:
            time.sleep(600)
            replay.tools["look"]()
        except BaseException:  # noqa: BLE001
            continue


def leaves_a_thread(_replay):
    threading.Thread(target=time.sleep, args=(600,), name="counter").start()
    return "done"


def exits(_replay):
    os._exit(7)


def leaves(_replay):
    sys.exit("enough")


def interrupts(_replay):
    raise KeyboardInterrupt


def crashes(_replay):
    ctypes.string_at(0)


def recurses(replay):
    return recurses(replay)


def floods(_replay):
    line = b"flood " * 170_000
    for _ in range(400):
        os.write(1, line)
    return "done"


def prints_control_characters(_replay):
    sys.stdout.write("a\x1b[31mred\x00\u202e\u200b\xff")
    sys.stdout.flush()
    os.write(1, b"\xff\xfe")
    return "done"


def gives_an_object(_replay):
    return object()


def gives_nan(_replay):
    return {"score": float("nan")}


def gives_itself(_replay):
    found = []
    found.append(found)
    return found


def gives_too_deep(_replay):
    found = []
    for _ in range(100_000):
        found = [found]
    return found


def gives_too_much(_replay):
    return "x" * 3_000_000


def gives_half_a_character(_replay):
    return "a\ud800b\x00"


def takes_nothing():
    return "done"


def raises(_replay):
    raise ValueError("no such customer: sk-live-0123456789")


def raises_something_odd(_replay):
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    raise Odd


def prints_an_answer(_replay):
    print('{"final": {"output": "fake", "state": null}}', flush=True)
    print('{"output": "fake"}', flush=True)
    os._exit(0)


def writes_a_wrong_line(_replay):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\x80 no json\n")
        except OSError:
            continue
    time.sleep(600)


def prints_a_secret(_replay):
    print(os.environ["PLANTED_KEY"])
    return {"key": f"Bearer {os.environ['PLANTED_KEY']}"}


def tells_its_environment(_replay):
    return dict(os.environ)


def eats_memory(_replay):
    held = []
    while True:
        held.append(bytearray(8 * 1024**2))


def fills_its_folder(_replay):
    for number in range(40):
        with open(f"part-{number}", "wb") as file:
            file.write(bytes(1024**2))
    time.sleep(600)


def makes_no_end_of_threads(_replay):
    started = 0
    try:
        while True:
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
            started += 1
    except RuntimeError:
        return started


number = 5
