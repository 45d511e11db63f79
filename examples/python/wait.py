#!/usr/bin/env python3
"""Wait for the end of a task without polling, and print its result.

    python3 wait.py 0-1MCC5RM000000001
"""
import sys
import time

import redis

from curfew import ROOT, call, connect, named


def wait(r, task_id):
    """Return the reply of curfew_result for a task that has ended."""
    while True:
        try:
            with r.pubsub(ignore_subscribe_messages=True) as ended:
                # First subscribe and then look: otherwise an end between the two would be missed.
                ended.subscribe(ROOT + ":ended")
                while "channel" in (record := named(call(r, "result", task_id))):
                    listen(ended, task_id, patience(r, record))
                return record
        except (redis.ConnectionError, redis.TimeoutError):
            time.sleep(0.5)  # the subscription ended with its connection


def patience(r, record):
    """Return after how many seconds to look again: when the time of the task is up, since a message may be lost."""
    seconds, microseconds = r.time()
    until = int(record.get("until", sys.maxsize)) / 1000 - seconds - microseconds / 1e6
    return min(max(until, 0.05), 30)


def listen(ended, task_id, seconds):
    """Return when the channel carries this id, and after so many seconds at the latest."""
    over = time.monotonic() + seconds
    while (left := over - time.monotonic()) > 0:
        message = ended.get_message(timeout=left)
        if message and message["data"] == task_id.encode():
            return


def main():
    record = wait(connect(), sys.argv[1])
    if record["status"] != b"COMPLETED":
        sys.exit("%s: %s" % (record["status"].decode(), record.get("error", b"").decode()))
    sys.stdout.buffer.write(record["result"])


if __name__ == "__main__":
    main()
