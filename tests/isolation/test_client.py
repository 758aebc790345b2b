"""A request ends in time, within bounds and where it was sent, whatever the target does."""

from __future__ import annotations

import datetime
import ipaddress
import resource
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apps.engine.replay.run import ErrorKind
from apps.isolation import connection
from apps.isolation.client import Reach, Request, exchange
from apps.isolation.run_time import CallFailed, RunTime
from apps.isolation.wall import inner_hosts
from tests.model_server import model_server


def reach_of(server, **more) -> Reach:
    return Reach(inner=inner_hosts([server.host]), **more)


def ended(server, *, seconds=1.0, stop=lambda: False, **more):
    """The error of one call, and after how many seconds it came."""
    request = Request(url=f"{server.url}/chat/completions", body=b"{}", **more)
    began = time.monotonic()
    with pytest.raises(CallFailed) as failure:
        exchange(request, reach=reach_of(server), time_left=RunTime(seconds, stop=stop))
    return failure.value.error, time.monotonic() - began


class TestTime:
    """The deadline is that of the wall clock."""

    LATE = ["hanging", "dripping", "dripping_headers", "endless_events"]

    def test_it_ends_at_the_deadline_whatever_drips(self):
        def one(mode):
            with model_server(mode) as server:
                return ended(server)

        with ThreadPoolExecutor(len(self.LATE)) as pool:
            for mode, (error, seconds) in zip(
                self.LATE, pool.map(one, self.LATE), strict=True
            ):
                assert error.kind is ErrorKind.TIMED_OUT, mode
                assert error.sentence == "Timeout after 1 seconds."
                assert 0.9 < seconds < 2, mode

    def test_it_ends_soon_after_it_is_stopped(self):
        stopped = threading.Event()
        threading.Timer(0.2, stopped.set).start()
        with model_server("hanging") as server:
            error, seconds = ended(server, seconds=30, stop=stopped.is_set)
        assert error.kind is ErrorKind.CANCELLED
        assert seconds < 1

    def test_a_silence_in_the_middle_ends_it_before_the_deadline(self, monkeypatch):
        monkeypatch.setattr(connection, "IDLE_SECONDS", 0.2)
        with model_server("dripping", pause=20) as server:
            error, seconds = ended(server, seconds=30)
        assert error.kind is ErrorKind.TIMED_OUT
        assert "in the middle of the answer" in error.sentence
        assert seconds < 2

    def test_before_the_first_byte_a_model_may_think(self, monkeypatch):
        monkeypatch.setattr(connection, "IDLE_SECONDS", 0.05)
        with model_server(delay=0.4) as server:
            reply = exchange(
                Request(url=f"{server.url}/chat/completions", body=b"{}"),
                reach=reach_of(server),
                time_left=RunTime(10, stop=lambda: False),
            )
        assert reply.status == 200

    def test_a_resolver_and_a_host_that_say_nothing_are_not_waited_for(
        self, monkeypatch
    ):
        monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.2)
        free = threading.Event()

        def slow(host, port):
            free.wait(5)
            return ["1.1.1.1"]

        def failing(reach, url="http://slow.example.com/"):
            with pytest.raises(CallFailed) as failure:
                exchange(
                    Request(url=url),
                    reach=reach,
                    time_left=RunTime(9, stop=lambda: False),
                )
            return failure.value.error

        error = failing(Reach(resolve=slow))
        free.set()
        assert error.kind is ErrorKind.CONNECTION
        assert "not resolved" in error.sentence
        # A full queue of connections that nobody takes is silent on loopback.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            port = full.getsockname()[1]
            waiting = [socket.socket() for _ in range(4)]
            for one in waiting:
                one.settimeout(0)
                one.connect_ex(("127.0.0.1", port))
            host = f"127.0.0.1:{port}"
            error = failing(Reach(inner=inner_hosts([host])), f"http://{host}/")
            for one in waiting:
                one.close()
        assert error.kind is ErrorKind.CONNECTION
        assert "did not answer in time" in error.sentence

    def test_what_hooks_take_is_no_time_of_the_run(self):
        now = [0.0]
        run = RunTime(10, stop=lambda: False, clock=lambda: now[0])
        with run.not_counted():
            now[0] += 100
        now[0] += 4
        assert run.left == pytest.approx(6)
        now[0] += 6
        with pytest.raises(CallFailed, match="Timeout after 10 seconds"):
            run.check()


