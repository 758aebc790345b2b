"""The stubs of a run as agents elsewhere reach them: one address a tool, and MCP."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from django.db import OperationalError, transaction
from django.test import Client as Browser

from apps.api import stub_views
from apps.engine.replay.mcp_door import VERSIONS
from apps.engine.replay.stub_door import LARGEST_REQUEST
from apps.engine.replay.stub_plan import MissPolicy, StubPlan
from apps.pipeline.replay_orders import CannotRun
from apps.replays.models import Run, StubCall
from apps.replays.running import AttemptEnd, RunEnd, end_run
from apps.replays.transitions import RunState
from tests.api.stubbed import CALLS, NUMBER, TOOLS, opened, serving
from tests.at_once import at_once

NEWEST = "2026-07-28"
META = "io.modelcontextprotocol/"
ENVELOPE = {f"{META}protocolVersion": NEWEST, f"{META}clientCapabilities": {}}
MISSED = "This call has no prepared answer."


@pytest.fixture
def stubs(project):
    return opened(project)[1]


@pytest.fixture
def agent():
    """Whoever calls from elsewhere: no session, no token of the API."""
    return Browser(enforce_csrf_checks=True)


def post(agent, address, body, **headers):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return agent.post(
        address, body, content_type="application/json", headers=headers or None
    )


def asked(method, *, number=1, **params):
    said = {"jsonrpc": "2.0", "id": number, "method": method}
    return {**said, "params": params} if params else said


@pytest.mark.django_db
class TestTheAddressOfATool:
    """POST of arguments, JSON of the result."""

    def test_it_answers_as_recorded_and_keeps_each_call(self, stubs, agent):
        said = [
            post(agent, f"{stubs}/tools/lookup", {"number": 7}).json(),
            post(agent, f"{stubs}/tools/lookup", {"number": 7.0}).json(),
            post(agent, f"{stubs}/tools/lookup", {"number": 8}).json(),
            post(agent, f"{stubs}/tools/mail%2Fsend%20it", {"to": "A"}).json(),
            post(agent, f"{stubs}/tools/notes", b"").json(),
            post(agent, f"{stubs}/tools/launch", {"at": "moon"}).json(),
        ]
        assert said == [
            {"result": "open"},
            {"result": {"state": "paid"}},
            {"error": "No such order."},
            {"result": [1]},
            {"result": CALLS[4].result},
            {"error": MISSED},
        ]
        kept = StubCall.objects.order_by("number")
        assert [one.tool for one in kept] == [
            *("lookup", "lookup", "lookup", "mail/send it", "notes", "launch")
        ]
        assert [one.answer["source"] for one in kept] == ["recorded"] * 5 + ["miss"]
        assert [one.answer["writes"] for one in kept][3] is True

    @pytest.mark.parametrize(
        ("policy", "said"),
        [
            (MissPolicy.EMPTY, {"result": ""}),
            (MissPolicy.STOP, {"error": MISSED}),
        ],
    )
    def test_a_miss_is_answered_by_the_plan(self, project, agent, policy, said):
        _, stubs = opened(project, stubs=StubPlan(misses=policy))
        assert post(agent, f"{stubs}/tools/lookup", {"number": 9}).json() == said
        assert StubCall.objects.get().answer["stops"] is (policy is MissPolicy.STOP)

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (b"[1]", "one JSON object"),
            (b"null", "one JSON object"),
            (b'"a"', "one JSON object"),
            (b"{", "cannot be read"),
            (b"number=7", "cannot be read"),
            (b'{"a": 1} {"b": 2}', "Something stands behind"),
            (b'{"a": "\xff"}', "not UTF-8"),
            (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "deep"),
            (b'{"a": ' + b"9" * 6_000 + b"}", "digits"),
            (b'{"a": "' + b"x" * LARGEST_REQUEST + b'"}', "at most 2 MiB"),
        ],
    )
    def test_what_is_no_object_of_arguments_is_refused_and_not_kept(
        self, stubs, agent, body, why
    ):
        answer = post(agent, f"{stubs}/tools/lookup", body)
        assert answer.status_code == 400
        assert why in answer.json()["error"]
        assert not StubCall.objects.exists()

    def test_odd_values_are_taken_as_they_can_be_kept(self, stubs, agent):
        for body in (
            b'{"a": NaN, "b": "\\u0000\\ud800", "number": 1e400}',
            b'{"a": 1, "a": 2}',
            b"\xef\xbb\xbf {}",
        ):
            assert post(agent, f"{stubs}/tools/lookup", body).status_code == 200
        assert StubCall.objects.first().arguments["b"] == "\ufffd\ufffd"
        for name in ("%00", "%ED%A0%80", "\U0001f600", "..%2F..%2Fadmin"):
            answer = post(agent, f"{stubs}/tools/{name}", {})
            assert answer.json() == {"error": MISSED}, name
        assert post(agent, f"{stubs}/tools/{'x' * 301}", {}).status_code == 404


@pytest.mark.django_db
class TestTheToken:
    """It is all that is needed, opens one run, and ends with it."""

    def test_it_ends_with_its_run_and_opens_no_other(self, project, agent):
        claim, stubs = opened(project)
        assert "digest" not in stubs
        assert not Run.objects.filter(stub_digest=stubs.split("/")[-1]).exists()
        assert post(agent, f"{stubs}/tools/lookup", {"number": 7}).status_code == 200
        assert post(agent, f"{stubs}/mcp", asked("ping")).json()["result"] == {}
        _, other = opened(project, name="writer")
        assert post(agent, f"{other}/tools/lookup", {"number": 7}).json() == {
            "result": "open"
        }
        with transaction.atomic():
            end_run(
                claim=claim,
                run=RunEnd(state=RunState.FINISHED),
                attempt=AttemptEnd(ending="finished"),
            )
        for address, body in (("tools/lookup", {}), ("mcp", asked("tools/list"))):
            answer = post(agent, f"{stubs}/{address}", body)
            assert answer.status_code == 404
            assert "the run has ended" in answer.content.decode()
        assert post(agent, f"{other}/mcp", asked("ping")).status_code == 200

    @pytest.mark.parametrize("token", ["", "x", "A" * 43, "A" * 200, "%00", "..", "é"])
    def test_whoever_guesses_one_finds_nothing(self, stubs, agent, token):
        for path in ("tools/lookup", "mcp"):
            answer = post(agent, f"/api/stubs/{token}/{path}", asked("ping"))
            assert answer.status_code == 404

    def test_only_agents_post_and_nothing_is_streamed(self, stubs, agent):
        for path in ("tools/lookup", "mcp"):
            for method in ("get", "delete", "put", "head", "options"):
                answer = getattr(agent, method)(f"{stubs}/{path}")
                assert (answer.status_code, answer["Allow"]) == (405, "POST")
            answer = post(agent, f"{stubs}/{path}", {}, Origin="https://evil.example")
            assert answer.status_code == 403
        assert "error" in agent.get(f"{stubs}/tools/lookup").json()
        assert agent.get(f"{stubs}/mcp").json()["jsonrpc"] == "2.0"

    @pytest.mark.parametrize(
        ("broken", "status", "said"),
        [
            (OperationalError("gone"), 503, "call again"),
            (CannotRun("The handler “a:b” cannot be loaded."), 409, "“a:b”"),
        ],
    )
    def test_what_breaks_on_our_side_is_said_in_words(
        self, stubs, agent, monkeypatch, broken, status, said
    ):
        def breaks(**_asked):
            raise broken

        monkeypatch.setattr(stub_views, "answer_stub_call", breaks)
        body = asked("tools/call", name="lookup", arguments={})
        for path, sent in (("tools/lookup", {}), ("mcp", body)):
            answer = post(agent, f"{stubs}/{path}", sent)
            assert answer.status_code == status
            assert said in answer.content.decode()


def modern(method, **params):
    return asked(method, _meta=ENVELOPE, **params)


@pytest.mark.django_db
class TestMessagesOfMcp:
    """JSON-RPC, message by message, in all versions."""

    def test_the_handshake_agrees_on_a_version(self, stubs, agent):
        for wanted, agreed in (
            ("2024-11-05", "2024-11-05"),
            ("2025-11-25", "2025-11-25"),
            ("2031-01-01", "2025-11-25"),
            (NEWEST, "2025-11-25"),
        ):
            sent = asked("initialize", protocolVersion=wanted, capabilities={})
            found = post(agent, f"{stubs}/mcp", sent).json()["result"]
            assert found["protocolVersion"] == agreed
            assert found["capabilities"] == {"tools": {}}
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = post(agent, f"{stubs}/mcp", told)
        assert (answer.status_code, answer.content) == (202, b"")
        assert "Mcp-Session-Id" not in answer

    def test_tools_are_those_of_the_case_with_schemas_of_objects(self, stubs, agent):
        found = post(agent, f"{stubs}/mcp", asked("tools/list")).json()["result"]
        assert [one["name"] for one in found["tools"]] == [one.name for one in TOOLS]
        assert {one["inputSchema"]["type"] for one in found["tools"]} == {"object"}
        assert found["tools"][0]["inputSchema"]["properties"] == NUMBER["properties"]

    @pytest.mark.parametrize(
        ("tool", "arguments", "texts", "is_error", "structured"),
        [
            ("lookup", {"number": 7}, ["open"], False, None),
            ("lookup", {"number": 8}, ["No such order."], True, None),
            ("notes", None, ["one", "two"], False, None),
            ("mail/send it", {"to": "A"}, ["[1]"], False, None),
            ("launch", {}, [MISSED], True, None),
        ],
    )
    def test_a_call_is_answered_by_its_stub(
        self, stubs, agent, tool, arguments, texts, is_error, structured
    ):
        sent = asked("tools/call", name=tool, arguments=arguments)
        found = post(agent, f"{stubs}/mcp", sent).json()["result"]
        assert [one["text"] for one in found["content"]] == texts
        assert found["isError"] is is_error
        assert found.get("structuredContent") == structured

    def test_a_batch_is_answered_as_one(self, stubs, agent):
        call = {"name": "lookup", "arguments": {"number": 7}}
        sent = [
            asked("tools/call", number="a", **call),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            asked("tools/call", number=2, **call),
            asked("nothing/such", number=3),
        ]
        found = post(agent, f"{stubs}/mcp", sent).json()
        assert [one["id"] for one in found] == ["a", 2, 3]
        assert found[1]["result"]["structuredContent"] == {"state": "paid"}
        assert found[2]["error"]["code"] == -32601
        assert post(agent, f"{stubs}/mcp", sent[1:2]).status_code == 202

    @pytest.mark.parametrize(
        ("body", "headers", "status", "code"),
        [
            (b"{", {}, 400, -32700),
            (b"", {}, 400, -32700),
            ([], {}, 400, -32600),
            ([asked("ping")] * 51, {}, 400, -32600),
            ("ping", {}, 400, -32600),
            ({"id": 1, "method": "ping"}, {}, 400, -32600),
            ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, {}, 400, -32600),
            ({"jsonrpc": "2.0", "id": None, "method": "ping"}, {}, 400, -32600),
            ({"jsonrpc": "2.0", "id": True, "method": "ping"}, {}, 400, -32600),
            ({"jsonrpc": "2.0", "id": 1, "method": 7}, {}, 400, -32600),
            ({**asked("ping"), "params": [1]}, {}, 200, -32602),
            (asked("resources/list"), {}, 200, -32601),
            (asked("initialize"), {}, 200, -32602),
            (asked("tools/call", name=7), {}, 200, -32602),
            (asked("tools/call", name="lookup", arguments=[7]), {}, 200, -32602),
            (asked("ping"), {"MCP-Protocol-Version": "1999-01-01"}, 400, -32022),
            (asked("tools/list"), {"MCP-Protocol-Version": NEWEST}, 400, -32602),
            (modern("tools/list"), {}, 400, -32020),
            (modern("ping"), {"MCP-Protocol-Version": NEWEST}, 404, -32601),
            (
                modern("tools/list"),
                {"MCP-Protocol-Version": NEWEST, "Mcp-Method": "tools/call"},
                400,
                -32020,
            ),
            ([modern("tools/list")], {"MCP-Protocol-Version": NEWEST}, 400, -32600),
        ],
    )
    def test_what_is_no_request_is_refused_as_the_protocol_says(
        self, stubs, agent, body, headers, status, code
    ):
        answer = post(agent, f"{stubs}/mcp", body, **headers)
        found = answer.json()
        assert (answer.status_code, found["error"]["code"]) == (status, code)
        assert found["jsonrpc"] == "2.0"
        assert found["error"]["message"].endswith(".")
        assert not StubCall.objects.exists()

    def test_an_answer_to_nothing_is_taken_and_dropped(self, stubs, agent):
        sent = {"jsonrpc": "2.0", "id": 4, "result": {}}
        assert post(agent, f"{stubs}/mcp", sent).status_code == 202

    def test_the_newest_version_needs_no_handshake(self, stubs, agent):
        headers = {"MCP-Protocol-Version": NEWEST}
        found = post(agent, f"{stubs}/mcp", modern("server/discover"), **headers)
        assert found.json()["result"]["supportedVersions"] == list(VERSIONS)
        sent = modern("tools/call", name="lookup", arguments={"number": 7})
        found = post(agent, f"{stubs}/mcp", sent, **headers).json()["result"]
        assert (found["resultType"], found["isError"]) == ("complete", False)


async def through_the_client(client_of, address: str, mode: str) -> list[object]:
    async with client_of(address, mode=mode) as client:
        tools = await client.list_tools()
        found = [
            await client.call_tool("lookup", {"number": number}) for number in (7, 7, 8)
        ]
        missed = await client.call_tool("launch", {})
        return [
            client.protocol_version,
            [one.name for one in tools.tools],
            [one.content[0].text for one in (*found, missed)],
            [one.is_error for one in (*found, missed)],
            found[1].structured_content,
        ]


@pytest.mark.django_db(transaction=True)
def test_the_real_client_of_mcp_speaks_with_the_stubs_in_both_ways(project, settings):
    client_of = pytest.importorskip("mcp", reason="Not installed: mcp.").Client
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    with serving() as address:
        for mode, version in (("legacy", "2025-11-25"), ("auto", NEWEST)):
            claim, stubs = opened(project, name=mode)
            found = asyncio.run(
                through_the_client(client_of, f"{address}{stubs}/mcp", mode)
            )
            assert found == [
                version,
                [one.name for one in TOOLS],
                ["open", '{"state": "paid"}', "No such order.", MISSED],
                [False, False, True, True],
                {"state": "paid"},
            ]
            assert StubCall.objects.filter(run=claim.run_id).count() == 4
        url = f"{address}{stubs}/tools/notes"
        assert (
            at_once(*[lambda: httpx.post(url, json={}).json()["result"]] * 4)
            == [CALLS[4].result] * 4
        )
        kept = StubCall.objects.filter(run=claim.run_id).order_by("number")
        assert [one.number for one in kept] == list(range(1, 9))

        def pieces():
            yield b'{"number"'
            yield b": 7}"

        sent = httpx.post(f"{address}{stubs}/tools/lookup", content=pieces())
        assert sent.status_code == 411
