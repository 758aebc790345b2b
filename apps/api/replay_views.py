"""Replays through the JSON door: targets are read, cases kept, batches run and read.

Targets are made on their pages alone, by maintainers. A token with the scope `replay`
keeps cases and starts batches; reading needs `read`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

import msgspec
from django.http import Http404, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.models import ApiToken
from apps.accounts.permissions import Scope
from apps.agents.models import Agent
from apps.api.asking import PAGE_SIZE, following, is_yes, one_of, whole
from apps.api.receiving import WholeBody
from apps.api.refusals import BadRequest, FileTooLarge, in_a_sentence
from apps.api.replay_documents import (
    case_document,
    target_document,
    version_document,
    whole_case_document,
)
from apps.api.replay_planning import (
    converted,
)
from apps.api.views import ProjectView
from apps.engine.replay.stub_door import BadRequestBody, json_in
from apps.pipeline.scoring import score_anew
from apps.replays.case_files import lines_of, take_case_lines
from apps.replays.cases import WrongCase, rename_case, retire_case
from apps.replays.freezing import freeze_invocation
from apps.replays.models import CaseSource, ReplayCase
from apps.replays.queries import (
    CaseFilter,
    cases_of,
    target_rows,
    targets_of,
    version_history,
)
from apps.traces.models import Trace

LARGEST_FILE: Final = 64 * 1024**2
_SOURCES: Final = {one.value: one for one in CaseSource}


class ReplayView(ProjectView):
    """A view that takes JSON by the rules for what targets answer."""

    parser_classes = (WholeBody,)

    def sent(self) -> Any:
        """The JSON of the request, an empty object without a body."""
        raw = self.request._request  # noqa: SLF001 - the body, unparsed
        try:
            body = raw.read(LARGEST_FILE + 1)
            return json_in(body) if body.strip() else {}
        except BadRequestBody as error:
            raise BadRequest(str(error)) from None

    @property
    def user_id(self) -> int | None:
        """Who made the token."""
        token = self.request.auth
        return token.created_by_id if isinstance(token, ApiToken) else None

    def case(self, frozen_id: str) -> ReplayCase:
        """A case of the project; raises `Http404`."""
        rows = ReplayCase.objects.filter(project=self.project, pk=int(frozen_id))
        found = rows.select_related("agent").first()
        if found is None:
            raise Http404
        return found


def refused(status: int, sentence: str, **more: Any) -> Response:
    """A refusal with its sentence, and what else is known."""
    return Response({**in_a_sentence({"detail": sentence}), **more}, status=status)


class Targets(ReplayView):
    """How the agents of the project are run alone."""

    def get(self, request: Request, **_path: str) -> Response:
        """All targets of the project, retired ones last."""
        rows = target_rows(targets_of(self.project.pk))
        return Response({"targets": [target_document(row, request) for row in rows]})


class OneTarget(ReplayView):
    """One target."""

    def get(self, request: Request, target_id: str, **_path: str) -> Response:
        """What it is set to, and was, newest first; never its key."""
        rows = target_rows(targets_of(self.project.pk).filter(pk=int(target_id)))
        if not rows:
            raise Http404
        history = version_history(rows[0].target)
        versions = [version_document(one) for one in history]
        return Response({**target_document(rows[0], request), "versions": versions})


class Cases(ReplayView):
    """The cases of the project, newest first; POST keeps those of JSON lines."""

    scopes: ClassVar[dict[str, Scope]] = {"GET": Scope.READ, "POST": Scope.REPLAY}

    def get(self, request: Request, **_path: str) -> Response:
        """One page: `agent`, `source`, `q` and `retired` narrow it, `before` goes on."""
        edge = whole(request, "before")
        rows = cases_of(self.project.pk, where=_wanted(request), before=edge)
        found = list(rows[: PAGE_SIZE + 1])
        shown = found[:PAGE_SIZE]
        cases = [case_document(row, request) for row in shown]
        after = following(request, "before", found, shown)
        return Response({"cases": cases, "next": after})

    def post(self, request: Request, **_path: str) -> Response:
        """Keep the cases of the body, one a line; `agent` is that of lines without one.

        201 when one of them is new. Bad lines are named and the rest is kept.
        """
        usual = self._agent(whole(request, "agent"))
        content = request._request.read(LARGEST_FILE + 1)  # noqa: SLF001 - unparsed
        if len(content) > LARGEST_FILE:
            raise FileTooLarge(f"A file has at most {LARGEST_FILE // 1024**2} MiB.")
        try:
            taken = take_case_lines(
                project_id=self.project.pk,
                content=content,
                usual=usual,
                user_id=self.user_id,
                now=timezone.now(),
            )
        except WrongCase as error:
            raise BadRequest(f"{error} Nothing of the file was kept.") from None
        document = {
            "new": taken.new,
            "cases": [one.case.pk for one in taken.kept],
            "refused": msgspec.to_builtins(taken.refused[:PAGE_SIZE]),
            "refused_count": taken.refused_count,
            "notes": list(taken.notes),
        }
        if not taken.kept:
            sentence = "The body holds no case that could be kept."
            return refused(400, sentence, **document)
        return Response(document, status=201 if taken.new else 200)

    def _agent(self, agent_id: int | None) -> Agent | None:
        if agent_id is None:
            return None
        found = Agent.objects.filter(project=self.project, pk=agent_id).first()
        if found is None:
            raise BadRequest("“agent” is the id of an agent of this project.")
        return found


def _wanted(request: Request) -> CaseFilter:
    return CaseFilter(
        q=request.query_params.get("q", "").replace("\x00", "")[:200],
        agent=whole(request, "agent"),
        source=one_of(request, "source", _SOURCES),
        task=whole(request, "task"),
        is_retired=is_yes(request, "retired"),
    )


class CaseLines(ReplayView):
    """The cases of the project as a file."""

    def get(self, request: Request, **_path: str) -> HttpResponseBase:
        """JSON lines of the cases that the same filters let through."""
        rows = cases_of(self.project.pk, where=_wanted(request))
        found = rows.defer(None).select_related(None).iterator(chunk_size=20)
        return StreamingHttpResponse(
            _case_lines(found), content_type="application/x-ndjson; charset=utf-8"
        )


def _case_lines(rows: Iterator[ReplayCase]) -> Iterator[str]:
    for row in rows:
        yield from lines_of(row)


class _AskedFreezing(msgspec.Struct, forbid_unknown_fields=True):
    trace: int
    invocation: int | None = None


class FrozenCases(ReplayView):
    """POST freezes a case out of a trace."""

    scopes: ClassVar[dict[str, Scope]] = {"POST": Scope.REPLAY}

    def post(self, request: Request, **_path: str) -> Response:
        """Freeze `invocation` (from 0; null for what no agent owns) of `trace`."""
        asked = converted(self.sent(), _AskedFreezing)
        trace = Trace.objects.filter(
            project=self.project, pk=min(max(asked.trace, 0), 2**63 - 1)
        ).first()
        if trace is None:
            raise BadRequest("“trace” is the id of a trace of this project.")
        try:
            kept = freeze_invocation(
                trace=trace,
                invocation=asked.invocation,
                user_id=self.user_id,
                now=timezone.now(),
            )
        except WrongCase as error:
            return refused(409, str(error))
        document = whole_case_document(kept.case, request)
        status = 201 if kept.is_new else 200
        return Response(document, status=status, headers={"Location": document["url"]})


class _AskedChange(msgspec.Struct, forbid_unknown_fields=True):
    name: str | None = None
    is_retired: bool | None = None


class OneCase(ReplayView):
    """One case."""

    scopes: ClassVar[dict[str, Scope]] = {"GET": Scope.READ, "PATCH": Scope.REPLAY}

    def get(self, request: Request, frozen_id: str, **_path: str) -> Response:
        """Its content, and what is not recorded of it."""
        return Response(whole_case_document(self.case(frozen_id), request))

    def patch(self, request: Request, frozen_id: str, **_path: str) -> Response:
        """Change its `name`, or put it away with `is_retired`; its content stays."""
        found = self.case(frozen_id)
        asked = converted(self.sent(), _AskedChange)
        try:
            if asked.name is not None:
                rename_case(case=found, name=asked.name)
        except WrongCase as error:
            raise BadRequest(str(error)) from None
        if asked.is_retired is not None:
            retire_case(case=found, is_retired=asked.is_retired)
            score_anew(project_id=self.project.pk)
        return Response(case_document(self.case(frozen_id), request))
