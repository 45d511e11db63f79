package telemetry

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
)

// object is a JSON object.
type object map[string]any

// sh returns a task that runs a script in the shell.
func sh(script string, more object) object {
	task := object{"kind": "sh", "payload_base64": base64.StdEncoding.EncodeToString([]byte(script))}
	maps.Copy(task, more)
	return task
}

// idleTask returns a task that no worker takes.
func idleTask(more object) object {
	task := object{"kind": "idle", "queue": "nobody"}
	maps.Copy(task, more)
	return task
}

// agentTask returns an agent of a kind.
func agentTask(kind string, more object) object {
	task := object{"kind": kind, "queue": "agents"}
	maps.Copy(task, more)
	return task
}

// scene is a task of the script.
type scene struct {
	name string
	task object
	act  func(f *fleet, id string) // what the script does with the task; nil: nothing
	want string                    // what the ledger has because of it: entries, separated by semicolons, as "N entry" if they are several
}

// Common ends of scenes. A task that is finished is also created, by a client, to start now, unless the scene says more.
const (
	shell  = "enqueued default sh client now; "
	nobody = "enqueued nobody idle client now; "
	byHand = "enqueued byhand hand client now; "
)

// agentOf returns the entries of an agent that waits once and then completes.
func agentOf(kind string) string {
	return "enqueued agents " + kind + " client now; 2 ran agents " + kind + "; finished agents " + kind + " COMPLETED -; "
}

const (
	child       = "enqueued nobody idle agent now; "
	timedOut    = child + "timeout nobody idle execution; finished nobody idle FAILED timeout; "
	unneeded    = child + "finished nobody idle CANCELLED "
	stepOfAgent = "enqueued steps step agent now; ran steps step; finished steps step COMPLETED -; "
)

var scenes = []scene{
	{"completes", sh("true", nil), nil, shell + "ran default sh; finished default sh COMPLETED -"},
	{"fails for good", sh("exit 65", nil), nil, shell + "ran default sh; finished default sh FAILED failed"},
	{"fails three times", sh("exit 1", object{"max_retries": 2, "backoff_delay": "50ms"}), nil, shell + "3 ran default sh; finished default sh FAILED error"},
	{"completes in the second attempt", sh("test $CURFEW_ATTEMPT = 2", object{"max_retries": 1, "backoff_delay": "50ms"}), nil,
		shell + "2 ran default sh; finished default sh COMPLETED -"},
	{"starts later", sh("true", object{"delay": "700ms"}), nil, "enqueued default sh client later; ran default sh; finished default sh COMPLETED -"},

	{"execution, while it runs", sh("sleep 60", object{"timeout": "3s"}), nil,
		shell + "ran default sh; timeout default sh execution; finished default sh FAILED timeout"},
	{"execution, in line", idleTask(object{"timeout": "300ms"}), nil, nobody + "timeout nobody idle execution; finished nobody idle FAILED timeout"},
	{"queue", idleTask(object{"queue_timeout": "300ms"}), nil, nobody + "timeout nobody idle queue; finished nobody idle FAILED timeout"},
	{"attempt", sh("sleep 60", object{"attempt_timeout": "700ms"}), nil,
		shell + "ran default sh; timeout default sh attempt; finished default sh FAILED timeout"},
	{"attempt, then another", sh("test $CURFEW_ATTEMPT = 2 || sleep 60", object{"attempt_timeout": "1500ms", "on_timeout": "retry", "max_retries": 1, "backoff_delay": "50ms"}), nil,
		shell + "2 ran default sh; again default sh; finished default sh COMPLETED -"},
	{"workflow", agentTask("doomed", object{"timeout": "3s"}), nil,
		"enqueued agents doomed client now; ran agents doomed; timeout agents doomed execution; finished agents doomed FAILED timeout; " +
			"2 enqueued nobody idle agent now; 2 timeout nobody idle workflow; 2 finished nobody idle FAILED timeout"},

	{"cancelled in line", idleTask(nil), cancel, nobody + "finished nobody idle CANCELLED cancelled"},
	{"cancelled while it runs", sh("sleep 60", nil), cancelRunning, shell + "ran default sh; finished default sh CANCELLED cancelled"},
	{"released", object{"kind": "hand", "queue": "byhand"}, release, byHand + "released byhand hand; finished byhand hand COMPLETED -"},
	{"completed too late", object{"kind": "hand", "queue": "byhand", "timeout": "3s"}, completeLate,
		byHand + "timeout byhand hand execution; finished byhand hand FAILED timeout; late byhand"},

	{"all", agentTask("all", nil), nil, agentOf("all") + "woken all satisfied; " + stepOfAgent + stepOfAgent},
	{"any", agentTask("any", nil), nil, agentOf("any") + "woken any satisfied; " + stepOfAgent + unneeded + "not_needed"},
	{"settled, by a timeout", agentTask("settled", nil), nil, agentOf("settled") + "woken settled satisfied; resumed agents settled; " + timedOut + timedOut},
	{"any, by a timeout", agentTask("overtaken", nil), nil,
		agentOf("overtaken") + "woken any satisfied; resumed agents overtaken; " + timedOut + unneeded + "not_needed"},
	{"any success, by the last timeout", agentTask("hopeless", nil), nil, agentOf("hopeless") + "woken any_ok impossible; resumed agents hopeless; " + timedOut + timedOut},
	{"all, by the first failure", agentTask("restrained", nil), nil,
		agentOf("restrained") + "woken fail_fast impossible; resumed agents restrained; " + timedOut + unneeded + "owner_ended"},
	{"by its own limit", agentTask("impatient", nil), nil, agentOf("impatient") + "woken all timed_out; " + unneeded + "wait_timeout"},
	{"by a signal", agentTask("signalled", nil), sendSignal, agentOf("signalled") + "woken all satisfied; " +
		"enqueued agents signal agent now; finished agents signal COMPLETED -"},
}

