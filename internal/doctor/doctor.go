// Package doctor checks whether a Redis, its settings and a namespace are set up for Curfew, and explains how to fix each problem. It
// changes no data. To check the rights of a role it opens the namespace as a program of that role does, which may load functions.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Level is the severity of a finding.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // tasks can be lost or late, or nobody does them
	Fail Level = "fail" // it does not work
)

// Finding is the result of one check.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Cure    string `json:"cure,omitempty"`
	Node    string `json:"node,omitempty"` // of a cluster: the master that it is about
}

// Config selects the checks.
type Config struct {
	Namespace string
	// Access is the role whose rights the user must have. Defaults to AccessAll.
	Access queue.Access
	// Quick checks only whether tasks can be enqueued and end on time now.
	Quick bool
}

// examination collects findings.
type examination struct {
	Config
	rdb      redis.UniversalClient
	server   *operate.Server
	node     string // of a cluster: the master that is looked at
	findings []Finding
}

func (x *examination) report(level Level, subject, text, cure string) {
	x.findings = append(x.findings, Finding{level, subject, text, cure, x.node})
}

// Examine checks a server and a namespace, and returns its findings in the order of the checks. It returns an error only if the
// server cannot be reached, or the name of the namespace is not valid.
func Examine(ctx context.Context, rdb redis.UniversalClient, c Config) ([]Finding, error) {
	x := &examination{Config: c, rdb: rdb}
	var err error
	if x.server, err = operate.Connect(ctx, rdb); errors.Is(err, refusal.ErrUnfit) || errors.Is(err, refusal.ErrNoRight) {
		x.report(Fail, "server", without(refusal.ErrUnfit, err), "")
		return x.findings, nil
	}
	if err != nil {
		return nil, err
	}
	if err := x.lookAtServers(ctx); err != nil {
		return nil, err
	}
	if err := x.lookAtNamespace(ctx); err != nil {
		if errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown) || errors.Is(err, refusal.ErrInvalid) || ctx.Err() != nil {
			return nil, err
		}
		x.report(Fail, "namespace", err.Error(), "")
	}
	return x.findings, nil
}

// Worst returns the worst level of some findings.
func Worst(findings []Finding) Level {
	for _, level := range []Level{Fail, Warn} {
		if slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == level }) {
			return level
		}
	}
	return OK
}

// without returns the text of an error without the prefix that its kind adds.
func without(kind, err error) string {
	return strings.TrimPrefix(err.Error(), kind.Error()+": ")
}

// denied reports whether the user may not see something, or the server does not have it. Then it reports the subject as ok and not
// checked: a program with few rights is not at fault.
func (x *examination) denied(subject string, err error) bool {
	if err == nil {
		return false
	}
	switch text := err.Error(); {
	case engine.Denied(err), errors.Is(err, refusal.ErrNoRight):
		x.report(OK, subject, "not checked: the user has no right to look", "")
	case strings.Contains(text, "unknown command"), strings.Contains(text, "unknown subcommand"), strings.Contains(text, "unsupported"):
		x.report(OK, subject, "not checked: this server does not support the command", "")
	default:
		return false
	}
	return true
}

// lookAtNamespace checks the namespace, and the rights of the user in it.
func (x *examination) lookAtNamespace(ctx context.Context) error {
	n, err := x.server.Settled(ctx, x.Namespace)
	cure := "create it with `curfew namespace create " + x.Namespace + "`, or give another with --namespace"
	switch {
	case errors.Is(err, refusal.ErrNoNamespace):
		x.report(Fail, "namespace", fmt.Sprintf("there is no namespace %s", x.Namespace), cure)
		return nil
	case err != nil:
		return err
	case errors.Is(n.Err, refusal.ErrNoRight):
		x.report(Fail, "rights", without(refusal.ErrNoRight, n.Err), "grant what is named: docs/how-to/security.md has the rules of each role")
		return nil
	case n.Err != nil:
		x.report(Fail, "namespace", n.Err.Error(), "")
		return nil
	case n.Version == operate.Removing:
		x.report(Fail, "namespace", x.Namespace+" is being removed", "finish that with `curfew namespace rm "+x.Namespace+"`")
		return nil
	case !n.Known():
		x.report(Fail, "namespace", fmt.Sprintf("%s has records of version %s, which this program does not know", x.Namespace, n.Version), "use a release of curfew that works with that version: docs/how-to/upgrade.md")
		return nil
	case len(n.Missing) > 0:
		x.report(Fail, "namespace", fmt.Sprintf("%s lacks %d of its %d partitions", x.Namespace, len(n.Missing), n.Partitions), "create them with `curfew namespace create "+x.Namespace+"`")
		return nil
	}
	x.report(OK, "namespace", fmt.Sprintf("%s, partitions: %d", n.Name, n.Partitions), "")
	q, err := queue.Open(ctx, x.rdb, queue.Config{Namespace: x.Namespace, Access: x.Access, Logger: slog.New(slog.DiscardHandler)})
	if errors.Is(err, refusal.ErrNoRight) {
		x.report(Fail, "rights", fmt.Sprintf("for the role %s: %s", x.Access, without(refusal.ErrNoRight, err)), "grant what is named: docs/how-to/security.md has the rules of each role")
		return nil
	}
	if err != nil {
		return err
	}
	x.report(OK, "rights", fmt.Sprintf("the user has those of the role %s", x.Access), "")
	return x.lookAtWork(ctx, q)
}

// counted returns a number with its noun, for example "1 worker" or "2 workers".
func counted(n int64, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
