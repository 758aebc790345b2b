"""CPU time of the checks: per tau-bench trace, and per step as traces grow.

The aim is less than 1 ms of CPU for all checks together on one tau-bench trace, on one
core, and a time per step that does not grow with the trace up to 25,000 steps. Quote
the ratios; the absolute figures drift with the machine. Each measured run gets a fresh
trace, so that nothing is remembered from the run before: alone, a check pays for what
it derives; together, the checks share it.
"""

from __future__ import annotations

import gc
import io
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from apps.engine.check import Check
from apps.engine.checks import CHECKS
from apps.engine.formats import read_file
from apps.engine.trace import Trace
from tests.benchmarks.corpus import results_file
from tests.benchmarks.trace_shapes import SHAPES, Shape

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared/data/tau_bench_results/gpt-4o-airline.json"
SIZES = (100, 1_000, 5_000, 25_000)
ROUNDS = 5
AIM_MS = 1.0
# Beyond this a time per step is no noise: it grows with the trace.
GROWS = 2.0
# A run that would take longer is not waited for.
LONGEST_S = 60.0


def seconds(checks: Sequence[Check], traces: Sequence[Trace]) -> float:
    """CPU seconds of all answers of `checks` about fresh copies of `traces`."""
    fresh = [msgspec.structs.replace(trace) for trace in traces]
    gc.collect()
    began = time.process_time()
    for trace in fresh:
        for check in checks:
            for _ in check.run(trace):
                pass
    return time.process_time() - began


def growth(times: dict[int, float]) -> float:
    """Time per step at the largest size, over that at 1,000 steps (or the smallest)."""
    largest, base = max(times), 1_000 if 1_000 in times else min(times)
    return (times[largest] / largest) / (times[base] / base)


def measured(
    checks: Sequence[Check], shape: Shape, sizes: Sequence[int]
) -> dict[int, float]:
    """Seconds at each size; sizes that would take too long are left out."""
    found: dict[int, float] = {}
    for size in sizes:
        trace = shape(size)
        rounds = 3 if size <= 1_000 else 1
        found[size] = min(seconds(checks, [trace]) for _ in range(rounds))
        if found[size] * 25 > LONGEST_S:
            break
    return found


def compare(label: str, content: bytes) -> None:
    """Print the CPU time of each check, and of all, for one trace of a file."""
    traces = [one for one in read_file(io.BytesIO(content)) if isinstance(one, Trace)]
    steps = sum(len(trace.steps) for trace in traces)
    print(
        f"{label}: {len(traces)} traces, {steps / len(traces):.1f} steps each on average"
    )
    empty, together = [], []
    alone: dict[str, list[float]] = {check.slug: [] for check in CHECKS}
    for _ in range(ROUNDS):
        empty.append(seconds((), traces))
        together.append(seconds(CHECKS, traces))
        for check in CHECKS:
            alone[check.slug].append(seconds((check,), traces))
    own = statistics.median(empty)
    in_ms = 1000 / len(traces)
    ranked = sorted(alone.items(), key=lambda pair: -statistics.median(pair[1]))
    for slug, times in ranked:
        print(
            f"  {slug:<22} {(statistics.median(times) - own) * in_ms:7.3f} ms a trace"
        )
    total = (statistics.median(together) - own) * in_ms
    print(
        f"  {'all together':<22} {total:7.3f} ms a trace, {total / AIM_MS:.2f} of the "
        f"aim of {AIM_MS:g} ms\n"
    )


def grow(shape: Shape) -> None:
    """Print how the time of all checks grows in one shape, and whose does too fast."""
    name = shape.__name__.replace("_", " ")
    times = measured(CHECKS, shape, SIZES)
    cells = "  ".join(
        f"{size:>6,}: {took * 1e6 / size:7.1f} µs a step"
        for size, took in times.items()
    )
    print(f"{name:<10} {cells}  x{growth(times):.2f}")
    if len(times) < len(SIZES):
        print(f"{'':<10} larger sizes would take more than {LONGEST_S:g} s")
    largest = max(times)
    slow = []
    for check in CHECKS:
        own = measured((check,), shape, [size for size in SIZES[1:] if size <= largest])
        share = own[max(own)] / times[largest]
        slow.append((share, growth(own), check.slug, own[max(own)] / max(own)))
    slow.sort(reverse=True)
    for place, (share, ratio, slug, each) in enumerate(slow):
        if place < 3 or ratio > GROWS:
            mark = "  GROWS" if ratio > GROWS else ""
            print(
                f"{'':<10}   {slug:<22} {each * 1e6:7.1f} µs a step, {share:4.0%} of "
                f"all, x{ratio:.2f}{mark}"
            )


def main() -> None:
    """Print both; the real file too where it lies beside the checkout."""
    # As in the worker: checks make many objects and no cycles.
    gc.set_threshold(50_000, 20, 100)
    compare("made tau-bench file", results_file())
    if REAL.exists():
        compare("real tau-bench file", REAL.read_bytes())
    else:
        print(
            f"The real tau-bench file lies outside of the repository: {REAL} is absent.\n"
        )
    print("Time per step; x: at the largest size, over that at 1,000 steps")
    for shape in SHAPES:
        grow(shape)


if __name__ == "__main__":
    sys.exit(main())