// writeDown adds n times the entries of a scene.
func (l ledger) writeDown(n int, want string) {
	for entry := range strings.SplitSeq(want, ";") {
		words := strings.Fields(entry)
		if len(words) == 0 {
			continue
		}
		times := 1
		if _, err := fmt.Sscan(words[0], &times); err == nil {
			words = words[1:]
		}
		l.add(n*times, words...)
		if words[0] == "enqueued" {
			l.add(n*times, "created", words[1], words[2])
		}
	}
}

// awaitStatus waits until a task has a status.
func (f *fleet) awaitStatus(id string, status queue.Status) {
	f.Helper()
	await.Until(f, fmt.Sprint(id, " is ", status), func() bool { return f.Record(id).Status == status })
}

func cancel(f *fleet, id string) { f.post("tasks/"+id+"/cancel", object{"reason": "the script"}) }

func cancelRunning(f *fleet, id string) {
	f.awaitStatus(id, queue.Running)
	cancel(f, id)
}

func sendSignal(f *fleet, id string) {
	f.awaitStatus(id, queue.Waiting)
	f.post("agents/"+id+"/signals/go", object{"payload": 1})
}

// take claims a task over HTTP, as a worker without a library does, and returns its epoch. It is the only task in its queue.
func (f *fleet) take(id string) any {
	f.Helper()
	f.fetches++
	claims := f.post("workers/hand/fetch?wait=10s", object{"seq": f.fetches, "n": 1, "queues": []string{"byhand"}, "lease": "60s"})["claims"].([]any)
	if len(claims) != 1 || claims[0].(map[string]any)["id"] != id {
		f.Fatalf("fetch got %v, want %s", claims, id)
	}
	return claims[0].(map[string]any)["epoch"]
}

// settle reports an outcome over HTTP, and returns the word of its refusal, or "".
func (f *fleet) settle(id string, epoch any, verb string) string {
	f.Helper()
	outcome := f.post("workers/hand/settle", object{"call": queue.NewCall(), "outcomes": []object{{"id": id, "epoch": epoch, "verb": verb}}})["outcomes"].([]any)[0]
	refusal, _ := outcome.(map[string]any)["refusal"].(map[string]any)
	word, _ := refusal["word"].(string)
	return word
}

func release(f *fleet, id string) {
	if word := f.settle(id, f.take(id), "release"); word != "" {
		f.Errorf("the release of %s is refused: %s", id, word)
	}
	if word := f.settle(id, f.take(id), "complete"); word != "" {
		f.Errorf("the end of %s is refused: %s", id, word)
	}
}

func completeLate(f *fleet, id string) {
	epoch := f.take(id)
	f.awaitStatus(id, queue.Failed)
	if word := f.settle(id, epoch, "complete"); word != "lost" {
		f.Errorf("the late end of %s is answered with the refusal %q, want lost", id, word)
	}
}
