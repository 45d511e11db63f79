"""Run the tasks of a queue, several at once, until SIGTERM: QUEUE=default SLOTS=10 python3 worker.py"""
import os
import signal
import threading
import time
import handlers
import redis

ROOT, QUEUE = os.environ.get("CURFEW_ROOT", "curfew:{0}"), os.environ.get("QUEUE", "default")
SLOTS, LEASE_MS = int(os.environ.get("SLOTS", 10)), int(os.environ.get("LEASE_MS", 15000))
NAME = "python-" + os.urandom(16).hex()  # no other worker has or had this name
r = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379"), socket_timeout=15)
running, ended, stopping, seq, beat_at = {}, threading.Event(), threading.Event(), 0, 0

def named(words):
    return dict(zip(map(bytes.decode, words[::2]), words[1::2]))

def ask(function, *args):
    """Return the reply, or {} if Curfew refuses. What may pass is tried again: a repeat has no second effect."""
    while True:
        try:
            return named(r.fcall("curfew_" + function, 1, ROOT, NAME, *args))
        except redis.RedisError as error:
            print(f"{function}: {error}\n", end="", flush=True)
            if str(error).startswith("CURFEW "):  # such as CURFEW LOST: the task has ended, or another worker has it
                return {}
            time.sleep(0.5)

def run(id, epoch, claim, now):
    outcome = handlers.run(claim, now, running[id, epoch])
    status = ask("settle", id, epoch, *outcome).get("status", b"refused")
    print(f"{id.decode()} {status.decode()}\n", end="", flush=True)  # one text, so that lines of threads do not mix
    del running[id, epoch]
    ended.set()

signal.signal(signal.SIGTERM, lambda *_: (stopping.set(), signal.signal(signal.SIGTERM, signal.SIG_DFL)))
while not (stopping.is_set() and all(stop.is_set() for stop in list(running.values()))):
    if time.monotonic() >= beat_at:  # keep the lease, and tell attempts to stop
        beat_at, held = time.monotonic() + LEASE_MS / 3000, b" ".join(map(b"=".join, list(running)))
        for claim in map(named, ask("heartbeat", "claims", held, "known", seq, "lease_ms", LEASE_MS)["stops"]):
            running.get((claim["id"], claim["epoch"]), threading.Event()).set()
    free = 0 if stopping.is_set() else SLOTS - len(running)
    if free == 0:
        ended.wait(min(0.5, LEASE_MS / 3000))
        ended.clear()
        continue
    reply, seq = ask("fetch", "slots", free, "queues", QUEUE, "lease_ms", LEASE_MS, "seq", seq + 1), seq + 1
    for claim in map(named, reply["claims"]):
        running[claim["id"], claim["epoch"]] = threading.Event()
        threading.Thread(target=run, args=(claim["id"], claim["epoch"], claim, int(reply["now"])), daemon=True).start()
    if reply["stop"] == b"1":
        stopping.set()
    elif free > len(reply["claims"]):  # wait for a task, and at most a second, since SIGTERM may come
        try:
            r.blpop(reply["wake"], max(0.01, min(int(reply["wait_ms"]) / 1000, LEASE_MS / 3000, 1)))
        except redis.RedisError:
            time.sleep(0.5)
ask("heartbeat", "lease", "0s")  # goodbye: what still runs is given back
os._exit(0)  # also if a handler hangs
