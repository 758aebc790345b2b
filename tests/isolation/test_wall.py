"""No address that is not public is called, however it is written or resolved."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from apps.engine.replay.run import ErrorKind
from apps.isolation.client import Reach, Request, exchange
from apps.isolation.run_time import CallFailed, RunTime
from apps.isolation.wall import (
    CannotResolve,
    Nearness,
    NotAHost,
    RefusedAddress,
    checked_url,
    inner_hosts,
    nearness_of,
    pinned,
)
from tests.isolation.canary import canary
from tests.model_server import model_server


def words(text: str) -> list[str]:
    return text.split()


IPS = words("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.254
127.0.0.1 127.1.2.3 127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254
169.254.170.2 172.16.0.1 172.31.255.254 192.0.0.1 192.0.0.192 192.0.2.7 192.88.99.1
192.168.0.1 192.168.255.254 198.18.0.1 198.19.255.254 198.51.100.9 203.0.113.5
224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
:: ::1 ::2 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254
64:ff9b:1::1 100::1 2001::1 2001:0:7f00:1:: 2001:2::1 2001:db8::1
2002:7f00:1:: 2002:a9fe:a9fe:: 2a00::5efe:10.0.0.1 2a00::200:5efe:127.0.0.1
3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254 fd12:3456::1 fe80::1
fe80::a9fe:a9fe fec0::1 ff02::1 ff0e::1
""")

PUBLIC = words("""
1.1.1.1 8.8.8.8 93.184.216.34 172.15.0.1 172.32.0.1 100.63.0.1 192.167.1.1 223.255.255.1
::ffff:8.8.8.8 64:ff9b::8.8.8.8 2606:4700::1111 2a00:1450:4001::200e
""")

# PORT is where the canary listens. Every name leads to it.
URLS = """
file:///etc/passwd
ftp://example.com/
gopher://127.0.0.1:PORT/_GET
dict://127.0.0.1:PORT/
ws://example.com/
javascript:alert(1)
data:text/plain,hello
//example.com/
example.com
http:/example.com
http:example.com
http://
http:///v1
https://:443/
http://127.0.0.1:PORT/
http://127.1:PORT/
http://127.0.1:PORT/
http://2130706433:PORT/
http://0x7f000001:PORT/
http://0x7f.0.0.1:PORT/
http://0x7f.1:PORT/
http://0177.0.0.1:PORT/
http://017700000001:PORT/
http://127.0.0.01:PORT/
http://127.0.0.1.:PORT/
http://0:PORT/
http://0x0:PORT/
http://00000177.1:PORT/
http://3232235521:PORT/
http://169.254.169.254/latest/meta-data/
http://2852039166/latest/
http://0xa9fea9fe/
http://168.63.129.16/metadata
http://[::1]:PORT/
http://[::]:PORT/
http://[::ffff:127.0.0.1]:PORT/
http://[::ffff:7f00:1]:PORT/
http://[0:0:0:0:0:0:0:1]:PORT/
http://[::127.0.0.1]:PORT/
http://[64:ff9b::7f00:1]:PORT/
http://[2002:7f00:1::]:PORT/
http://[fd00:ec2::254]/
http://[fe80::1%25eth0]:PORT/
http://[fe80::1%eth0]:PORT/
http://[::1:PORT/
http://[v1.x]:PORT/
http://localhost:PORT/
http://LOCALHOST:PORT/
http://localhost.:PORT/
http://api.localhost:PORT/
http://router.local/
http://metadata.google.internal/
http://printer.lan:8080/
http://vllm:PORT/
http://db.corp:PORT/
http://inner.example.com:PORT/
http://user@example.com/
http://user:password@example.com/
http://sk-abc@127.0.0.1:PORT/
http://example.com@127.0.0.1:PORT/
http://127.0.0.1:PORT@example.com/
http://example.com#@127.0.0.1:PORT/
http://example.com\\@127.0.0.1:PORT/
http://127.0.0.1:PORT\\@example.com/
http://exa mple.com/
http://example.com/ a
http://example.com/\ta
http://example.com/\r\nHost:x
http://①②⑦.0.0.1:PORT/
http://\uff45xample.com/
http://127\u30020\u30020\u30021:PORT/
http://exam%70le.com/
http://%31%32%37.0.0.1:PORT/
http://example.com/%00
http://example.com/%0d%0aX:y
http://example.com/%zz
http://example.com/v1/../admin
http://example.com/v1/%2e%2e/admin
http://example.com/#v1
http://example.com:0/
http://example.com:65536/
http://example.com:22/
http://example.com:25/
http://example.com:6379/
http://example.com:5432/
http://example.com:11211/
http://example.com:-1/
http://example.com:80:80/
http://example.com:PORTx/
http://-example.com/
http://example..com/
http://.example.com/
http://example.com/?api_key=abc123
http://example.com/?x=1&access_token=abc
http://example.com/?sig=abc
http://example.com/?apiKey=abc
http://example.com/sk-proj-4bQ9xT2mZ7kV1cN8wR5yH3jL6pD0sFaaaaT3BlbkFJ4bQ9xT2mZ7kV1cN8wR5yH3jL6
""".strip("\n").split("\n")

