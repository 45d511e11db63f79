"""Calls Curfew's functions. What may pass is tried again, and a refusal is raised."""
import logging
import os
import time

import redis

ROOT = os.environ.get("CURFEW_ROOT", "curfew:{0}")


def connect():
    """Return a client that waits up to 15 s for a reply. A worker is never told to wait longer than 10 s for tasks."""
    return redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379"), socket_timeout=15)


def named(words):
    """Return a reply of names and values as a dict. Values are bytes, or lists where docs/protocol.md says so."""
    return dict(zip((word.decode() for word in words[::2]), words[1::2]))


def call(r, function, *args, patience=30):
    """Return the reply of a function. A repeat has no second effect if the arguments have an id, a seq or an epoch."""
    over = time.monotonic() + patience
    while True:
        try:
            return r.fcall("curfew_" + function, 1, ROOT, *args)
        except (redis.ConnectionError, redis.TimeoutError, redis.ResponseError) as error:
            # A refusal, such as CURFEW INVALID or CURFEW LOST, stays one.
            if str(error).startswith("CURFEW ") or time.monotonic() > over:
                raise
            logging.warning("curfew_%s is tried again: %s", function, error)
            time.sleep(0.5)


def rest(r, keys, seconds):
    """Wait until one of the queues may have tasks, and for so many seconds at most."""
    try:
        if seconds > 0:  # 0 would be without end
            r.blpop(keys, timeout=seconds)
    except redis.RedisError:
        time.sleep(seconds)
