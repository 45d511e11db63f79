package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// trouble is the diagnosis of an error of Redis or of the connection.
type trouble struct {
	kind   error  // an error of package refusal, or nil
	cure   string // advice for the user
	passes bool   // another try may succeed
	sent   bool   // this try may have had an effect
}

// answers lists the errors that Redis returns instead of running a command, by their beginnings.
var answers = []struct {
	begins string
	trouble
}{
	{"NOAUTH", trouble{kind: refusal.ErrNoAccess, cure: "it requires a password: write redis://user:password@host:6379"}},
	{"WRONGPASS", trouble{kind: refusal.ErrNoAccess, cure: "the user or the password is wrong, or the user is off: see ACL GETUSER"}},
	{"ERR AUTH", trouble{kind: refusal.ErrNoAccess, cure: "it has no password: leave out user and password"}},
	{"DENIED", trouble{kind: refusal.ErrNoAccess, cure: "set a password for its users, or protected-mode no"}},
	{"ERR DB index is out of range", trouble{kind: refusal.ErrMismatch, cure: "name a database that it has: redis://host:6379/0"}},
	{"ERR SELECT is not allowed in cluster mode", trouble{kind: refusal.ErrMismatch, cure: "a cluster has no databases: write redis+cluster://host:6379"}},
	{"ERR This instance has cluster support disabled", trouble{kind: refusal.ErrMismatch, cure: "it is not a cluster: write redis://host:6379"}},
	{"OOM", trouble{kind: refusal.ErrFull}},
	{"WRONGTYPE", trouble{kind: refusal.ErrWrongType}},
	{"LOADING", trouble{kind: refusal.ErrUnavailable, cure: "it is loading its data: wait", passes: true}},
	{"BUSY", trouble{kind: refusal.ErrUnavailable, cure: "a script or function does not end: call FUNCTION KILL or SCRIPT KILL", passes: true}},
	{"CLUSTERDOWN", trouble{kind: refusal.ErrUnavailable, cure: "some slots have no master: see CLUSTER INFO", passes: true}},
	{"MASTERDOWN", trouble{kind: refusal.ErrUnavailable, cure: "it is a replica without a connection to its master: connect to the master", passes: true}},
	{"READONLY", trouble{kind: refusal.ErrUnavailable, cure: "it is a replica: connect to its master", passes: true}},
	{"MISCONF", trouble{kind: refusal.ErrUnavailable, cure: "it cannot save its data, so it refuses writes: check its log and its disk space", passes: true}},
	{"NOREPLICAS", trouble{kind: refusal.ErrUnavailable, cure: "it has fewer replicas than min-replicas-to-write requires: start replicas or lower it", passes: true}},
	{"ERR max number of clients", trouble{kind: refusal.ErrUnavailable, cure: "raise maxclients, or use fewer connections", passes: true}},
	{"TRYAGAIN", trouble{kind: refusal.ErrUnavailable, passes: true}},
}

// diagnose returns the meaning of an error. The kind is nil for an error that only a bug in Curfew can cause.
func (e *Engine) diagnose(err error) trouble {
	text := innerText(err)
	if strings.Contains(err.Error(), "redis: all sentinels") {
		return sentinels(err.Error())
	}
	if lua.Raised(err) {
		return e.diagnoseAnswer(err, text)
	}
	return diagnoseConnection(err, text)
}

// diagnoseAnswer diagnoses an error reply of Redis: the call had no effect.
func (e *Engine) diagnoseAnswer(err error, text string) trouble {
	if Denied(err) {
		return trouble{kind: refusal.ErrNoRight}
	}
	if lua.MayNotRun(err) {
		return trouble{kind: refusal.ErrUnfit, cure: "it has neither FCALL nor EVAL: see rename-command in its configuration"}
	}
	if redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") {
		if _, single := e.rdb.(*redis.Client); single {
			return trouble{kind: refusal.ErrMismatch, cure: "it is one node of a cluster: write redis+cluster://host:6379"}
		}
		return trouble{kind: refusal.ErrUnavailable, passes: true}
	}
	for _, a := range answers {
		if strings.HasPrefix(text, a.begins) {
			return a.trouble
		}
	}
	switch {
	case strings.Contains(text, "WRONGTYPE"):
		return trouble{kind: refusal.ErrWrongType}
	case strings.Contains(text, " is not a namespace: it is being removed"): // lua/store/tx.lua
		return trouble{kind: refusal.ErrRemoving}
	case strings.Contains(text, " is not a namespace: "):
		return trouble{kind: refusal.ErrNoNamespace}
	case strings.Contains(text, "NEWER "):
		return trouble{kind: refusal.ErrNewer}
	case strings.Contains(text, "OLDER "):
		return trouble{kind: refusal.ErrOlder}
	case strings.Contains(text, "BROKEN "):
		return trouble{kind: refusal.ErrBroken}
	}
	return trouble{}
}

