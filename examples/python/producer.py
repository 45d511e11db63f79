#!/usr/bin/env python3
"""Enqueue a task and print its id. Without a payload, standard input is the payload.

    python3 producer.py render '{"page": "index"}' --timeout 30s
"""
import argparse
import os
import sys
import uuid

from curfew import ROOT, call, connect


def enqueue(r, kind, payload, **fields):
    """Return the id of a new task. Fields are those of docs/protocol.md, such as timeout="30s"."""
    # With an id of its own the call can be repeated, and makes one task.
    partition = ROOT[ROOT.rindex("{") + 1:-1]
    fields.setdefault("id", "%s-%s" % (partition, uuid.uuid4().hex))
    words = [word for field in fields.items() for word in field]
    return call(r, "enqueue", kind, "payload", payload, *words).decode()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("payload", nargs="?")
    parser.add_argument("--timeout", default="1m", help="from now until the task must have ended")
    parser.add_argument("--queue", default="default")
    args = parser.parse_args()
    payload = sys.stdin.buffer.read() if args.payload is None else os.fsencode(args.payload)
    r = connect()
    call(r, "open")
    print(enqueue(r, args.kind, payload, timeout=args.timeout, queue=args.queue))


if __name__ == "__main__":
    main()
