#!/usr/bin/env python3
"""Run tasks, several at once, until SIGTERM: python3 worker.py --slots 10 --queue default"""
import argparse
import math
import signal
import threading
import time
import uuid

from attempts import Attempts
from curfew import call, connect, named, rest

DRAIN = 30  # seconds that handlers may go on after SIGTERM


def work(r, attempts, slots, queue, stopping):
    """Fetch and start tasks, as many as there are free slots, until the worker must stop."""
    free, seq = threading.Semaphore(slots), 0
    while not stopping.is_set():
        if not free.acquire(timeout=0.5):
            continue
        n, seq = 1, seq + 1
        while n < slots and free.acquire(blocking=False):
            n += 1
        reply = attempts.ask("fetch", "slots", n, "queues", queue, "lease_ms", attempts.lease_ms, "seq", seq)
        attempts.start(reply, free.release)
        if reply["stop"] == b"1":
            return
        if n > len(reply["claims"]):
            free.release(n - len(reply["claims"]))
            rest(r, reply["wake"], int(reply["wait_ms"]) / 1000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--queue", default="default")
    parser.add_argument("--lease-ms", type=int, default=15000, help="after so long without a call others get the tasks")
    args = parser.parse_args()
    r, stopping = connect(), threading.Event()
    name = "python-" + uuid.uuid4().hex  # no other worker has or had this name
    attempts = Attempts(lambda function, *words: named(call(r, function, name, *words, patience=math.inf)), args.lease_ms)
    signal.signal(signal.SIGTERM, lambda *_: (stopping.set(), signal.signal(signal.SIGTERM, signal.SIG_DFL)))
    beats = threading.Thread(target=attempts.beat, daemon=True)
    beats.start()
    work(r, attempts, args.slots, args.queue, stopping)
    over = time.monotonic() + DRAIN
    while time.monotonic() < over and not all(a.must_stop() for a in list(attempts.running.values())):
        time.sleep(0.05)
    attempts.over.set()
    beats.join()  # a beat after the goodbye would take it back
    attempts.ask("heartbeat", "lease", "0s")  # goodbye: what still runs is given back


if __name__ == "__main__":
    main()
