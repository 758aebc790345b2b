"""Token usage of OpenHands runs: per response where it is listed, else as totals.

The metrics of a run list one usage for each response id; the numbers that are called
accumulated grow with every call and are only compared with the calls, never added.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.run_totals import Sums
from apps.engine.reading.text_limits import Remarks
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.usage_fields import usage_counts


class Metrics:
    """Usage and latency by response id, and the totals of the agent's model."""

    def __init__(self) -> None:
        self.sums = Sums()
        self._usages: dict[str, dict[str, Any]] = {}
        self._latencies: dict[str, Any] = {}
        self._totals: dict[str, Any] = {}

    def take(self, metrics: Any) -> None:
        """Take the metrics of one model; later totals replace earlier ones."""
        if not isinstance(metrics, dict):
            return
        for usage in _objects(metrics.get("token_usages")):
            if isinstance(usage.get("response_id"), str):
                self._usages[usage["response_id"]] = usage
        for latency in _objects(metrics.get("response_latencies")):
            if isinstance(latency.get("response_id"), str):
                self._latencies[latency["response_id"]] = latency.get("latency")
        totals = metrics.get("accumulated_token_usage")
        if isinstance(totals, dict):
            self._totals = totals

    def take_stats(self, stats: Any, usage_id: Any) -> None:
        """Take the statistics of a conversation: one metrics for each use of a model.

        Only those of the agent itself (`usage_id`, or the only ones there are) have
        totals that its calls can be compared with.
        """
        parts = stats.get("usage_to_metrics") if isinstance(stats, dict) else None
        if not isinstance(parts, dict):
            return
        own = usage_id if isinstance(usage_id, str) and usage_id in parts else None
        for key, metrics in parts.items():
            kept = self._totals
            self.take(metrics)
            if key != own and (own is not None or len(parts) > 1):
                self._totals = kept

    def counts(self, response: Any, usage: Any) -> Counts:
        """Return the counts of a response: its own usage, else the one listed."""
        given = usage_counts(usage, "model_response.usage")
        if given.output_total is not None or not isinstance(response, str):
            return given
        return usage_counts(self._usages.get(response), "metrics.token_usages")

    def model(self, response: Any) -> Any:
        """Return the model that the list of usages names for a response."""
        listed = self._usages.get(response) if isinstance(response, str) else None
        return listed.get("model") if listed else None

    def latency(self, response: Any) -> Any:
        """Return the seconds that a response took, where they are listed."""
        return self._latencies.get(response) if isinstance(response, str) else None

    def compare(self, remarks: Remarks) -> None:
        """Remark on totals that are not the sum of the calls."""
        told = {
            name: whole_number(self._totals.get(key)) for name, key in _TOTALS.items()
        }
        if any(told.values()):
            self.sums.compare(told, remarks)


_TOTALS: Final = {
    "total_prompt_tokens": "prompt_tokens",
    "total_completion_tokens": "completion_tokens",
}


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [one for one in value if isinstance(one, dict)]
