"""Wait for the end of a task without polling, and print its result: python3 wait.py 0-1MCC5RM000000001"""
import os
import sys
import time

import redis

ROOT = os.environ.get("CURFEW_ROOT", "curfew:{0}")
r = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379"), socket_timeout=15)


def result(task_id):
    """Return the reply of curfew_result as a dict."""
    words = r.fcall("curfew_result", 1, ROOT, task_id)
    return dict(zip(map(bytes.decode, words[::2]), words[1::2]))


def wait(task_id):
    """Return the reply of curfew_result for a task that has ended."""
    while True:
        try:
            with r.pubsub(ignore_subscribe_messages=True) as ended:
                # First subscribe and then look: otherwise an end between the two would be missed.
                ended.subscribe(ROOT + ":ended")
                while "channel" in (record := result(task_id)):
                    listen(ended, task_id, patience(record))
                return record
        except redis.RedisError as error:  # the subscription ends with its connection
            if str(error).startswith("CURFEW "):  # such as CURFEW MISSING
                raise
            print("tried again:", error, file=sys.stderr, flush=True)
            time.sleep(0.5)


def patience(record):
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


if __name__ == "__main__":
    record = wait(sys.argv[1])
    if record["status"] != b"COMPLETED":
        sys.exit("%s: %s" % (record["status"].decode(), record.get("error", b"").decode(errors="replace")))
    sys.stdout.buffer.write(record["result"])
