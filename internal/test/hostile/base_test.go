package hostile

import (
	"fmt"
	"regexp"
	"strings"
)

// base is a valid call: its arguments and the kind of each. meanings says which values a kind allows.
type base struct {
	name, call string
	args       []string
	kinds      []string
}

// of returns a base. pairs are the kind and the value of each argument.
func of(name, call string, pairs ...any) base {
	b := base{name: name, call: call}
	for i := 0; i < len(pairs); i += 2 {
		b.kinds = append(b.kinds, pairs[i].(string))
		b.args = append(b.args, fmt.Sprint(pairs[i+1]))
	}
	return b
}

func bases() []base {
	return []base{
		of("open", "open", "version", 2, "whole", 1, "level", "terminal"),
		of("open a namespace", "open", "version", 2, "partitions", 0, "level", "all"),
		of("enqueue", "enqueue", "count", 2,
			"count", 5, "name", "kind", "kindname", "k", "name", "queue", "queue", "q", "name", "timeout_ms", "timeout", 60000, "name", "delay_ms", "attempts", 10, "name", "priority", "priority", 1,
			"fields", 4, "name", "kind", "kindname", "kd", "name", "max_retries", "attempts", 3, "name", "headers", "opaque", "h", "name", "idempotency_key", "key", "key",
			"shape", 1, "id", "0-n1", "opaque", "payload", "shape", 2, "id", "0-n2", "opaque", large, "shape", 1, "id", "0-r1.n", "opaque", "x"),
		of("enqueue words", "enqueue", "count", 1, "count", 14, "name", "kind", "kindname", "k", "name", "backoff", "choice", "exponential", "name", "backoff_ms", "backoff", 1,
			"name", "jitter", "jitter", 5, "name", "on_timeout", "choice", "retry", "name", "max_retries", "retries", 3, "name", "retry_expression", "line", "true", "name", "hook_success", "hook", "h q",
			"name", "retry_of", "ancestor", "0-e1", "name", "node", "node", "f 1 n", "name", "on_deadline", "choice", "fail", "name", "warn_percent", "percent", 50, "name", "attempt_timeout_ms", "attempt", 10, "name", "budget_percent", "percent", 50,
			"shape", 1, "id", "0-r1.m", "opaque", ""),
		of("enqueue a timer", "enqueue", "count", 1, "count", 4, "name", "kind", "kindname", "k", "name", "role", "choice", "timer", "name", "available_at", "attempts", 1800000001000, "name", "deadline_at", "until", 1800000002000,
			"shape", 1, "id", "0-n3", "opaque", ""),
		of("fetch", "fetch", "word", "w3", "whole", 1, "whole", 5, "lease", 15000, "whole", 0, "queue", "hit", "whole", 2, "queue", "other", "whole", 1),
		of("settle", "settle", "word", "w1", "word", "call", "outcomes", 3, "id", "0-r1", "epoch", 1, "choice", "fail", "opaque", "error", "choice", "error", "code", 1, "delay", "", "verdict", "",
			"id", "0-r2", "epoch", 1, "choice", "complete", "opaque", large, "id", "0-r3", "epoch", 1, "choice", "release", "opaque", "", "opaque", "", "code", "", "delay", 5, "verdict", "",
			"whole", 100, "whole", 1, "lease", 15000, "whole", 0, "queue", "hit", "whole", 5),
		of("heartbeat", "heartbeat", "word", "w1", "beat", 15000, "whole", 100, "id", "0-r1", "epoch", 1, "opaque", "half", "id", "0-g1", "epoch", 1, "opaque", ""),
		of("goodbye", "heartbeat", "word", "w1", "beat", 0, "whole", 100),
		of("cancel", "cancel", "word", "call", "reason", "why", "owner", "", "id", "0-p1", "id", "0-r1", "id", "0-d1", "id", "0-a2"),
		of("cancel as an owner", "cancel", "word", "call", "reason", "why", "owner", "0-r1", "id", "0-r1.c"),
		of("delete", "delete", "id", "0-e1", "id", "0-p1", "id", "0-r1.c"),
		of("repair", "repair", "choice", "go", "choice", "task", "id", "0-p1", "opaque", "ready:hit", "choice", "wait", "id", "0-a2", "opaque", "1 1", "choice", "key", "opaque", "key", "opaque", ""),
		of("repair names", "repair", "choice", "dry", "choice", "queue", "opaque", "hit", "opaque", "", "choice", "worker", "opaque", "w1", "opaque", "", "choice", "running", "opaque", "", "opaque", "go on"),
		of("resolve", "resolve", "word", "call", "choice", "complete", "id", "0-o1", "opaque", "yes", "id", "0-a2.c", "opaque", "x"),
		of("reject", "resolve", "word", "call", "choice", "fail", "id", "0-o1", "opaque", "no"),
		of("control", "control", "queue", "hit", "choice", "paused", "switch", 1, "choice", "max_running", "switch", 5, "choice", "rate", "control", 5, "choice", "per_ms", "control", 1000, "choice", "burst", "control", 5, "choice", "max_length", "switch", 50),
		of("drain", "drain", "word", "call", "queue", "hit", "upto", 100, "reason", "why"),
		of("drain those of then", "drain", "word", "call", "queue", "hit", "upto", 100, "reason", "why", "seq", 15, "front", 0),
		of("define", "define", "kindname", "kk", "name", "timeout_ms", "default", 5000, "name", "max_retries", "attempts", 2, "name", "retry_expression", "line", "true",
			"name", "hook_timeout", "hook", "h q"),
		of("configure", "configure", "name", "events", "level", "all", "name", "event_mib", "mib", 7, "name", "figures", "choice", "off", "name", "default_timeout_ms", "default", 60000),
		of("watch", "watch", "id", "0-p1", "id", "0-r1", "id", "0-e1"),
		of("read", "read", "id", "0-p1", "id", "0-r1", "id", "0-e1"),
		of("list", "list", "choice", "dead", "filter", "hit", "score", "1800000000000", "id", "0-e1", "some", 10),
		of("list by a filter", "list", "choice", "retained", "mask", "", "score", "", "opaque", "", "some", 500, "name", "kind", "filter", "k", "name", "status", "filter", "CANCELLED", "name", "since", "whole", 1, "name", "before", "whole", 1900000000000),
		of("describe_worker", "describe_worker", "word", "w1", "choice", "running", "about", "{}"),
		of("stop_worker", "stop_worker", "word", "w1"),
		of("read_workers", "read_workers", "whole", 0),
		of("read many workers", "read_workers", "whole", 0, "workers", 1000),
		of("read_queues", "read_queues"),
		of("read more queues", "read_queues", "whole", 0),
		of("read_events", "read_events", "place", "0-0", "events", 10),
		of("explain", "explain", "id", "0-a2", "from", "", "some", 10),
		of("explain more", "explain", "id", "0-a2", "from", "2", "some", 10),
		of("recall", "recall", "id", "0-a2", "most", 100, "id", "c", "id", "n"),
		of("remember", "remember", "id", "0-a1", "epoch", 1, "word", "w1", "count", 2, "choice", "state", "opaque", "s", "choice", "children", "digits", 0, "count", 2, "entry", 7, "opaque", "x", "entry", 8, "opaque", "y"),
		of("signal", "signal", "word", "call", "id", "0-a1", "signal", "go", "opaque", "x"),
		of("sweep", "sweep", "word", "r", "batch", 100, "fallback", 500),
		of("suspend", "suspend", "id", "0-a1", "epoch", 1, "word", "w1", "word", "call",
			"count", 8, "name", "entry", "number", 5, "name", "digest", "digest", "d", "name", "label", "label", "l", "name", "mode", "mode", "all", "name", "limit_ms", "limit", 10000,
			"name", "on_pending", "choice", "cancel", "name", "most", "digits", 10, "name", "mask", "choice", "obbbb",
			"count", 2, "id", "0-a1.c", "span", 2000, "mask", "oobbb", "id", "0-a1.n", "span", "", "mask", "",
			"count", 1, "choice", "state", "opaque", "s", "count", 1, "entry", 4, "opaque", "x",
			"count", 1, "count", 2, "name", "kind", "kindname", "k", "name", "timeout_ms", "timeout", 60000, "shape", 1, "id", "0-a1.n", "opaque", "p"),
		of("suspend in parts", "suspend", "id", "0-a1", "epoch", 1, "word", "w1", "word", "call",
			"count", 6, "name", "entry", "number", 5, "name", "digest", "digest", "d", "name", "part", "choice", 1, "name", "of", "parts", 2, "name", "need", "digits", 1, "name", "mode", "mode", "any_ok",
			"count", 1, "id", "0-a1.c", "span", "", "mask", "", "none", 0, "none", 0),
	}
}

