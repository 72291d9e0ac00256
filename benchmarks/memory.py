"""Peak memory of a computation on the CPU: what torch allocated, not what the system shows."""

from collections.abc import Callable

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

__all__ = ["peak_bytes"]


def peak_bytes(computation: Callable[[], object]) -> int:
    """Return the most bytes that one run holds at a time beyond those held before it.

    The sum of torch's allocations and releases in their order, so it is the same on every machine
    with the same kernels.
    """
    computation()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        kept = computation()
    del kept
    assert recorded.profiler is not None
    events = recorded.profiler.kineto_results.events()
    held = most = 0
    for event in sorted(events, key=lambda each: each.start_ns()):
        if event.name() == "[memory]" and event.device_type() == DeviceType.CPU:
            held += event.nbytes()
            most = max(most, held)
    return most
