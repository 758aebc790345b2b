"""Acts of people and workers in any order lose no decision and double no signal."""

from __future__ import annotations

import hashlib
import io
from random import Random

import pytest

from apps.accounts.models import Project, User
from apps.accounts.operations import set_blind_percent
from apps.engine.formats.evalsite_writer import dump
from apps.pipeline import lineups, reading
from apps.pipeline.flow import read_again
from apps.pipeline.lineups import catch_up
from apps.pipeline.reading import read_upload
from apps.pipeline.shadows import (
    NothingToChange,
    Wish,
    adopt_key,
    begin_shadow,
    run_shadow,
    set_paused,
)
from apps.review import blind
from apps.review import operations as review
from apps.review.blind import BlindInput
from apps.review.models import BlindLook, Signal
from apps.review.operations import Conflict, DecisionInput
from apps.review.transitions import BlindVerdict, NotPossibleNow, Verdict
from apps.screening.definitions import (
    Wanted,
    current_definition,
    define,
    redefine,
    set_state,
)
from apps.screening.lineup import lineup_of
from apps.screening.models import DefinitionState
from apps.screening.shadows import CannotShadow
from apps.traces.models import Trace, Upload
from tests.adopting import caught_up, key
from tests.factories import (
    NO_REFUND,
    NOW,
    decay_trace,
    make_member,
    make_project,
    tool_call,
    trace_of,
    upload_bytes,
)
from tests.factories import model_call as model
from tests.whole_review import (
    assert_always,
    assert_caught_up,
    assert_ranked,
)

pytestmark = pytest.mark.django_db
SLUGS = ("output-decay", "tool-drift")
KEYS = {
    "output-decay": [{"last_percent": n} for n in (20, 40, 60, 80)],
    "tool-drift": [{"window": 3}, {"window": 3, "max_chance": 1.0}, {"window": 4}],
}


