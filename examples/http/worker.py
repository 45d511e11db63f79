"""Run the tasks of a queue over HTTP, several at once, until SIGTERM. It needs Python 3.8 and nothing else:
CURFEW_URL=http://127.0.0.1:7420/api/v1/shop CURFEW_TOKEN=… QUEUE=default SLOTS=4 python3 worker.py"""
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request

URL = os.environ.get("CURFEW_URL", "http://127.0.0.1:7420/api/v1/curfew").rstrip("/")
TOKEN, QUEUE = os.environ.get("CURFEW_TOKEN", ""), os.environ.get("QUEUE", "default")
SLOTS, LEASE_MS = int(os.environ.get("SLOTS", 4)), int(os.environ.get("LEASE_MS", 15000))
NAME = "http-" + os.urandom(16).hex()  # no other worker has or had this name
running, lock, stopping, seq = {}, threading.Lock(), threading.Event(), 0


def render(payload, stop):
    return "rendered %s" % payload


def sleep(payload, stop):
    """Sleep for as many seconds as the payload says. A handler that takes long looks at stop."""
    if stop.wait(float(payload)):
        raise InterruptedError("the attempt must stop")
    return "slept"


HANDLERS = {"render": render, "sleep": sleep}


def ask(what, body, wait=""):
    """Make a request until it is answered: a repeat has no second effect. Return {} if it is refused."""
    request = urllib.request.Request(URL + "/workers/" + NAME + "/" + what + wait, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    if TOKEN:
        request.add_header("Authorization", "Bearer " + TOKEN)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            print(what, error.code, error.read().decode().strip(), flush=True)
            if error.code < 500 and error.code != 429:
                return {}
        except (OSError, ValueError) as error:
            print(what, error, flush=True)
        time.sleep(0.5)


def run(claim, stop):
    outcome = {"id": claim["id"], "epoch": claim["epoch"]}
    handler = HANDLERS.get(claim["kind"])
    try:
        if handler:
            outcome.update(verb="complete", result=handler(claim.get("payload"), stop))
        else:
            outcome.update(verb="release", error="no handler", delay="1s")
    except Exception as error:
        outcome.update(verb="fail", error=ascii(error))
    answer = ask("settle", {"call": "settle-%d" % claim["epoch"], "outcomes": [outcome]})
    for line in answer.get("outcomes", []):
        print(line["id"], line.get("status", ""), line.get("refusal", {}).get("word", ""), flush=True)
    with lock:
        del running[claim["id"], claim["epoch"]]


def beat():
    """Keep the lease, and end the attempts that must stop."""
    while True:
        with lock:
            held, known = [{"id": id, "epoch": epoch} for id, epoch in running], seq
        answer = ask("heartbeat", {"claims": held, "known": known, "lease_ms": LEASE_MS})
        with lock:
            for end in answer.get("stops", []):
                if (end["id"], end["epoch"]) in running:
                    running[end["id"], end["epoch"]].set()
        if answer.get("stop"):
            stopping.set()
        time.sleep(LEASE_MS / 3000)


signal.signal(signal.SIGTERM, lambda *_: stopping.set())
threading.Thread(target=beat, daemon=True).start()
while not stopping.is_set():
    free = SLOTS - len(running)
    if free == 0:
        time.sleep(0.05)
        continue
    answer = ask("fetch", {"seq": seq + 1, "n": free, "queues": [QUEUE], "lease_ms": LEASE_MS}, "?wait=5s")
    with lock:  # the heartbeat knows this fetch from now on, with its claims
        seq += 1
        for claim in answer.get("claims", []):
            stop = running[claim["id"], claim["epoch"]] = threading.Event()
            threading.Thread(target=run, args=(claim, stop), daemon=True).start()
    if answer.get("stop"):
        stopping.set()
while running:
    time.sleep(0.05)
ask("heartbeat", {"lease": "0s"})  # goodbye
os._exit(0)
