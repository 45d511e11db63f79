"""Run the tasks of a queue over HTTP, several at once, until SIGTERM. It needs Python 3.8 and nothing else:
CURFEW_URL=http://127.0.0.1:7420/api/v1/shop CURFEW_TOKEN=… QUEUE=default SLOTS=4 python3 worker.py"""
import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ.get("CURFEW_URL", "http://127.0.0.1:7420/api/v1/curfew").rstrip("/")
TOKEN, QUEUE = os.environ.get("CURFEW_TOKEN", ""), os.environ.get("QUEUE", "default")
SLOTS, LEASE_MS = int(os.environ.get("SLOTS", 4)), int(os.environ.get("LEASE_MS", 15000))
NAME = "http-" + os.urandom(16).hex()  # no other worker has or had this name
running, lock, seq = {}, threading.Lock(), 0
stopping, idle = threading.Event(), threading.Event()  # take no more tasks; the last task has ended


def render(payload, stop):
    return "rendered %s" % payload


def sleep(payload, stop):
    """Sleep for as many seconds as the payload says. A handler that takes long looks at stop."""
    if stop.wait(float(payload)):
        raise InterruptedError("the attempt must stop")
    return "slept"


HANDLERS = {"render": render, "sleep": sleep}
ABOUT = {"name": "worker.py", "host": socket.gethostname(), "concurrency": SLOTS, "queues": {QUEUE: 1}, "kinds": list(HANDLERS)}
CAUSES = {401: "set CURFEW_TOKEN to a token that the server knows",
          403: "the client needs the role work, and the host of CURFEW_URL must be one that the server allows",
          404: "CURFEW_URL must end with /api/v1/ and a namespace that the server has"}


class Refused(Exception):
    """The request was refused, and so would be a repeat."""
    def __init__(self, what, status, text):
        super().__init__(" ".join([what, str(status), text.strip()]))
        self.status = status


def say(*words):
    sys.stderr.write(" ".join(map(str, words)) + "\n")  # in one write, so that lines of several threads do not mix


def leave(why):
    """End the program at once. Tasks that it has run elsewhere when the lease ends."""
    say(why)
    os._exit(1)


def post(request):
    """Return the status and the body of an answer."""
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def ask(what, body, wait=""):
    """Make a request until it is answered: a repeat has no second effect. The pauses grow, and the trouble is said once."""
    request = urllib.request.Request(URL + "/workers/" + NAME + "/" + what + wait, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    if TOKEN:
        request.add_header("Authorization", "Bearer " + TOKEN)
    began, pause = time.monotonic(), 0.5
    while True:
        try:
            status, text = post(request)
            if status == 200:
                answer = json.loads(text)
                if pause > 0.5:
                    say(what, "is answered again")
                return answer
            if status < 500 and status not in (408, 429):
                raise Refused(what, status, text)
            trouble = "%d %s" % (status, text.strip())
        except (OSError, ValueError, http.client.HTTPException) as error:
            trouble = error
        if pause == 0.5:
            say(what, "is repeated:", trouble)
        if stopping.is_set() and time.monotonic() > began + LEASE_MS / 1000:
            leave("%s was not answered, and the worker must stop" % what)
        time.sleep(pause)
        pause = min(2 * pause, max(1, LEASE_MS / 3000))


def must(what, body, wait=""):
    """Make a request without which the worker cannot continue."""
    try:
        return ask(what, body, wait)
    except Refused as refused:
        leave("%s: %s" % (refused, CAUSES.get(refused.status, "the request must be changed")))


def attempt(claim, stop):
    """Run a task, and return its outcome."""
    outcome = {"id": claim["id"], "epoch": claim["epoch"]}
    handler = HANDLERS.get(claim["kind"])
    if handler is None:
        return dict(outcome, verb="release", error="no handler", delay="1s")
    try:
        result = handler(claim.get("payload"), stop)
        json.dumps(result)  # a result that is no JSON fails the attempt
        return dict(outcome, verb="complete", result=result)
    except Exception as error:
        return dict(outcome, verb="fail", error=ascii(error))


def run(claim, stop):
    outcome = attempt(claim, stop)
    try:
        answer = ask("settle", {"call": os.urandom(8).hex(), "outcomes": [outcome]})
    except Refused as refused:
        if refused.status in CAUSES:
            leave("%s: %s" % (refused, CAUSES[refused.status]))
        say(claim["id"], refused)  # such as a result that is too large: another attempt would end in the same way
        failure = {"id": claim["id"], "epoch": claim["epoch"], "verb": "fail", "error": ascii(str(refused)), "retry": False}
        answer = must("settle", {"call": os.urandom(8).hex(), "outcomes": [failure]})
    for line in answer["outcomes"]:
        if "refusal" in line:  # such as lost: the task has ended, or another worker has it
            say(line["id"], line["refusal"]["word"] + ":", line["refusal"]["sentence"])
        else:
            print(line["id"], line["status"], flush=True)
    with lock:
        del running[claim["id"], claim["epoch"]]


def describe():
    """Say what the worker does. Only then do metrics and alerts know which queue it serves."""
    state = "draining" if stopping.is_set() else "running"
    try:
        ask("describe", {"state": state, "about": ABOUT})
    except Refused as refused:
        if refused.status != 404:  # 404: the lease has ended meanwhile, and the next heartbeat begins another
            leave(refused)


def beat():
    """Keep the lease, and end the attempts that must stop."""
    while True:
        with lock:
            held, known = [{"id": id, "epoch": epoch} for id, epoch in running], seq
        answer = must("heartbeat", {"claims": held, "known": known, "lease_ms": LEASE_MS})
        with lock:
            for end in answer["stops"]:
                if (end["id"], end["epoch"]) in running:
                    running[end["id"], end["epoch"]].set()
        if answer["stop"]:
            stopping.set()
        describe()
        if idle.wait(LEASE_MS / 3000):
            return


signal.signal(signal.SIGTERM, lambda *_: stopping.set())
beating = threading.Thread(target=beat, daemon=True)
beating.start()
while not stopping.is_set():
    free = SLOTS - len(running)
    if free == 0:
        time.sleep(0.05)
        continue
    answer = must("fetch", {"seq": seq + 1, "n": free, "queues": [QUEUE], "lease_ms": LEASE_MS}, "?wait=5s")
    with lock:  # the heartbeat knows this fetch from now on, with its claims
        seq += 1
        for claim in answer["claims"]:
            stop = running[claim["id"], claim["epoch"]] = threading.Event()
            threading.Thread(target=run, args=(claim, stop), daemon=True).start()
    if answer["stop"]:
        stopping.set()
while not all(stop.is_set() for stop in list(running.values())):  # a handler that was stopped and hangs has lost its task
    time.sleep(0.05)
idle.set()
beating.join()
must("heartbeat", {"lease": "0s"})  # goodbye
os._exit(0)
