"""The parts of `check-code` run side by side, and each says what it has to say in turn."""

from __future__ import annotations

import pytest

from evalsite import quality

SLOW = ("python", "-c", "import time; time.sleep(0.3); print('slow')")
FAST = ("python", "-c", "print('fast')")
BAD = ("python", "-c", "import sys; print('bad', file=sys.stderr); sys.exit(3)")


@pytest.fixture
def checked(monkeypatch, capfd):
    def checked(**parts: tuple[str, ...]) -> tuple[int, str, str]:
        monkeypatch.setattr(quality, "_CHECKS", parts)
        code = quality.main("check-code")
        return code, *capfd.readouterr()

    return checked


def test_what_is_slow_is_told_in_its_place_and_all_is_clean(checked):
    code, said, headings = checked(first=SLOW, second=FAST)
    assert (code, said.split()) == (0, ["slow", "fast"])
    assert headings == "· first\n· second\n\nEverything is clean.\n"


def test_a_part_that_fails_does_not_end_the_others_and_is_named(checked):
    code, said, headings = checked(first=BAD, second=FAST)
    assert (code, said.split()) == (1, ["bad", "fast"])
    assert headings.endswith("\nNot clean: first.\n")