GOOD = [
    "https://api.openai.com/v1",
    "https://example.com",
    "http://example.com:8080/v1/",
    "https://my-resource.example.net/openai/deployments/gpt?api-version=2024-10-21",
    "https://1.1.1.1/v1",
    "https://[2606:4700::1111]/v1",
    "https://a_b.example.com:1024/~agent/run;v=1?mode=test&max_tokens=5",
    "https://xn--bcher-kva.example/",
]


def called(url: str, at, *, inner=(), resolve=None):
    """The kind of error with which a call ends; `None` when something answered."""
    reach = Reach(
        inner=inner_hosts(inner),
        resolve=resolve or (lambda *_: ["127.0.0.1"]),
        dial=at.dial,
    )
    try:
        exchange(Request(url=url), reach=reach, time_left=_time())
    except CallFailed as failure:
        return failure.error.kind
    return None


def _time() -> RunTime:
    return RunTime(5, stop=lambda: False)


def test_there_are_as_many_attempts_as_promised():
    assert len(set(IPS)) >= 49
    assert len(set(URLS)) >= 65


class TestAddresses:
    """What is not public is not called, by its number or by a name that leads there."""

    def test_no_address_of_the_table_is_called(self):
        with canary() as at:
            for ip in IPS:
                shown = f"[{ip}]" if ":" in ip else ip
                kind = called(f"http://{shown}:{at.port}/", at)
                assert kind is ErrorKind.REFUSED, ip
                kind = called("http://example.com/", at, resolve=lambda *_, i=ip: [i])
                assert kind is ErrorKind.REFUSED, ip
            assert (at.heard, at.dialled) == (0, [])

    @pytest.mark.parametrize("ip", PUBLIC)
    def test_public_addresses_are_called(self, ip):
        assert nearness_of(ip) is Nearness.PUBLIC
        found = pinned(checked_url("http://example.com"), resolve=lambda *_: [ip])
        plain = "8.8.8.8" if ip.startswith("::ffff:") else str(ip_address(ip))
        assert found.addresses == (plain,)

    def test_however_it_is_written_it_is_the_same_address(self):
        for ip in IPS:
            long = ip_address(ip).exploded
            assert nearness_of(ip) is nearness_of(long) is not Nearness.PUBLIC, ip


class TestUrls:
    """An address is refused in a sentence before anybody is asked."""

    def test_no_url_of_the_table_is_called(self):
        with canary() as at:
            for url in URLS:
                told = url.replace("PORT", str(at.port))
                assert called(told, at) is ErrorKind.REFUSED, url
            assert (at.heard, at.dialled) == (0, [])

    @pytest.mark.parametrize("url", URLS)
    def test_it_is_refused_in_a_sentence_when_it_is_saved(self, url):
        if url == "http://inner.example.com:PORT/":
            return  # an ordinary name; only its address says where it leads
        with pytest.raises(RefusedAddress, match=r"^\S.*[a-z].*\.$") as refused:
            checked_url(url.replace("PORT", "8123"))
        assert "abc" not in str(refused.value)
        assert "password@" not in str(refused.value)

    @pytest.mark.parametrize("url", GOOD)
    def test_ordinary_ones_are_taken_as_they_are(self, url):
        assert checked_url(url).url == url

    def test_a_long_one_is_refused(self):
        with pytest.raises(RefusedAddress, match="2,000"):
            checked_url("https://example.com/" + "a" * 2_000)

    def test_it_says_whether_a_key_can_be_read_on_the_way(self):
        assert checked_url("http://example.com").sends_in_clear
        assert not checked_url("https://example.com").sends_in_clear


