package hostile

import (
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// facadeBases are good calls of the functions for programs in other languages.
func facadeBases() []base {
	return []base{
		of("curfew_open", "curfew_open", "name", "partitions", "whole1", 1, "name", "events", "level", "terminal", "name", "event_mib", "mib", 64, "name", "figures", "choice", "on"),
		of("curfew_about", "curfew_about"),
		of("curfew_enqueue", "curfew_enqueue", "kindname", "k", "name", "id", "ownid", "0-n1", "name", "payload", "opaque", "p", "name", "timeout", "duration", "30s",
			"name", "queue", "queue", "q", "name", "priority", "priority", 1, "name", "delay", "delayspan", "1s", "name", "max_retries", "attempts", 3,
			"name", "backoff", "choice", "exponential", "name", "backoff_delay", "backoffspan", "100ms", "name", "backoff_max", "duration", "1m",
			"name", "headers", "headers", `{"a":"b"}`),
		of("curfew_enqueue in ms", "curfew_enqueue", "kindname", "k", "name", "timeout_ms", "timeout", 30000, "name", "idempotency_key", "key", "key", "name", "retention_ms", "retention", 60000,
			"name", "hook_failure", "hook", "h q", "name", "attempt_timeout_ms", "attempt", 10),
		of("curfew_enqueue_many", "curfew_enqueue_many", "never", `[{"kind":"k","timeout":"1m","payload":{"a":[]}},{"kind":"k","id":"0-n2","max_retries":2,"payload":"s"}]`),
		of("curfew_get", "curfew_get", "known", "0-p1"),
		of("curfew_result", "curfew_result", "known", "0-e1"),
		of("curfew_cancel", "curfew_cancel", "known", "0-p1", "name", "reason", "reason", "why", "name", "call", "namedword", "c"),
		of("curfew_cancel as an owner", "curfew_cancel", "known", "0-r1.c", "name", "owner", "never", "0-r1"),
		of("curfew_resolve", "curfew_resolve", "known", "0-o1", "name", "result", "opaque", "yes", "name", "call", "namedword", "c"),
		of("curfew_resolve by an error", "curfew_resolve", "known", "0-o1", "name", "error", "opaque", "no"),
		of("curfew_signal", "curfew_signal", "known", "0-a1", "signal", "go", "name", "payload", "opaque", "x"),
		of("curfew_stats", "curfew_stats", "name", "page", "whole", 0),
		of("curfew_fetch", "curfew_fetch", "namedword", "w3", "name", "slots", "slots", 5, "name", "queues", "queues", "hit=2,other", "name", "lease", "leasespan", "15s", "name", "seq", "whole", 100),
		of("curfew_settle", "curfew_settle", "namedword", "w1", "known", "0-r1", "whole", 1, "name", "result", "opaque", "done"),
		of("curfew_settle by an error", "curfew_settle", "namedword", "w1", "known", "0-r1", "whole", 1, "name", "error", "opaque", "no", "name", "retry", "choice", "yes", "name", "delay", "delayspan", "1s",
			"name", "code", "code", 1, "name", "call", "namedword", "c"),
		of("curfew_settle by a release", "curfew_settle", "namedword", "w1", "known", "0-r1", "whole", 1, "name", "release", "opaque", "why", "name", "delay_ms", "whole52", 1000),
		of("curfew_heartbeat", "curfew_heartbeat", "namedword", "w1", "name", "claims", "claims", "0-r1=1", "name", "lease", "beatspan", "15s", "name", "known", "whole", 0, "name", "progress", "opaque", "half"),
		of("curfew_sweep", "curfew_sweep", "namedword", "r", "name", "batch", "batch250", 100, "name", "fallback", "fallbackspan", "500ms"),
	}
}

// What a function of the façade says begins with CURFEW and a word from a short list, so that
// programs can tell refusals apart.
func TestFunctionsOfOtherLanguagesRefuseInWords(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, row := range []struct {
		claim, call string
		args        []any
		says        string
	}{
		{"a kind is missing", "curfew_enqueue", nil, "CURFEW INVALID there is no kind"},
		{"a kind as a name", "curfew_enqueue", []any{"render", "kind", "render"}, "CURFEW INVALID kind comes first, without a name"},
		{"a name in place of a kind", "curfew_enqueue", []any{"payload", "x", "queue", "q"}, "CURFEW INVALID x is not a known name: use "},
		{"a name without a value", "curfew_enqueue", []any{"k", "payload"}, "CURFEW INVALID payload has no value: give names and values in pairs"},
		{"a misspelt name", "curfew_enqueue", []any{"k", "timeuot", "1s"}, "CURFEW INVALID timeuot is not a known name: use attempt_timeout, attempt_timeout_ms, available_at, "},
		{"a name that is like no other", "curfew_enqueue", []any{"k", "zzzzzzzzz", "1s"}, "CURFEW INVALID zzzzzzzzz is not a known name: use "},
		{"an empty name", "curfew_enqueue", []any{"k", "", "1s"}, `CURFEW INVALID "" is not a known name: use `},
		{"a name that is not a word", "curfew_enqueue", []any{"k", "a b\n", "1s"}, `CURFEW INVALID "a b?" is not a known name: use `},
		{"a short name that is like no other", "curfew_enqueue", []any{"k", "x", "1s"}, "CURFEW INVALID x is not a known name: use "},
		{"a name that is given twice", "curfew_enqueue", []any{"k", "queue", "a", "queue", "b"}, "CURFEW INVALID queue is given twice"},
		{"a bare number", "curfew_enqueue", []any{"k", "timeout", "30"}, `CURFEW INVALID timeout "30" has no unit: write 30s, or give timeout_ms in ms`},
		{"a unit that there is not", "curfew_enqueue", []any{"k", "timeout", "30 sec"}, `CURFEW INVALID timeout "30 sec" is not a duration: write a number and a unit (ms, s, m, h or d), such as 30s, 1h30m or 1d`},
		{"less than a ms", "curfew_enqueue", []any{"k", "timeout", "1.5ms"}, `CURFEW INVALID timeout "1.5ms" is finer than 1 ms`},
		{"units that a clock of ms has not", "curfew_enqueue", []any{"k", "timeout", "1000us"}, `CURFEW INVALID timeout "1000us" is not a duration`},
		{"days behind hours", "curfew_enqueue", []any{"k", "timeout", "1h1d"}, `CURFEW INVALID timeout "1h1d" is not a duration`},
		{"a point without digits", "curfew_enqueue", []any{"k", "timeout", ".s"}, `CURFEW INVALID timeout ".s" is not a duration`},
		{"digits behind a point that no ms needs", "curfew_enqueue", []any{"k", "timeout", "1.000000001h"}, `CURFEW INVALID timeout "1.000000001h" is finer than 1 ms`},
		{"300 years", "curfew_enqueue", []any{"k", "timeout", "109500d"}, `CURFEW INVALID timeout "109500d" is longer than 106751d`},
		{"no time", "curfew_enqueue", []any{"k", "timeout", "0s"}, "CURFEW INVALID timeout must be at least 1ms"},
		{"no time in ms", "curfew_enqueue", []any{"k", "timeout_ms", "0"}, "CURFEW INVALID timeout_ms must be a whole number from 1 to 2^53"},
		{"a back-off that is no number", "curfew_enqueue", []any{"k", "backoff_delay_ms", "x"}, "CURFEW INVALID backoff_delay_ms must be a whole number from 0 to 2^53"},
		{"a window without its scope", "curfew_enqueue", []any{"k", "idempotency_key", "k9", "idempotency_window", "1h"}, "CURFEW INVALID idempotency_window needs idempotency_scope window"},
		{"half of a letter", "curfew_enqueue", []any{"k", "timeout", "\xc3"}, `CURFEW INVALID timeout "?" is not a duration`},
		{"a letter that does not fit", "curfew_enqueue", []any{"k", "timeout", strings.Repeat("x", 63) + "é"}, `CURFEW INVALID timeout "` + strings.Repeat("x", 63) + `?" is not a duration`},
		{"letters of other scripts", "curfew_enqueue", []any{"k", "timeout", "٣s 三秒"}, `CURFEW INVALID timeout "٣s 三秒" is not a duration`},
		{"both spellings", "curfew_enqueue", []any{"k", "timeout", "1s", "timeout_ms", "1000"}, "CURFEW INVALID give timeout or timeout_ms, and not both"},
		{"both spellings of the back-off", "curfew_enqueue", []any{"k", "backoff_delay", "1s", "backoff_delay_ms", "1000"}, "CURFEW INVALID give backoff_delay or backoff_delay_ms, and not both"},
		{"a timeout and a deadline", "curfew_enqueue", []any{"k", "timeout", "1s", "deadline_at", "1800000001000"}, "CURFEW INVALID "},
		{"the past", "curfew_enqueue", []any{"k", "deadline_at", "1"}, "CURFEW INVALID deadline_at is in the past; it is 1800000000000 now"},
		{"headers that are no JSON", "curfew_enqueue", []any{"k", "headers", "x"}, "CURFEW INVALID headers must be a JSON object of strings"},
		{"headers of numbers", "curfew_enqueue", []any{"k", "headers", `{"a":1}`}, "CURFEW INVALID headers must be a JSON object of strings"},
		{"the id of another task", "curfew_enqueue", []any{"k", "id", "0-p1"}, "CURFEW TAKEN the id 0-p1 belongs to another task: use a new id"},
		{"the id of another partition", "curfew_enqueue", []any{"k", "id", "7-x"}, "CURFEW PARTITION 7-x belongs to partition 7: use the key h:{7}"},
		{"the id of a partition that there cannot be", "curfew_enqueue", []any{"k", "id", "00-x"}, `CURFEW INVALID the id "00-x" is not the id of a task`},
		{"the id of partition 999", "curfew_enqueue", []any{"k", "id", "999-x"}, `CURFEW INVALID the id "999-x" is not the id of a task`},
		{"a key of another task", "curfew_enqueue", []any{"k", "idempotency_key", "k1"}, "CURFEW CONFLICT the idempotency key belongs to 0-p1, which has another kind or payload"},
		{"a full queue", "curfew_enqueue", []any{"k", "queue", "slow"}, "CURFEW FULL the queue slow has reached its max_length of 1 in this partition: enqueue the task again later"},
		{"a list for a full queue", "curfew_enqueue_many", []any{`[{"kind":"k"},{"kind":"k","queue":"slow"}]`}, "CURFEW FULL task 2: the queue slow has reached its max_length of 1"},
		{"a child of nobody", "curfew_enqueue", []any{"k", "id", "0-nobody.c"}, "CURFEW OWNER the owner 0-nobody does not exist"},
		{"a child of a task that has ended", "curfew_enqueue", []any{"k", "id", "0-e1.c"}, "CURFEW OWNER the owner 0-e1 has ended: it is CANCELLED"},

		{"tasks that are no JSON", "curfew_enqueue_many", []any{"x"}, "CURFEW INVALID the tasks must be a JSON array of objects"},
		{"an object", "curfew_enqueue_many", []any{`{"kind":"k"}`}, "CURFEW INVALID the tasks must be a JSON array of objects"},
		{"an array of numbers", "curfew_enqueue_many", []any{`[1]`}, "CURFEW INVALID the tasks must be a JSON array of objects"},
		{"a task without a kind", "curfew_enqueue_many", []any{`[{"kind":"k"},{"payload":1}]`}, "CURFEW INVALID task 2: there is no kind"},
		{"a misspelt name in a list", "curfew_enqueue_many", []any{`[{"kind":"k"},{"kind":"k","payolad":1}]`}, "CURFEW INVALID task 2: payolad is not a known name: use attempt_timeout, attempt_timeout_ms, available_at, "},
		{"a bare number in a list", "curfew_enqueue_many", []any{`[{"kind":"k","timeout":30}]`}, `CURFEW INVALID task 1: timeout "30" has no unit`},
		{"a name twice in a list", "curfew_enqueue_many", []any{`[{"kind":"k","queue":"a","queue":"b"}]`}, "CURFEW INVALID task 1: queue is given twice"},
		{"JSON that ends early", "curfew_enqueue_many", []any{`[{"kind":"k"},{"kind":"k"}`}, "CURFEW INVALID the tasks must be a JSON array of objects"},
		{"a zero byte behind the tasks", "curfew_enqueue_many", []any{"[{\"kind\":\"k\"}]\x00{{{"}, "CURFEW INVALID the tasks must be a JSON array of objects, such as [{\"kind\":\"render\"}]; see byte "},
		{"headers before a zero byte", "curfew_enqueue", []any{"k", "headers", "{\"a\":\"b\"}\x00"}, "CURFEW INVALID headers must be a JSON object of strings"},
		{"a text among the tasks", "curfew_enqueue_many", []any{`[{"kind":"k"}, "{}"]`}, "CURFEW INVALID the tasks must be a JSON array of objects, such as [{\"kind\":\"render\"}]; see byte 16"},
		{"an array of arrays", "curfew_enqueue_many", []any{`[[{"kind":"k"}]]`}, "CURFEW INVALID the tasks must be a JSON array of objects, such as [{\"kind\":\"render\"}]; see byte 2"},
		{"a comma too many", "curfew_enqueue_many", []any{`[{"kind":"k"},]`}, "CURFEW INVALID the tasks must be a JSON array of objects"},
		{"a number that JSON does not have", "curfew_enqueue_many", []any{`[{"kind":"k","payload":[1,NaN]}]`}, "CURFEW INVALID task 1: payload has "},
		{"infinity", "curfew_enqueue_many", []any{`[{"kind":"k","payload":-Infinity}]`}, "CURFEW INVALID task 1: payload has "},
		{"a hexadecimal number", "curfew_enqueue_many", []any{`[{"kind":"k","payload":{"a":0x1F}}]`}, "CURFEW INVALID task 1: payload has "},
		{"a number with a zero in front", "curfew_enqueue_many", []any{`[{"kind":"k","payload":[-012]}]`}, "CURFEW INVALID task 1: payload has "},
		{"a number that ends with a point", "curfew_enqueue_many", []any{`[{"kind":"k","payload":1.}]`}, "CURFEW INVALID task 1: payload has "},
		{"a number with a plus", "curfew_enqueue_many", []any{`[{"kind":"k","payload":+1}]`}, "CURFEW INVALID task 1: payload has "},
		{"a string with a raw newline", "curfew_enqueue_many", []any{"[{\"kind\":\"k\",\"payload\":[\"a\nb\"]}]"}, "CURFEW INVALID task 1: payload has "},
		{"a string that is not UTF-8", "curfew_enqueue_many", []any{"[{\"kind\":\"k\"},{\"kind\":\"k\",\"payload\":\"\xff\"}]"}, "CURFEW INVALID task 2: payload has "},
		{"headers that are not UTF-8", "curfew_enqueue", []any{"k", "headers", "{\"a\":\"\xff\"}"}, "CURFEW INVALID headers must be a JSON object of strings"},
		{"half of a surrogate", "curfew_enqueue_many", []any{`[{"kind":"k","payload":"\ud800"}]`}, "CURFEW INVALID the tasks must be a JSON array of objects"},
		{"JSON of 10,000 levels", "curfew_enqueue_many", []any{`[{"kind":"k","payload":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + "}]"}, "CURFEW INVALID the tasks "},
		{"a queue of JSON true", "curfew_enqueue_many", []any{`[{"kind":"k","queue":true}]`}, "CURFEW INVALID task 1: queue must be a string or a number"},
		{"a key of JSON", "curfew_enqueue_many", []any{`[{"kind":"k","idempotency_key":["a"]}]`}, "CURFEW INVALID task 1: idempotency_key must be a string or a number"},
		{"a kind that is an object", "curfew_enqueue_many", []any{`[{"kind":{"a":1}}]`}, "CURFEW INVALID task 1: kind must be a string or a number"},
		{"an empty name twice in JSON", "curfew_enqueue_many", []any{`[{"":1,"":2}]`}, `CURFEW INVALID task 1: "" is given twice`},
		{"a misspelt name of null", "curfew_enqueue_many", []any{`[{"kind":"k","timeuot":null}]`}, "CURFEW INVALID task 1: timeuot is not a known name: use attempt_timeout, attempt_timeout_ms, available_at, "},
		{"a misspelt kind in a list", "curfew_enqueue_many", []any{`[{"kind":"k","kinds":"j"}]`}, "CURFEW INVALID task 1: kinds is not a known name: use attempt_timeout, attempt_timeout_ms, available_at, backoff, "},
		{"a name twice, once of null", "curfew_enqueue_many", []any{`[{"kind":"k","queue":null,"que\u0075e":"b"}]`}, "CURFEW INVALID task 1: queue is given twice"},
		{"an id of another partition in a list", "curfew_enqueue_many", []any{`[{"kind":"k"},{"kind":"k","id":"7-x"}]`}, "CURFEW PARTITION task 2: 7-x belongs to partition 7: use the key h:{7}"},
		{"an id that is none in a list", "curfew_enqueue_many", []any{`[{"kind":"k"},{"kind":"k","id":"x"}]`}, `CURFEW INVALID task 2: the id "x" is not the id of a task`},
		{"an id twice in a list, of other tasks", "curfew_enqueue_many", []any{`[{"kind":"k","id":"0-n1"},{"kind":"j","id":"0-n1"}]`}, "CURFEW TAKEN task 2: the id 0-n1 belongs to another task"},
		{"two arguments", "curfew_enqueue_many", []any{`[{"kind":"k"}]`, "x"}, "CURFEW INVALID give one JSON array of tasks"},
		{"a list of which one is taken", "curfew_enqueue_many", []any{`[{"kind":"k"},{"kind":"k","id":"0-p1"}]`}, "CURFEW TAKEN task 2: the id 0-p1 belongs to another task"},
		{"501 tasks", "curfew_enqueue_many", []any{"[" + strings.Repeat(`{"kind":"k"},`, 500) + `{"kind":"k"}]`}, "CURFEW INVALID there are 501 tasks, and a call takes up to 500"},
		{"more than 1 MiB", "curfew_enqueue_many", []any{`[{"kind":"k","payload":"` + strings.Repeat("x", 1<<20) + `"}]`}, "CURFEW INVALID give one JSON array of tasks, of up to 1 MiB"},

		{"a task that is not there", "curfew_get", []any{"0-nobody"}, "CURFEW MISSING there is no task 0-nobody"},
		{"no id", "curfew_get", nil, "CURFEW INVALID give the id first, then names and values"},
		{"an id that is none", "curfew_get", []any{"x"}, `CURFEW INVALID the id "x" is not the id of a task`},
		{"the result of a task that is not there", "curfew_result", []any{"0-nobody"}, "CURFEW MISSING there is no task 0-nobody"},
		{"a cancel of a task that is not there", "curfew_cancel", []any{"0-nobody"}, "CURFEW MISSING there is no task 0-nobody"},
		{"a cancel by another owner", "curfew_cancel", []any{"0-p1", "owner", "0-r1"}, "CURFEW OWNER 0-p1 is not a child of 0-r1"},
		{"a result and an error", "curfew_resolve", []any{"0-o1", "result", "x", "error", "y"}, "CURFEW INVALID give result or error, one of them"},
		{"neither a result nor an error", "curfew_resolve", []any{"0-o1"}, "CURFEW INVALID give result or error, one of them"},
		{"a task that is not a promise", "curfew_resolve", []any{"0-p1", "result", "x"}, "CURFEW INVALID id "},
		{"a signal to nobody", "curfew_signal", []any{"0-nobody", "go"}, "CURFEW OWNER the agent 0-nobody does not exist"},
		{"a signal to an agent that has ended", "curfew_signal", []any{"0-e1", "go"}, "CURFEW OWNER the agent 0-e1 has ended: it is CANCELLED"},
		{"a signal without a name", "curfew_signal", []any{"0-a1"}, "CURFEW INVALID give the name of the signal behind the id of the agent"},

		{"a fetch without a worker", "curfew_fetch", nil, "CURFEW INVALID give the name of the worker first"},
		{"a queue with a space in its name", "curfew_fetch", []any{"w", "queues", "a!b"}, `CURFEW INVALID the queue "a!b" must be`},
		{"queues without a name", "curfew_fetch", []any{"w", "queues", " , "}, "CURFEW INVALID queues has no name"},
		{"a quota that is none", "curfew_fetch", []any{"w", "queues", "a=x"}, `CURFEW INVALID the quota "x" of a must be a whole number`},
		{"1001 queues", "curfew_fetch", []any{"w", "queues", strings.Repeat("q,", 1001)}, "CURFEW INVALID queues has 1001 names, and may have 1000"},
		{"10,000 queues", "curfew_fetch", []any{"w", "queues", strings.Repeat("q ", 10000)}, "CURFEW INVALID queues has 10000 names, and may have 1000"},
		{"no lease", "curfew_fetch", []any{"w", "lease", "0s"}, `CURFEW INVALID lease "0s" must be from 1ms to 24h`},
		{"a lease of more than a day", "curfew_fetch", []any{"w", "lease", "25h"}, `CURFEW INVALID lease "25h" must be from 1ms to 24h`},
		{"a lease of more than a day in ms", "curfew_fetch", []any{"w", "lease_ms", "86400001"}, `CURFEW INVALID lease_ms "86400001" must be a whole number from 1 to 86400000`},
		{"a worker in place of its name", "curfew_fetch", []any{"w", "worker", "w"}, "CURFEW INVALID worker is not a known name: use lease, "},
		{"a lease without a unit", "curfew_fetch", []any{"w", "lease", "30"}, `CURFEW INVALID lease "30" has no unit: write 30s, or give lease_ms in ms`},
		{"too many slots", "curfew_fetch", []any{"w", "slots", "501"}, `CURFEW INVALID slots "501" must be a whole number from 0 to 500`},

		{"no outcome", "curfew_settle", []any{"w1", "0-r1", "1"}, "CURFEW INVALID give result, error or release, one of them"},
		{"two outcomes", "curfew_settle", []any{"w1", "0-r1", "1", "result", "x", "error", "y"}, "CURFEW INVALID give result, error or release, one of them"},
		{"a delay of a result", "curfew_settle", []any{"w1", "0-r1", "1", "result", "x", "delay", "1s"}, "CURFEW INVALID delay means nothing for result"},
		{"retry maybe", "curfew_settle", []any{"w1", "0-r1", "1", "error", "x", "retry", "maybe"}, `CURFEW INVALID retry "maybe" must be yes or no`},
		{"retry and class", "curfew_settle", []any{"w1", "0-r1", "1", "error", "x", "retry", "yes", "class", "error"}, "CURFEW INVALID give retry or class, and not both"},
		{"a class that there is not", "curfew_settle", []any{"w1", "0-r1", "1", "error", "x", "class", "odd"}, "CURFEW INVALID class must be"},
		{"another worker's claim", "curfew_settle", []any{"w9", "0-r1", "1", "result", "x"}, "CURFEW LOST 0-r1 no longer belongs to this claim: it is RUNNING. Drop the result"},
		{"another epoch", "curfew_settle", []any{"w1", "0-r1", "2", "result", "x"}, "CURFEW LOST 0-r1 no longer belongs to this claim: it is RUNNING. Drop the result"},
		{"no epoch", "curfew_settle", []any{"w1", "0-r1"}, `CURFEW INVALID the epoch "" must be the number that curfew_fetch gave`},
		{"the outcome of a task that is not there", "curfew_settle", []any{"w1", "0-nobody", "1", "result", "x"}, "CURFEW MISSING there is no task 0-nobody. Drop the result"},

		{"a claim without an epoch", "curfew_heartbeat", []any{"w1", "claims", "0-r1"}, `CURFEW INVALID the claim "0-r1" must be an id, = and its epoch`},
		{"the progress of two claims", "curfew_heartbeat", []any{"w1", "claims", "0-r1=1,0-r2=1", "progress", "x"}, "CURFEW INVALID progress needs one claim: name one"},
		{"a batch of 1000", "curfew_sweep", []any{"r", "batch", "1000"}, `CURFEW INVALID batch "1000" must be a whole number from 1 to 250`},
		{"another number of partitions", "curfew_open", []any{"partitions", "2"}, "CURFEW NAMESPACE h has 1 partitions, which cannot change: give partitions 1"},
		{"0 partitions", "curfew_open", []any{"partitions", "0"}, `CURFEW INVALID partitions "0" must be a whole number from 1 to 999`},
		{"a name for what takes none", "curfew_about", []any{"x", "y"}, "CURFEW INVALID x is not a known name: this function takes none"},
		{"a name behind an id", "curfew_get", []any{"0-p1", "x", "y"}, "CURFEW INVALID x is not a known name: this function takes none"},
		{"a reaper that waits for no time", "curfew_sweep", []any{"r", "fallback", "0s"}, `CURFEW INVALID fallback "0s" must be from 1ms to 1h`},
	} {
		t.Run(row.claim, func(t *testing.T) { s.refuses(t, root, row.call, row.args, row.says) })
	}
	for _, name := range []string{"h", "h:0", "h:{}", "h:{x}", "h:{-1}", "h:{00}", "h:{999}", "h:{0}x", "h:{0}:none", "", "{0}", " h:{0}"} {
		t.Run("the root "+name, func(t *testing.T) {
			for _, call := range []string{"curfew_open", "curfew_enqueue", "curfew_get", "curfew_fetch"} {
				s.refuses(t, name, call, []any{"k"}, "CURFEW INVALID the key ")
			}
		})
	}
	for _, name := range []string{"h:{7}", "other:{0}"} {
		t.Run("a namespace that was not opened, "+name, func(t *testing.T) {
			id := strings.TrimRight(name[strings.Index(name, "{")+1:], "}") + "-n1"
			for call, args := range map[string][]any{
				"curfew_enqueue": {"k"}, "curfew_enqueue_many": {`[{"kind":"k"}]`}, "curfew_get": {id}, "curfew_result": {id}, "curfew_cancel": {id},
				"curfew_resolve": {id, "result", "x"}, "curfew_signal": {id, "go"}, "curfew_stats": nil, "curfew_fetch": {"w"},
				"curfew_settle": {"w", id, 1, "result", "x"}, "curfew_heartbeat": {"w", "claims", id + "=1"}, "curfew_sweep": {"r"},
			} {
				s.refuses(t, name, call, args, "CURFEW NAMESPACE "+name+" is not a namespace: ")
			}
		})
	}
}

// A namespace of another version is refused by each function, and not changed.
func TestFunctionsRefuseANamespaceOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if err := s.rdb.HSet(t.Context(), root, "version", "3").Err(); err != nil {
		t.Fatal(err)
	}
	s.text = redistest.Dump(t, s.rdb, "")
	for call, args := range map[string][]any{
		"curfew_open": nil, "curfew_enqueue": {"k"}, "curfew_enqueue_many": {`[{"kind":"k"}]`}, "curfew_get": {"0-p1"}, "curfew_result": {"0-p1"}, "curfew_cancel": {"0-p1"},
		"curfew_resolve": {"0-o1", "result", "x"}, "curfew_signal": {"0-a1", "go"}, "curfew_stats": nil, "curfew_fetch": {"w"},
		"curfew_settle": {"w1", "0-r1", 1, "result", "x"}, "curfew_heartbeat": {"w1", "claims", "0-r1=1"}, "curfew_sweep": {"r"},
	} {
		s.refuses(t, root, call, args, "CURFEW NAMESPACE the records have version 3, and these functions work with versions up to 2: load those of a newer release")
	}
}