// sentinels diagnoses an error of a client that finds the master through sentinels.
func sentinels(text string) trouble {
	switch {
	case strings.Contains(text, "unknown command"):
		return trouble{kind: refusal.ErrMismatch, cure: "the server is not a sentinel: name the sentinels, whose usual port is 26379"}
	case strings.Contains(text, "redis: nil"), strings.Contains(text, "No such master"):
		return trouble{kind: refusal.ErrMismatch, cure: "the sentinels have no master of this name: see SENTINEL MASTERS"}
	case strings.Contains(text, "NOAUTH"), strings.Contains(text, "WRONGPASS"):
		return trouble{kind: refusal.ErrNoAccess, cure: "the sentinels require another password: add ?sentinel_password="}
	}
	return trouble{kind: refusal.ErrUnavailable, passes: true}
}

// diagnoseConnection diagnoses the error of a try that got no reply.
func diagnoseConnection(err error, text string) trouble {
	var op *net.OpError
	dialed := errors.As(err, &op) && op.Op == "dial"
	switch {
	case errors.Is(err, redis.ErrClosed):
		return trouble{kind: refusal.ErrClosed}
	case errors.As(err, new(*notSentError)):
		return trouble{kind: refusal.ErrUnavailable, passes: true}
	case strings.HasPrefix(text, "redis: can't parse map reply"): // the reply to HELLO
		return trouble{kind: refusal.ErrMismatch, cure: "the server is not a Redis: check host and port"}
	case op != nil && op.Op == "remote error":
		return trouble{kind: refusal.ErrMismatch, cure: "the server ended the TLS handshake: it may require a client certificate"}
	case distrusted(err):
		return trouble{kind: refusal.ErrMismatch, cure: "the server's certificate is not trusted: give the client the authority that signed it, or renew it"}
	case errors.As(err, new(tls.RecordHeaderError)):
		return trouble{kind: refusal.ErrMismatch, cure: "the server speaks no TLS: write redis://, not rediss://"}
	case strings.HasPrefix(text, "redis: cluster has no nodes"):
		return trouble{kind: refusal.ErrUnavailable, cure: "no node returns the map of the slots: see CLUSTER NODES", passes: true}
	case dialed || errors.Is(err, syscall.ECONNREFUSED):
		return trouble{kind: refusal.ErrUnavailable, cure: "check host and port, and whether it runs", passes: true}
	case errors.Is(err, redis.ErrPoolTimeout):
		return trouble{kind: refusal.ErrUnavailable, cure: "all connections of the client are in use: raise its pool_size", passes: true}
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET):
		return trouble{kind: refusal.ErrUnavailable, cure: "it closed the connection: it was stopped, or maxclients is reached", passes: true, sent: true}
	}
	return trouble{kind: refusal.ErrUnavailable, passes: true, sent: true}
}

func distrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}

// wrapped matches the prefixes that package lua and go-redis put before an error.
var wrapped = regexp.MustCompile(`^[a-z_]+: (.*)`)

// innerText returns the text of an error without the prefixes of the packages that wrapped it.
func innerText(err error) string {
	var inside *lua.ScriptError
	if errors.As(err, &inside) {
		return inside.Error()
	}
	var answer redis.Error
	if errors.As(err, &answer) {
		return answer.Error()
	}
	if inner := errors.Unwrap(err); inner != nil && strings.HasSuffix(err.Error(), ": "+inner.Error()) && wrapped.MatchString(err.Error()) {
		return inner.Error()
	}
	return err.Error()
}

// explained is an error with a diagnosis. Its text names the error and its cure, with the reply of Redis in
// parentheses.
type explained struct {
	kind  error
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }

// Unwrap returns the kind of the error, if it has one, and its cause.
func (e *explained) Unwrap() []error {
	if e.kind == nil {
		return []error{e.cause}
	}
	return []error{e.kind, e.cause}
}

// explain wraps err with its kind and its cure.
func (t trouble) explain(err error) error {
	var inner *explained
	if err == nil || errors.As(err, &inner) {
		return err
	}
	if t.kind == nil && t.cure == "" {
		return err
	}
	var words []string
	if t.kind != nil {
		words = append(words, t.kind.Error())
	}
	if t.cure != "" {
		words = append(words, t.cure)
	}
	return &explained{t.kind, strings.Join(words, ": ") + " (" + clip.Line(innerText(err), 300) + ")", err}
}

// Explain turns an error of Redis or of the connection into an error of package refusal, whose text names the cure.
// It returns unknown errors unchanged.
func (e *Engine) Explain(partition int, err error) error {
	if err == nil {
		return nil
	}
	t := e.diagnose(err)
	if t.kind == refusal.ErrNoRight {
		return e.noRight(partition, err)
	}
	return t.explain(err)
}

// Unread returns the error of a read that failed. If ctx has ended, it matches the cause of ctx only, because the error of
// Redis may follow from that. Otherwise it is the error that Explain returns.
func (e *Engine) Unread(ctx context.Context, partition int, err error) error {
	if err == nil {
		return nil
	}
	if cause := EndOf(ctx); cause != nil {
		return e.inVain(cause, err)
	}
	return e.Explain(partition, err)
}
