"""People and files that name tasks at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connections, transaction

from apps.traces.models import Task
from apps.traces.trials import WrongPlace, rename_task
from tests.factories import make_project


@pytest.mark.django_db(transaction=True)
def test_a_name_that_a_file_brings_at_the_same_moment_is_refused_in_words():
    project = make_project()
    task = Task.objects.create(project=project, key="parcels")
    is_there = Event()

    def bring():
        try:
            with transaction.atomic():
                Task.objects.create(project=project, key="refunds")
                is_there.set()
                # Until the other one waits for this transaction.
                Event().wait(0.5)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        brought = pool.submit(bring)
        assert is_there.wait(10)
        with pytest.raises(WrongPlace, match="is here already"):
            rename_task(task=task, name="refunds")
        brought.result(timeout=10)
    assert Task.objects.get(pk=task.pk).key == "parcels"
