"""The attempts that run in this worker: handlers in threads, heartbeats, outcomes."""
import math
import threading
import time

import redis

from curfew import named
from handlers import HANDLERS


class Attempt:
    """A claim that runs here, as its handler sees it. now is the clock of Redis at the claim."""

    def __init__(self, claim, now):
        self.id, self.epoch, self.payload = claim["id"].decode(), claim["epoch"].decode(), claim["payload"]
        limits = [int(claim[name]) - now for name in ("deadline_at", "attempt_ends_at") if name in claim]
        self.ends, self.told = time.monotonic() + min(limits, default=math.inf) / 1000, threading.Event()

    def must_stop(self, after=0):
        """Wait for so many seconds. Return True as soon as the time is up or Redis says to stop."""
        left = self.ends - time.monotonic()
        return self.told.wait(max(0, min(after, left))) or left <= after


class Attempts:
    def __init__(self, ask, lease_ms):
        self.ask, self.lease_ms, self.running, self.known, self.over = ask, lease_ms, {}, b"0", threading.Event()

    def start(self, fetched, done):
        for claim in map(named, fetched["claims"]):
            attempt = Attempt(claim, int(fetched["now"]))
            self.running[attempt.id, attempt.epoch] = attempt
            threading.Thread(target=self.run, args=(attempt, claim["kind"].decode(), done), daemon=True).start()
        self.known = fetched["seq"]

    def run(self, attempt, kind, done):
        try:
            outcome = ("result", HANDLERS[kind](attempt)) if kind in HANDLERS else ("release", "no handler", "delay", "1s")
        except BaseException as error:  # also that of sys.exit
            outcome = ("error", repr(error))
        if attempt.must_stop():
            outcome = ("release", "stopped")  # Redis decides whether the time was up
        try:
            print(attempt.id, self.ask("settle", attempt.id, attempt.epoch, *outcome)["status"].decode(), flush=True)
        except redis.RedisError as refused:  # CURFEW LOST: the task has ended, or another worker has it
            print(attempt.id, refused, flush=True)
        del self.running[attempt.id, attempt.epoch]
        done()

    def beat(self):
        """Keep the lease, and tell attempts to stop."""
        while not self.over.wait(self.lease_ms / 3000):
            known = self.known  # read before running: claims up to known that are not in running are given back
            held = " ".join("%s=%s" % claim for claim in list(self.running))
            reply = self.ask("heartbeat", "claims", held, "known", known, "lease_ms", self.lease_ms)
            for stop in map(named, reply["stops"]):
                if attempt := self.running.get((stop["id"].decode(), stop["epoch"].decode())):
                    attempt.told.set()
