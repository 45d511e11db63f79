"""Your handlers by kind, and how they are run. A handler returns the result, as bytes, or raises an error.

Nothing can end a thread from outside. A handler that takes long looks at stop, a threading.Event that is set when the
time of the attempt is up, or when Redis says that it must stop. The handler then raises any error.
"""
import threading
import time


def render(payload, stop):
    return b"rendered " + payload


def sleep(payload, stop):
    """Sleep for as many seconds as the payload says."""
    if stop.wait(float(payload)):
        raise InterruptedError("told to stop")
    return b"slept"


def hang(payload, stop):
    """Never look at stop. The task ends on time all the same, and this thread keeps its slot."""
    time.sleep(3600)


HANDLERS = {"render": render, "sleep": sleep, "hang": hang}


def run(claim, now, stop):
    """Run the handler of a claim, and return how it ended, in words of curfew_settle. now is the clock of Redis."""
    handler = HANDLERS.get(claim["kind"].decode())
    if not handler:
        return "release", "no handler", "delay", "1s"
    # An error after a limit names the limit. So it counts as a timeout even if the clock of Redis is a little behind.
    limits = ("deadline_at", "deadline"), ("attempt_ends_at", "timeout")
    ends, limit = min((int(claim.get(name, 1 << 50)), limit) for name, limit in limits)
    timer = threading.Timer(min(ends - now, 10**12) / 1000, stop.set)
    timer.start()
    try:
        return "result", b"" + handler(claim["payload"], stop)  # a TypeError unless it is bytes
    except BaseException as error:  # also that of sys.exit
        return "error", ascii(error), "class", limit if stop.is_set() else "error"  # failed: without a retry
    finally:
        timer.cancel()
