"""After whatever people and uploads do, scores are those of what is there now."""

from __future__ import annotations

import pytest

from apps.pipeline.scoring import score_project
from tests.factories import NOW
from tests.random_scores import History
from tests.whole_scores import assert_scores_are_whole

pytestmark = pytest.mark.django_db

ROUNDS = 8
ACTS = 6


def scored(project) -> None:
    while score_project(project_id=project.pk, clock=lambda: NOW):
        pass


@pytest.mark.parametrize("seed", range(4))
def test_after_random_acts_every_score_is_that_of_what_is_there(project, owner, seed):
    history = History(project, owner, seed)
    history.upload()
    for _ in range(ROUNDS):
        history.go_on(ACTS)
        scored(project)
        assert_scores_are_whole(project)
    assert len(set(history.done)) > 10