class Life:
    """A project in which people and workers act at random, and what must stay."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random = Random(seed)
        self.patch = monkeypatch
        self.project: Project = make_project()
        self.people: list[User] = [
            make_member(self.project, "reviewer", f"r{seed}{n}") for n in range(2)
        ]
        self.contents: dict[str, bytes] = {}
        self.uploads = 0
        self.decisions: dict[int, tuple[str, int]] = {}
        self.looks: dict[int, str] = {}
        set_blind_percent(project=self.project, percent=30)

        monkeypatch.setattr(
            reading, "open_raw", lambda sha: io.BytesIO(self.contents[sha])
        )

    def _trace(self, name: str):
        random = self.random
        if random.random() < 0.3:
            tools = [random.choice("abc") for _ in range(random.randint(2, 12))]
            tools += ["refund"] * random.randint(0, 1)
            return trace_of([tool_call(n, t) for n, t in enumerate(tools)], name=name)
        length = random.randint(3, 8)
        outputs = sorted(random.sample(range(1, 200), length), reverse=True)
        if random.random() < 0.3:
            random.shuffle(outputs)
        if random.random() < 0.4:
            steps = [model(n, out) for n, out in enumerate(outputs)]
            half = len(steps)
            steps += [
                model(half + n, out, resets_context=n == 0)
                for n, out in enumerate(outputs)
            ]
            return trace_of(steps, name=name)
        return decay_trace(*outputs, name=name)

    def _content(self, name: str, count: int) -> bytes:
        names = [f"{name} {n}" for n in range(count)]
        return b"".join(dump(self._trace(one)) for one in names)

    def upload(self) -> None:
        self.uploads += 1
        name = f"u{self.uploads}"
        content = self._content(name, self.random.randint(1, 4))
        sha = hashlib.sha256(content).hexdigest()
        self.contents[sha] = content
        assert upload_bytes(self.project, content, name=name).state == "done"

    def read_again(self) -> None:
        upload = self._one(Upload.objects.filter(project=self.project))
        if upload is None:
            return
        kept = self.random.randint(1, 4)
        self.contents[upload.sha256] = self._content(upload.name, kept)
        read_again(upload=upload, format_override="")
        read_upload(upload_id=upload.pk, clock=lambda: NOW)
        upload.refresh_from_db()
        assert (upload.state, upload.failure) == ("done", "")

    def _one(self, rows):
        found = list(rows.order_by("pk"))
        return self.random.choice(found) if found else None

    def adopt(self) -> None:
        slug = self.random.choice(SLUGS)
        wish = Wish(key(self.project, slug, **self.random.choice(KEYS[slug])))
        try:
            adopt_key(project_id=self.project.pk, wish=wish, user_id=None, now=NOW)
        except NothingToChange:
            return

    def pause(self) -> None:
        slug = self.random.choice(SLUGS)
        entry = lineup_of(self.project.pk).by_slug[slug]
        set_paused(
            project_id=self.project.pk,
            slug=slug,
            is_paused=not entry.is_paused,
            user_id=None,
            now=NOW,
        )

    def shadow(self) -> None:
        slug = self.random.choice(SLUGS)
        check = key(self.project, slug, **self.random.choice(KEYS[slug]))
        before = [(s.pk, s.state, s.version, s.rank) for s in self._signals()]
        try:
            shadow, _ = begin_shadow(
                project=self.project, check=check, user_id=None, now=NOW
            )
        except CannotShadow:
            return
        while run_shadow(shadow_id=shadow.pk):
            pass
        assert [(s.pk, s.state, s.version, s.rank) for s in self._signals()] == before

    def _signals(self):
        return Signal.objects.filter(project=self.project).order_by("pk")

    def catch_up(self) -> None:
        caught_up(self.project)
        assert_caught_up(self.project)
        assert_ranked(self.project)

    def killed(self) -> None:
        """A worker dies after its first batch, or in the middle of one."""

        def dies(*_, **__):
            raise KeyboardInterrupt

        place = self.random.choice(["mark_screened", "rank_signals", "settle"])
        with self.patch.context() as patch:
            patch.setattr(lineups, "MOST_STEPS", 12)
            patch.setattr(lineups, place, dies)
            try:
                catch_up(project_id=self.project.pk, clock=lambda: NOW)
            except KeyboardInterrupt:
                return

    def decide(self) -> None:
        signal = self._one(self._signals())
        if signal is None:
            return
        user = self.random.choice(self.people)
        verdict = self.random.choice([Verdict.CONFIRM, Verdict.DISMISS])
        try:
            decided = review.decide(
                signal_id=signal.pk,
                user=user,
                decision=DecisionInput(verdict=verdict, reason="converged"),
                base_version=signal.version,
            )
        except (Conflict, NotPossibleNow):
            return
        self.decisions[signal.pk] = (verdict.value, user.pk)
        assert decided.verdict == verdict

    def undo(self) -> None:
        signal = self._one(self._signals().filter(state="decided"))
        if signal is None:
            return
        review.undo(
            signal_id=signal.pk, user=signal.decided_by, base_version=signal.version
        )
        del self.decisions[signal.pk]

    def claim(self) -> None:
        signal = self._one(self._signals())
        user = self.random.choice(self.people)
        if signal is None:
            return
        try:
            review.claim(signal_id=signal.pk, user=user)
        except (Conflict, NotPossibleNow):
            return
        if self.random.random() < 0.5:
            review.release(signal_id=signal.pk, user=user)

    def draft(self) -> None:
        signal = self._one(self._signals())
        if signal is not None:
            review.save_draft(
                signal_id=signal.pk, user=self.people[0], fields={"note": "x"}, now=NOW
            )

    def look(self) -> None:
        look = self._one(BlindLook.objects.filter(project=self.project, state="open"))
        if look is None:
            return
        try:
            blind.decide(
                look_id=look.pk,
                user=self.people[1],
                decision=BlindInput(verdict=BlindVerdict.NO_FAILURE),
                base_version=look.version,
            )
        except NotPossibleNow:
            return
        self.looks[look.pk] = "no_failure"

    def define(self) -> None:
        """A contract is made, changed, renamed, paused, retired or taken back."""
        now = current_definition(project_id=self.project.pk, slug="no-refund")
        number = self.random.randint(1, 2)
        spec = {**NO_REFUND, "operator": "at_most", "n": number}
        if self.random.random() < 0.5:
            spec = NO_REFUND
        wanted = Wanted(kind="contract", label="No refund", spec=spec)
        if now is None:
            define(project_id=self.project.pk, wanted=wanted, user_id=None, now=NOW)
        elif self.random.random() < 0.5:
            redefine(current=now, wanted=wanted, user_id=None, now=NOW)
        else:
            state = self.random.choice(list(DefinitionState))
            set_state(current=now, state=state, user_id=None, now=NOW)

    def live(self, acts: int) -> None:
        for _ in range(3):
            self.upload()
        usual = [self.upload, self.read_again, self.adopt, self.pause, self.shadow]
        usual += [self.catch_up, self.killed, self.decide, self.decide, self.undo]
        usual += [self.claim, self.draft, self.look, self.define, self.adopt]
        for _ in range(acts):
            act = self.random.choice(usual)
            try:
                act()
                self.check()
            except Exception as error:
                error.add_note(f"after {act.__name__}")
                raise
        self.catch_up()
        self.check()

    def check(self) -> None:
        assert_always(self.project)
        stand = {
            one.pk: (one.verdict, one.decided_by_id)
            for one in self._signals().filter(state="decided")
        }
        assert stand == self.decisions
        looks = BlindLook.objects.filter(project=self.project, state="decided")
        assert dict(looks.values_list("pk", "verdict")) == self.looks


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_acts_keeps_decisions_signals_and_counts(seed, monkeypatch):
    life = Life(seed, monkeypatch)
    life.live(60)
    assert Trace.objects.filter(project=life.project).count() > 3
