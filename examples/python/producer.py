"""Enqueue a task and print its id: python3 producer.py render '{"page": "index"}' --timeout 30s

Without a payload, standard input is the payload.
"""
import argparse
import os
import sys
import time
import uuid

import redis

ROOT = os.environ.get("CURFEW_ROOT", "curfew:{0}")
r = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379"), socket_timeout=15)


def call(function, *args):
    """Return the reply of a function. What may pass is tried again for 30 s; what Curfew refuses is raised."""
    over = time.monotonic() + 30
    while True:
        try:
            return r.fcall("curfew_" + function, 1, ROOT, *args)
        except redis.RedisError as error:
            if str(error).startswith("CURFEW ") or time.monotonic() > over:
                raise
            print("tried again:", error, file=sys.stderr, flush=True)
            time.sleep(0.5)


def enqueue(kind, payload, **fields):
    """Return the id of a new task. Fields are those of docs/reference/protocol.md, such as timeout="30s"."""
    # With an id of its own the call can be repeated, and makes one task.
    fields.setdefault("id", ROOT[ROOT.rindex("{") + 1:-1] + "-" + uuid.uuid4().hex)
    words = [word for field in fields.items() for word in field]
    return call("enqueue", kind, "payload", payload, *words).decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("payload", nargs="?")
    parser.add_argument("--timeout", default="1m", help="from now until the task must have ended")
    parser.add_argument("--queue", default="default")
    args = parser.parse_args()
    payload = sys.stdin.buffer.read() if args.payload is None else os.fsencode(args.payload)
    call("open")
    print(enqueue(args.kind, payload, timeout=args.timeout, queue=args.queue))


if __name__ == "__main__":
    main()