class TestInnerHosts:
    """The operator's list opens one host and port, and never metadata."""

    @pytest.mark.parametrize(
        ("url", "entry"),
        [
            ("http://vllm:8000/v1", "vllm:8000"),
            ("http://VLLM:8000/v1", " vLLM:8000 "),
            ("http://10.1.2.3:8000/v1", "10.1.2.3:8000"),
            ("http://127.0.0.1:22/v1", "127.0.0.1:22"),
            ("http://[::1]:8000/v1", "[::1]:8000"),
            ("http://[0:0:0:0:0:0:0:1]:8000/v1", "[::1]:8000"),
            ("http://localhost/v1", "localhost:80"),
        ],
    )
    def test_what_stands_in_it_is_called(self, url, entry):
        checked = checked_url(url, inner=inner_hosts([entry, ""]))
        assert pinned(checked, resolve=lambda *_: ["10.1.2.3"]).addresses

    @pytest.mark.parametrize(
        "url",
        ["http://vllm:8001/v1", "http://vllm2:8000/", "https://vllm/", "http://[::1]/"],
    )
    def test_its_neighbours_are_not(self, url):
        with pytest.raises(RefusedAddress, match=r"operator .+:\d+ in the list"):
            checked_url(url, inner=inner_hosts(["vllm:8000", "[::1]:8000"]))

    @pytest.mark.parametrize(
        "ip", ["169.254.169.254", "168.63.129.16", "fd00:ec2::254", "224.0.0.1", "::"]
    )
    def test_metadata_is_never_called(self, ip):
        checked = checked_url("http://vllm:8000", inner=inner_hosts(["vllm:8000"]))
        with pytest.raises(RefusedAddress, match="never called"):
            pinned(checked, resolve=lambda *_: [ip])
        shown = f"[{ip}]" if ":" in ip else ip
        with pytest.raises(RefusedAddress, match="never called"):
            checked_url(f"http://{shown}:80", inner=inner_hosts([f"{shown}:80"]))

    @pytest.mark.parametrize(
        "entry",
        [
            "vllm",
            "vllm:0",
            "vllm:65536",
            "*:80",
            "10.0.0.0/8",
            "http://vllm:80",
            "a b:1",
        ],
    )
    def test_anything_but_host_and_port_is_refused(self, entry):
        with pytest.raises(NotAHost, match="no host with a port"):
            inner_hosts([entry])


class TestResolving:
    """A name is resolved once, all records pass, and the call goes to one of them."""

    REBINDING = [
        ("loopback at the second look", [["93.184.216.34"], ["127.0.0.1"]]),
        ("metadata at the second look", [["2606:4700::1111"], ["169.254.169.254"]]),
        ("public again at the third", [["1.1.1.1"], ["127.0.0.1"], ["1.1.1.1"]]),
    ]

    @pytest.mark.parametrize(("what", "answers"), REBINDING)
    def test_a_name_that_changes_reaches_nobody_new(self, what, answers):
        asked = []

        def resolve(host, port):
            asked.append(host)
            return answers[min(len(asked), len(answers)) - 1]

        with canary() as at:
            for number, answer in enumerate(answers, start=1):
                kind = called(
                    f"http://turning.example.com:{at.port}/", at, resolve=resolve
                )
                assert len(asked) == number
                is_public = nearness_of(answer[0]) is Nearness.PUBLIC
                assert kind is (
                    ErrorKind.CONNECTION if is_public else ErrorKind.REFUSED
                )
            called_there = {address for address, _ in at.dialled}
            assert called_there <= {"93.184.216.34", "2606:4700::1111", "1.1.1.1"}
            assert at.heard == 0

    @pytest.mark.parametrize(
        "records",
        [
            ["93.184.216.34", "127.0.0.1"],
            ["10.0.0.1", "93.184.216.34"],
            ["93.184.216.34", "::1"],
            ["fe80::1%1"],
            ["2130706433"],
            [f"9.9.{n}.9" for n in range(65)],
        ],
    )
    def test_all_records_must_pass(self, records):
        with pytest.raises(RefusedAddress):
            pinned(checked_url("http://example.com"), resolve=lambda *_: records)

    def test_a_name_without_an_address_is_named(self):
        def nothing(host, port):
            raise OSError("no such name")

        with pytest.raises(CannotResolve, match=r"gone\.example\.com"):
            pinned(checked_url("http://gone.example.com"), resolve=nothing)


class TestRedirects:
    """No redirect is followed, and the key goes nowhere else."""

    TARGETS = [
        (302, "http://127.0.0.1:PORT/v1"),
        (301, "http://169.254.169.254/latest/meta-data/"),
        (303, "file:///etc/passwd"),
        (302, ""),
        (307, "http://127.0.0.1:PORT/v1"),
        (308, "http://other.example.com/v1"),
        (302, "//127.0.0.1:PORT/"),
    ]

    def test_none_of_them_is_followed(self):
        with canary() as at:
            for status, to in self.TARGETS:
                told = to.replace("PORT", str(at.port))
                with model_server("redirect", status=status, to=told) as server:
                    reach = Reach(inner=inner_hosts([server.host]), dial=at.dial)
                    request = Request(
                        url=f"{server.url}/chat/completions",
                        body=b"{}",
                        headers={"Authorization": "Bearer sk-canary-key"},
                    )
                    reply = exchange(request, reach=reach, time_left=_time())
                    assert reply.status == status
                    assert server.stats.calls == 1
                    assert {port for _, port in at.dialled} == {server.port}
                    at.dialled.clear()
            assert at.heard == 0
