"""Handlers by kind. A handler returns the result, as bytes, or raises an error, after which the task may be retried.

Nothing can end a thread from outside. A handler that takes long asks task.must_stop, and then returns.
"""
import time


def render(task):
    return b"rendered " + task.payload


def sleep(task):
    """Sleep for as many seconds as the payload says, and stop early when told."""
    task.must_stop(after=float(task.payload))
    return b"slept"


def hang(task):
    """Never ask. The task ends on time all the same, and this thread keeps its slot."""
    time.sleep(3600)


HANDLERS = {"render": render, "sleep": sleep, "hang": hang}