// value is a hostile value, which replaces an argument.
type value struct{ name, text string }

var values = []value{
	{"nothing", ""}, {"1 MiB", strings.Repeat("x", 1<<20)}, {"negative", "-1"}, {"-0.5", "-0.5"}, {"1.5", "1.5"}, {"zero", "0"}, {"zeros", "007"},
	{"2^53-1", "9007199254740991"}, {"2^53", "9007199254740992"}, {"2^53+1", "9007199254740993"}, {"2^52", "4503599627370496"}, {"10^18", "1000000000000000000"},
	{"999999999", "999999999"}, {"10^15-1", "999999999999999"}, {"nan", "nan"}, {"inf", "inf"}, {"1e308", "1e308"}, {"0x10", "0x10"}, {"binary", "\x00\xff\r\n"}, {"newline", "a\nb"},
	{"spaces", "a b  c "}, {"a foreign id", "7-foreign"}, {"an unknown id", "0-nobody"}, {"a key", "h:{0}:spec:0-p1"}, {"none", "none"}, {"says", "says"}, {"of two lines", "x\n\ny=1\n"},
}

var (
	wordOf          = regexp.MustCompile(`^[A-Za-z0-9][!-~]*$`)
	namedOf         = regexp.MustCompile(`^[A-Za-z0-9][\w.:@+/=-]*$`)
	queueAndQuotaOf = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(=[0-9]*)?$`)
	queueOf         = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*$`)
	nodeOf          = regexp.MustCompile(`^[A-Za-z][\w-]{0,63} [0-9A-Za-z][\w.-]{0,63} [0-9A-Za-z][\w.-]{0,127}$`)
	kindOf          = regexp.MustCompile(`^[A-Za-z0-9][\w.:/-]*$`)
	signalOf        = regexp.MustCompile(`^[A-Za-z0-9][\w-]*$`)
	idOf            = regexp.MustCompile(`^[0-9]+-[A-Za-z0-9][\w.!-]*$`)
	scoreOf         = regexp.MustCompile(`^-?[0-9]+\.?[0-9]*e?\+?[0-9]*$`)
	digitsOf        = regexp.MustCompile(`^[0-9]+$`)
)

func whole(text string) bool {
	return digitsOf.MatchString(text) && (len(text) < 16 || len(text) == 16 && text <= "9007199254740992")
}
