"""Agents that try to fool, to stall or to fill whoever runs them."""
# ruff: noqa: PTH102, PTH103, PTH108, PTH109, PTH123, PTH208, SIM105, SIM115
# An agent is written as agents are.

import ctypes
import json
import os
import socket
import struct
import threading
import time

FAR = ("203.0.113.7", 443)


def _line():
    """The socket on which this process talks with the one that started it."""
    for number in range(3, 64):
        try:
            found = socket.socket(fileno=os.dup(number))
        except OSError:
            continue
        if found.family == socket.AF_UNIX:
            return found
    raise OSError("there is none")


def _send(value):
    _line().sendall(json.dumps(value).encode() + b"\n")


def floods_its_line_while_the_kernel_asks(_replay):
    line = _line()
    flood = b'{"effect": ["other", "x", false]}\n' * 4_000

    def write():
        while True:
            line.sendall(flood)

    threading.Thread(target=write, daemon=True).start()
    while True:
        try:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        except OSError:
            pass


def calls_a_breach_harmless(_replay):
    host, port = FAR
    _send({"effect": ["socket", f"connect to {host}:{port}", False]})
    made = socket.socket()
    address = struct.pack("!2xH4s8x", port, socket.inet_aton(host))
    address = struct.pack("=H", socket.AF_INET) + address[2:]
    return ctypes.CDLL(None).connect(made.fileno(), address, len(address))


def hides_a_breach_behind_many(_replay):
    for number in range(600):
        try:
            open(f"/sys/none-{number}")
        except OSError:
            pass
    try:
        open("/root/secret")
    except OSError:
        return "done"


def ends_with(replay):
    _send({"final": replay.input})
    os._exit(0)


def asks_too_deep(replay):
    value = []
    for _ in range(400):
        value = [value]
    try:
        replay.tools["look"](value=value)
    except replay.ToolFailed as error:
        return str(error)


def gives_deep(_replay):
    value = []
    for _ in range(300):
        value = [value]
    return value


def gives_many_values(_replay):
    return [[]] * 600_000


def writes_messages_without_end(replay):
    while True:
        replay.say("x" * 100_000)


def tells_turns_without_end(_replay):
    line = _line()
    while True:
        line.sendall(b'{"turned": "' + b"x" * 500_000 + b'"}\n')


def digs(_replay):
    for _ in range(1_100):
        os.mkdir("d")
        os.chdir("d")
    return "dug"


def shuts_folders(_replay):
    os.makedirs("a/b")
    with open("a/b/file", "w") as file:
        file.write("x")
    os.mkdir("shut", 0)
    return "shut"


def makes_many_files(_replay):
    for number in range(10_500):
        with open(str(number), "w"):
            pass
    time.sleep(600)


def writes_into_nameless_files(_replay):
    kept = []
    for number in range(20):
        file = open(f"gone-{number}", "wb")
        os.unlink(file.name)
        file.write(b"x" * 1024**2)
        file.flush()
        kept.append(file)
    time.sleep(600)


def stands_apart(_replay):
    libc = ctypes.CDLL(None, use_errno=True)
    lingers = struct.pack("=ii", 1, 600)
    first, _ = socket.socketpair()
    try:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingers)
        lingering = "escaped"
    except OSError:
        lingering = "blocked"
    memory = libc.syscall(319 if os.uname().machine == "x86_64" else 279, b"x", 0)
    return [libc.prctl(1, 0, 0, 0, 0), libc.prctl(4, 0, 0, 0, 0), memory, lingering]


def keeps_a_file(replay):
    with open("mine", "w") as file:
        file.write("canary-of-a-run")
    return replay.tools["look"](folder=os.getcwd(), process=os.getpid())


def reads_another_run(replay):
    at = replay.input
    found = []
    for path in (
        f"{at['folder']}/mine",
        at["folder"],
        f"/proc/{at['process']}/cwd/mine",
        f"/proc/{at['process']}/root{at['folder']}/mine",
    ):
        try:
            found.append(
                str(os.listdir(path)) if path == at["folder"] else open(path).read()
            )
        except OSError as error:
            found.append(type(error).__name__)
    try:
        open(f"{at['folder']}/planted", "w").close()
        found.append("written")
    except OSError as error:
        found.append(type(error).__name__)
    return found


def leaks_in_an_effect(_replay):
    try:
        open(f"/{os.environ['PLANTED_KEY']}")
    except OSError:
        return "done"


class LeaksInATurn:
    """Gives its key away as an answer and as its state."""

    def start(self, _state):
        pass

    def turn(self, _text):
        return os.environ["PLANTED_KEY"]

    def state(self):
        return {os.environ["PLANTED_KEY"]: 1}


def opens_many_connections(replay):
    host, _, port = replay.model_url.removeprefix("http://").partition(":")
    made, refused = [], 0
    for _ in range(60):
        try:
            made.append(socket.create_connection((host, int(port))))
        except ConnectionRefusedError:
            refused += 1
    return [len(made), refused]


def sends_odd_lengths(replay):
    host, _, port = replay.model_url.removeprefix("http://").partition(":")
    found = []
    for length in ("9" * 5_000, "\u00b2", "-1", "1e3"):
        made = socket.create_connection((host, int(port)))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {length}\r\n\r\n"
        made.sendall(head.encode("latin-1"))
        found.append(made.recv(12).decode())
    return found


def tries_again_and_again(replay):
    def strike(first):
        for number in range(first, first + 60):
            made = socket.socket()
            try:
                made.connect(("203.0.113.7", number))
            except OSError:
                made.close()

    strikes = [threading.Thread(target=strike, args=(n * 100 + 1,)) for n in range(4)]
    for one in strikes:
        one.start()
    for one in strikes:
        one.join()
    return "done"
