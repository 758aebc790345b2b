"""The attempted side effects of a run in their order, each once.

Two tell of them: the watch inside, before an attempt and in Python's words, and the
wall, which holds it back. What both tell is one effect.
"""

from __future__ import annotations

from apps.engine.replay.run import Effect, EffectKind

_MOST = 500
# A program is started in two ways, one after the other; a name is asked for in many.
_MOST_MATCHES = {EffectKind.PROCESS: 2, EffectKind.SOCKET: 8}
# Whether there is IPv6 is asked by binding to any port of one's own.
_PROBES = {f"listen on {host}:0" for host in ("127.0.0.1", "::1", "0.0.0.0", "::")}  # noqa: S104
_OF_A_LOOK_UP = ("make a socket", "connect to", "send to")


class Ledger:
    """Collects the effects; `after` is the number of events of the run so far."""

    def __init__(self) -> None:
        self.after = 0
        self._effects: list[Effect] = []
        self._keys: set[tuple[EffectKind, str, int, bool]] = set()
        self._unanswered: Effect | None = None
        self._matches = self._left_out = 0
        self._has_left_out_a_breach = False

    def told(
        self,
        kind: EffectKind,
        what: str,
        *,
        was_stopped: bool | None,
        is_breach: bool = True,
    ) -> None:
        """The watch, or we ourselves, tell of an attempt."""
        effect = Effect(
            kind=kind,
            what=what,
            after=self.after,
            was_stopped=was_stopped,
            is_breach=is_breach,
        )
        self._unanswered, self._matches = effect, 0
        self._add(effect)

    def held_back(self, kind: EffectKind, what: str, *, is_breach: bool = True) -> None:
        """The wall held something back; told of before, it is that."""
        before = self._unanswered
        is_same = before is not None and self._is_that(before, kind, what)
        if is_same and self._may_stand(before, what, is_breach=is_breach):
            self._matches += 1
            if self._matches >= _MOST_MATCHES.get(kind, 1):
                self._unanswered = None
            return
        self._add(
            Effect(
                kind=kind,
                what=what,
                after=self.after,
                was_stopped=True,
                is_breach=is_breach,
            )
        )

    def _is_that(self, before: Effect, kind: EffectKind, what: str) -> bool:
        if before.after != self.after:
            return False
        if before.kind == EffectKind.NAME_LOOKUP:
            return kind == EffectKind.SOCKET and what.startswith(_OF_A_LOOK_UP)
        if before.kind != kind:
            return False
        has_names = kind in {EffectKind.SOCKET, EffectKind.SIGNAL}
        return before.what == what or not has_names

    def _may_stand(self, before: Effect | None, what: str, *, is_breach: bool) -> bool:
        """Whether what the watch said is enough.

        It speaks out of the agent's process, which may have put words into its mouth:
        that a connection is harmless is not taken from there.
        """
        if before is None or before.is_breach or not is_breach:
            return True
        return before.kind == EffectKind.PROCESS or what in _PROBES

    def _add(self, effect: Effect) -> None:
        key = (effect.kind, effect.what, self.after, effect.is_breach)
        if key in self._keys:
            return
        if len(self._effects) >= _MOST:
            self._left_out += 1
            self._has_left_out_a_breach |= effect.is_breach
            return
        self._keys.add(key)
        self._effects.append(effect)

    def all(self) -> tuple[Effect, ...]:
        """All effects in order, the last of them saying how many are not listed."""
        if not self._left_out:
            return tuple(self._effects)
        more = Effect(
            kind=EffectKind.OTHER,
            what=f"{self._left_out} more attempts that are not listed",
            was_stopped=None,
            is_breach=self._has_left_out_a_breach,
        )
        return (*self._effects, more)