class TestBounds:
    """An answer is taken up to its limits and never further."""

    LARGE = ["endless", "gzip_bomb", "headers", "endless_headers"]

    def test_large_answers_are_cut_without_much_memory(self):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for variant in self.LARGE:
            with model_server("malformed", variant=variant) as server:
                error, seconds = ended(server, seconds=20)
            assert error.kind is ErrorKind.TOO_LARGE, variant
            assert seconds < 5
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 64 * 1024

    def test_the_limit_is_that_of_the_run(self):
        with model_server() as server:
            error, _ = ended(server, answer_bytes=20)
        assert error.sentence == "The answer is larger than 20 bytes."

    @pytest.mark.parametrize(
        "headers",
        [{"X-Key": "a\r\nX-Other: b"}, {"X-Key": "clé"}, {"X Key": "a"}, {"X": "a\0"}],
    )
    def test_a_header_that_breaks_out_is_not_sent(self, headers):
        with model_server() as server:
            error, _ = ended(server, headers=headers)
            assert server.stats.calls == 0
        assert error.kind is ErrorKind.NOT_ALLOWED

    def test_nothing_comes_from_the_environment_and_the_host_is_ours(self, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9/")
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9/")
        with model_server() as server:
            name = f"models.example.com:{server.port}"
            exchange(
                Request(
                    url=f"http://{name}/v1/chat/completions?api-version=1",
                    body=b"{}",
                    headers={"Host": "elsewhere", "Content-Length": "999"},
                ),
                reach=Reach(
                    inner=inner_hosts([name]), resolve=lambda *_: ["127.0.0.1"]
                ),
                time_left=RunTime(5, stop=lambda: False),
            )
            (sent,), (path,) = server.stats.headers, server.stats.paths
        assert sent["Host"] == name
        assert sent["Content-Length"] == "2"
        assert path == "/v1/chat/completions?api-version=1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A certificate for models.example.com, and a context that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(x509.NameOID.COMMON_NAME, "models.example.com")]
    )
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    names = [
        x509.DNSName("models.example.com"),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(path)
    trusting = ssl.create_default_context(cafile=path)
    return serving, trusting


class TestTls:
    """The connection goes to the checked address; the certificate is the name's."""

    def asked(self, authority, host, *, trusted=True):
        """The bytes that came to a TLS server, or the error; and the name asked for."""
        serving, trusting = authority
        named, heard = [], bytearray()
        serving.sni_callback = lambda _sock, name, _context: named.append(name)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]

            def serve():
                caller, _ = listening.accept()
                caller.settimeout(5)
                try:
                    with serving.wrap_socket(caller, server_side=True) as tls:
                        # What is left unread would reset the connection.
                        while not heard.endswith(b"{}"):
                            heard.extend(tls.recv(65_536))
                        tls.sendall(
                            b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"
                            + b"x" * 300_000
                        )
                except OSError:
                    caller.close()

            thread = threading.Thread(target=serve)
            thread.start()
            reach = Reach(
                inner=inner_hosts([f"{host}:{port}"]),
                resolve=lambda *_: ["127.0.0.1"],
                tls=(lambda: trusting) if trusted else ssl.create_default_context,
            )
            try:
                return exchange(
                    Request(url=f"https://{host}:{port}/v1", body=b"{}"),
                    reach=reach,
                    time_left=RunTime(5, stop=lambda: False),
                ), named
            except CallFailed as failure:
                return failure.error, named
            finally:
                thread.join(5)

    def test_the_name_is_asked_for_at_the_address(self, authority):
        reply, named = self.asked(authority, "models.example.com")
        assert len(reply.body) == 300_000
        assert named == ["models.example.com"]

    def test_another_name_or_an_unknown_authority_is_refused(self, authority):
        for host, trusted in (
            ("other.example.com", True),
            ("models.example.com", False),
        ):
            error, _ = self.asked(authority, host, trusted=trusted)
            assert error.kind is ErrorKind.CONNECTION
            assert "certificate was not accepted" in error.sentence

    def test_plain_text_on_the_port_of_tls_is_no_connection(self, authority):
        with model_server() as server, pytest.raises(CallFailed) as failure:
            exchange(
                Request(url=f"https://{server.host}/v1", body=b"{}"),
                reach=reach_of(server, tls=lambda: authority[1]),
                time_left=RunTime(5, stop=lambda: False),
            )
        assert failure.value.error.kind is ErrorKind.CONNECTION


def test_the_system_and_certifi_are_trusted_together():
    context = Reach().tls()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.cert_store_stats()["x509_ca"] > 50


def test_what_closes_or_resets_is_a_broken_connection():
    for mode, more in (("reset", {}), ("malformed", {"variant": "closed"})):
        with model_server(mode, **more) as server:
            error, _ = ended(server)
        assert error.kind is ErrorKind.CONNECTION, mode
    with model_server() as gone:
        pass
    error, _ = ended(gone)
    assert error.sentence == "The target cannot be reached: Connection refused."


def test_a_connection_whose_handshake_never_ends_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(CallFailed) as kept:
            exchange(
                Request(url=f"https://127.0.0.1:{port}/"),
                reach=Reach(inner=inner_hosts([f"127.0.0.1:{port}"])),
                time_left=RunTime(0.2, stop=lambda: False),
            )
        assert kept.value.error.kind == "timed_out"
        theirs, _ = server.accept()
        with theirs:
            theirs.settimeout(1)
            while theirs.recv(4_096):
                pass
