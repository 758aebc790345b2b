"""Cases: the list, one of them, adding by hand and from a file, taking them away."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import msgspec
from django.contrib import messages
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from apps.accounts.permissions import Permission
from apps.agents.queries import named_agents
from apps.pipeline.scoring import score_anew
from apps.replays.case_files import lines_of
from apps.replays.cases import (
    Origin,
    WrongCase,
    keep_cases,
    rename_case,
    retire_case,
)
from apps.replays.models import CaseSource, ReplayCase
from apps.replays.queries import cases_of, retire_cases
from apps.traces.storage import HashedUpload
from apps.web.access import Place, in_project
from apps.web.numbers import whole
from apps.web.pages.replay_case import case_page
from apps.web.pages.replay_cases import case_filter, cases_page
from apps.web.pages.replay_receipt import problem_receipt, taken_file
from apps.web.replay_case_forms import CaseByHandForm, CasesFileForm
from apps.web.views.errors import refusal

MOST_BYTES = 64 * 1024**2
MOST_CHOSEN = 200


@require_safe
@in_project(Permission.VIEW)
def cases(request: HttpRequest, place: Place) -> HttpResponse:
    """The cases of a project, filtered by the URL."""
    page = cases_page(place, request.GET)
    return render(request, "web/replay_cases.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def as_jsonl(request: HttpRequest, place: Place) -> HttpResponseBase:
    """The cases that the URL asks for as JSON lines, which can be added elsewhere."""
    rows = cases_of(place.project.pk, where=case_filter(request.GET))
    one = whole(request.GET.get("case", ""))
    if one is not None:
        rows = ReplayCase.objects.filter(project=place.project, pk=one)
    found = rows.defer(None).select_related(None)
    response = StreamingHttpResponse(
        _lines(found.iterator(chunk_size=20)),
        content_type="application/jsonl; charset=utf-8",
    )
    name = f"{place.project.slug}-cases.jsonl"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _lines(rows: Iterator[ReplayCase]) -> Iterator[str]:
    for row in rows:
        yield from lines_of(row)


@require_POST
@in_project(Permission.REPLAY)
def add_file(request: HttpRequest, place: Place) -> HttpResponse:
    """Keep the cases of JSON lines; what is wrong with a line is said with its number."""
    form = CasesFileForm(request.POST)
    text = _sent_bytes(request)
    if text is None and form.is_valid():
        text = form.cleaned_data["text"].encode("utf-8", "surrogatepass")
    if not text or not text.strip():
        receipt = problem_receipt("Choose a file, or paste some lines.")
    elif len(text) > MOST_BYTES:
        receipt = problem_receipt(f"A file has at most {MOST_BYTES // 1024**2} MiB.")
    else:
        agent = whole(request.POST.get("agent", ""))
        receipt = taken_file(place, text, None if agent is None else place.agent(agent))
    page = msgspec.structs.replace(cases_page(place, {}), receipt=receipt)
    status = 200 if receipt.read else 400
    return render(request, "web/replay_cases.html", {"page": page}, status=status)


def _sent_bytes(request: HttpRequest) -> bytes | None:
    sent = request.FILES.get("file")
    if not isinstance(sent, HashedUpload):
        return None
    with sent.received.open() as stream:
        content: bytes = stream.read(MOST_BYTES + 1)
        return content


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.REPLAY)
def new_case(request: HttpRequest, place: Place) -> HttpResponse:
    """Write a case by hand."""
    form = CaseByHandForm(
        request.POST if request.method == "POST" else None,
        agents=named_agents(place.project.pk),
        initial={"agent": request.GET.get("agent", "")[:20]},
        auto_id="f_%s",
    )
    status = 200
    if request.method == "POST":
        kept = _kept(place, form)
        if kept is not None:
            messages.success(request, "Kept.")
            return redirect("replay-case", place.project.slug, kept.pk)
        status = 400
    form.mark_errors()
    context = {"form": form, "place": place}
    return render(request, "web/replay_case_new.html", context, status=status)


def _kept(place: Place, form: CaseByHandForm) -> ReplayCase | None:
    wanted = form.wanted()
    if wanted is None:
        return None
    agent, case = wanted
    try:
        kept = keep_cases(
            agent=agent,
            cases=[case],
            origin=Origin(CaseSource.HAND),
            user_id=place.user.pk,
            now=timezone.now(),
        )
    except WrongCase as error:
        form.add_error(None, str(error))
        return None
    return kept[0].case


@require_safe
@in_project(Permission.VIEW)
def case(request: HttpRequest, place: Place, frozen_id: int) -> HttpResponse:
    """One case: what is frozen in it, and what is not."""
    page = case_page(place, place.replay_case(frozen_id))
    return render(request, "web/replay_case.html", {"page": page})


@require_POST
@in_project(Permission.REPLAY)
def rename(request: HttpRequest, place: Place, frozen_id: int) -> HttpResponse:
    """Give a case another name."""
    found = place.replay_case(frozen_id)
    try:
        rename_case(case=found, name=request.POST.get("name", ""))
    except WrongCase as error:
        return refusal(request, status=400, sentence=str(error))
    messages.success(request, "Renamed.")
    return redirect("replay-case", place.project.slug, frozen_id)


@require_POST
@in_project(Permission.REPLAY)
def retire(request: HttpRequest, place: Place, frozen_id: int) -> HttpResponse:
    """Put a case away, or take it back."""
    found = place.replay_case(frozen_id)
    is_retired = request.POST.get("act") != "restore"
    retire_case(case=found, is_retired=is_retired)
    score_anew(project_id=place.project.pk)
    messages.success(
        request,
        "Retired. What was run with it stays, and counts in no verdict any more."
        if is_retired
        else "It can be run again.",
    )
    trace = found.trace_id
    if request.POST.get("back") == "trace" and trace is not None:
        return redirect("trace", place.project.slug, trace)
    return redirect("replay-case", place.project.slug, frozen_id)


@require_POST
@in_project(Permission.REPLAY)
def chosen(request: HttpRequest, place: Place) -> HttpResponse:
    """Plan a batch with the cases that were ticked, or put them away."""
    sent = request.POST.getlist("case")[:MOST_CHOSEN]
    ids = [one for text in sent if (one := whole(text)) is not None]
    if not ids:
        return refusal(request, status=400, sentence="Tick at least one case first.")
    if request.POST.get("act") != "retire":
        query = urlencode([("case", one) for one in ids])
        where = reverse("replay-plan", args=[place.project.slug])
        return redirect(f"{where}?{query}")
    count = retire_cases(place.project.pk, ids)
    score_anew(project_id=place.project.pk)
    cases_word = "1 case" if count == 1 else f"{count:,} cases"
    messages.success(
        request, f"{cases_word} retired. The list of retired ones brings them back."
    )
    return redirect("replay-cases", place.project.slug)
