"""What is asked of agents and outcomes through the JSON door: read it, and write it.

A document is taken as a whole or not at all, by the rules of the form and of files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import ApiToken
from apps.accounts.permissions import Scope
from apps.agents.exchange import Plan, planned, yaml_of
from apps.agents.models import AgentDefinition
from apps.agents.operations import AskedMeanwhile, WrongAgent
from apps.agents.queries import definition_history, definitions_of
from apps.api.asking import is_yes, one_of
from apps.api.receiving import WholeBody
from apps.api.refusals import BadRequest, in_a_sentence
from apps.api.verdict_documents import decision_document, definition_document
from apps.api.verdict_views import agent_of
from apps.api.views import ProjectView
from apps.engine.agent_contracts import (
    BadContractsFile,
    ContractsFile,
    StoredAgent,
    StoredDefinitions,
    contracts_from_yaml,
    contracts_to_yaml,
    stored_contracts,
    stored_decision,
)
from apps.engine.agent_contracts.plain_yaml import LARGEST, read_yaml, write_yaml
from apps.pipeline.definitions import take_definitions

YAML: Final = "application/yaml"
# A character of the text takes at most four bytes.
_MOST_BYTES: Final = 4 * LARGEST
_CHANGED: Final = (
    "What is asked has changed since you read it. Read it again, compare, and send "
    "yours with the new ETag."
)


class YamlText(BaseRenderer):
    """Answers a request for YAML; a refusal is YAML too."""

    media_type = YAML
    format = "yaml"
    charset = "utf-8"

    def render(self, data: Any, *_context: Any, **_more: Any) -> str:
        """The value as YAML."""
        return write_yaml(data)


class YamlView(ProjectView):
    """A view that answers in JSON, or in YAML where `?format=yaml` or Accept asks."""

    renderer_classes = (JSONRenderer, YamlText)

    @property
    def wants_yaml(self) -> bool:
        """Whether YAML is asked for; raises `BadRequest` for another format."""
        said = one_of(self.request, "format", {"json": "", "yaml": ""})
        accepted = getattr(self.request, "accepted_renderer", None)
        return said == "yaml" or (not said and isinstance(accepted, YamlText))

    def answer(self, text: str, headers: Mapping[str, str]) -> HttpResponse:
        """The YAML text as it is."""
        content_type = f"{YAML}; charset=utf-8"
        return HttpResponse(text, content_type=content_type, headers=dict(headers))


class Definitions(YamlView):
    """Everything that is asked of the agents and outcomes of the project."""

    scopes: ClassVar[dict[str, Scope]] = {
        "GET": Scope.READ,
        "PUT": Scope.DEFINE,
        "POST": Scope.DEFINE,
    }
    parser_classes = (WholeBody,)

    def get(self, request: Request, **_path: str) -> HttpResponse:  # noqa: ARG002
        """The document; its ETag names the version for a later `If-Match`."""
        wants_yaml = self.wants_yaml
        # Before the text: a change in between makes the stamp too old, never too new.
        stamp = _stamp_of(self.project.pk)
        text, left_out = yaml_of(self.project.pk)
        headers = {"ETag": f'"{stamp}"'}
        if left_out:
            headers["X-Left-Out"] = str(len(left_out))
        if wants_yaml:
            return self.answer(text, headers)
        return Response(read_yaml(text), headers=headers)

    def put(self, request: Request, **_path: str) -> Response:
        """Take a document: what it names is replaced, all else stays as it is.

        `dry_run` says what would change, and `If-Match` refuses a document that was
        made from an older version. Safe to send twice.
        """
        is_dry = is_yes(request, "dry_run")
        try:
            found = contracts_from_yaml(_text_of(request))
            plan = planned(self.project.pk, found)
            # After the plan: what is asked only moves on, so the plan is of that state.
            if _seen(request) not in {"", _stamp_of(self.project.pk)}:
                return _refused(412, _CHANGED)
            if not is_dry and not plan.is_empty:
                plan = self._take(found, plan.stamp)
        except BadContractsFile as error:
            return _refused(400, str(error), problems=list(error.problems))
        except AskedMeanwhile:
            return _refused(412, _CHANGED)
        except WrongAgent as error:
            return _refused(400, str(error))
        return Response(_plan_document(plan, is_dry=is_dry))

    post = put

    def _take(self, found: ContractsFile, seen: str) -> Plan:
        token = self.request.auth
        return take_definitions(
            project_id=self.project.pk,
            found=found,
            seen=seen,
            user_id=token.created_by_id if isinstance(token, ApiToken) else None,
            now=timezone.now(),
        )


def _refused(status: int, sentence: str, **more: Any) -> Response:
    return Response({**in_a_sentence({"detail": sentence}), **more}, status=status)


def _stamp_of(project_id: int) -> str:
    """16 hexadecimal digits that change whenever something is asked differently."""
    said = msgspec.json.encode(definitions_of(project_id).stamp)
    return hashlib.sha256(said).hexdigest()[:16]


def _seen(request: Request) -> str:
    """The stamp that `If-Match` names; "" where any version will do."""
    said = request.headers.get("If-Match", "").strip().removeprefix("W/")
    return "" if said == "*" else said.strip('"')


def _text_of(request: Request) -> str:
    """The document that was sent, JSON as YAML; raises `BadRequest`."""
    body = request._request.read(_MOST_BYTES + 1)  # noqa: SLF001 - the body, unparsed
    if len(body) > _MOST_BYTES:
        raise BadRequest(f"A document has at most {LARGEST:,} characters.")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadRequest("The document is not UTF-8.") from None
    if not text.strip():
        raise BadRequest("The body is empty: send the document as YAML or JSON.")
    is_json = (request.content_type or "").partition(";")[
        0
    ].strip() == "application/json"
    return _as_yaml(text) if is_json else text


def _as_yaml(text: str) -> str:
    # JSON is YAML but for its escapes of pairs; a name that stands twice must be seen.
    try:
        return write_yaml(
            json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        )
    except json.JSONDecodeError as error:
        sentence = f"Line {error.lineno}, character {error.colno}: this is no JSON."
        raise BadRequest(sentence) from None
    except (RecursionError, ValueError):
        raise BadRequest("The document holds a value that is not read.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadRequest(f"“{name[:60]}” stands twice.")
        found[name] = value
    return found


def _no_number(name: str) -> None:
    raise BadRequest(f"{name} is not a number.")


def _plan_document(plan: Plan, *, is_dry: bool) -> dict[str, Any]:
    """What changed, or would change, agent by agent."""
    return {
        "is_dry_run": is_dry,
        "is_changed": not plan.is_empty,
        "agents": [
            {
                "agent": one.name,
                "id": one.pk,
                "is_new": one.pk is None,
                "changes": one.changes.sentences,
            }
            for one in plan.agents
        ],
        "tasks": plan.outcome_changes.sentences,
    }


class AgentDefinitions(YamlView):
    """What was asked of one agent, all versions."""

    def get(self, request: Request, agent_id: str, **_path: str) -> HttpResponse:  # noqa: ARG002
        """The versions, newest first, the first one being in force; YAML is that one."""
        agent = agent_of(self.project.pk, agent_id)
        history = definition_history(agent)
        if self.wants_yaml:
            return self.answer(_yaml_of_one(str(agent), history), {})
        return Response(
            {
                "agent": str(agent),
                "agent_id": agent.pk,
                "agent_decision": decision_document(history[0] if history else None),
                "definitions": [definition_document(row) for row in history],
            }
        )


def _yaml_of_one(name: str, history: list[AgentDefinition]) -> str:
    if not history:
        return contracts_to_yaml(ContractsFile())
    row = history[0]
    said = StoredAgent(
        decision=stored_decision(row.decision, version=row.number),
        contracts=tuple(stored_contracts(row.held, version=row.number)),
    )
    return contracts_to_yaml(StoredDefinitions({name: said}))
