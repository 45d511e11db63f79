package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// RedisVariables and NamespaceVariables are the environment variables of the flags --redis and --namespace, the first one first.
var (
	RedisVariables     = []string{"CURFEW_REDIS_URL", "REDIS_URL"}
	NamespaceVariables = []string{"CURFEW_NAMESPACE"}
	// Secrets are the variables that can have a password, or name a file that has one.
	Secrets = append([]string{"CURFEW_CONFIG"}, RedisVariables...)
)

// The values of these flags if neither the flag nor a variable is given.
const (
	DefaultRedis     = "redis://localhost:6379/0"
	DefaultNamespace = "curfew"
)

// NamespaceFlags returns the flags that name a namespace and its server.
func NamespaceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "redis", EnvVars: RedisVariables, Value: DefaultRedis, Usage: "the `URL` of Redis; if it has a password, set REDIS_URL instead: other users can read a command line"},
		&cli.StringFlag{Name: "namespace", EnvVars: NamespaceVariables, Value: DefaultNamespace, Usage: "the namespace, which must exist"},
	}
}

// Connect returns a client for the server of --redis. It makes no call.
func Connect(c *cli.Context) (redis.UniversalClient, error) {
	rdb, err := queue.Connect(c.String("redis"))
	if err != nil {
		return nil, Usage("--redis: %v", err)
	}
	LogRedis(c)
	EndOnSilence(c, rdb)
	return rdb, nil
}

// lastReply is how long an interrupted command waits for the reply to a call.
const lastReply = 200 * time.Millisecond

// CutOff closes the connections of a client soon after the command is interrupted, so that the command does not wait
// for a server that does not answer. stop undoes that.
func CutOff(c *cli.Context, rdb redis.UniversalClient) (stop func() bool) {
	return context.AfterFunc(c.Context, func() {
		time.Sleep(lastReply)
		rdb.Close()
	})
}

// OpenAs opens the namespace of the flags for this kind of access. stop closes the connection.
func OpenAs(c *cli.Context, access queue.Access) (q *queue.Queue, stop func(), err error) {
	rdb, err := Connect(c)
	if err != nil {
		return nil, nil, err
	}
	CutOff(c, rdb)
	if q, err = OpenOn(c, rdb, queue.Config{Logger: Logger(c), Access: access}); err != nil {
		rdb.Close()
	}
	return q, func() { rdb.Close() }, err
}

// OpenOn opens the namespace of the flags. It fails if the namespace does not exist, because a mistyped name must not create
// one, unless the command has a flag --create.
func OpenOn(c *cli.Context, rdb redis.UniversalClient, config queue.Config) (*queue.Queue, error) {
	config.Namespace, config.Existing = c.String("namespace"), !c.Bool("create")
	if config.Namespace == "" {
		return nil, Usage("--namespace must not be empty")
	}
	if err := Trace(c, &config); err != nil {
		return nil, err
	}
	defer CutOff(c, rdb)()
	q, err := queue.Open(c.Context, rdb, config)
	if errors.Is(err, refusal.ErrNoNamespace) {
		cure := "give the namespace with --namespace, and the server with --redis or REDIS_URL"
		if HasFlag(c.Command, "create") {
			cure += ", or create it with `curfew namespace create` or --create"
		}
		return nil, NoNamespace(c.Context, rdb, cure, config.Namespace)
	}
	return q, err
}

// patience is how long the search for the name that is nearest to a mistyped one may take.
const patience = 300 * time.Millisecond

// NoNamespace returns the error for namespaces that do not exist. For a single namespace, the error
// names the nearest one. cure is the advice in the error.
func NoNamespace(ctx context.Context, rdb redis.UniversalClient, cure string, names ...string) error {
	near := ""
	if len(names) == 1 {
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		near = DidYouMean(names[0], operate.Names(ctx, rdb, "", operate.Namespaces, ""))
	}
	return NotFound("there is no namespace %s on this Redis%s: %s", QuotedOneOf(names), near, cure)
}

// IsAway reports whether an error means that Redis cannot be reached.
func IsAway(err error) bool {
	return errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown)
}

// isUnfit reports whether an error means that the server is not the right one, or refuses this user
// or password.
func isUnfit(err error) bool {
	return errors.Is(err, refusal.ErrNoAccess) || errors.Is(err, refusal.ErrMismatch) || errors.Is(err, refusal.ErrUnfit)
}

// Quietly returns nil if err means that the reader of the output is gone, for example after `|
// head`.
func Quietly(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Failure adds an exit code and advice to the error of a command. It returns nil if the reader of
// the output is gone.
func Failure(c *cli.Context, err error) error {
	var silent *SilenceError
	switch {
	case Quietly(err) == nil:
		return nil
	case errors.As(context.Cause(c.Context), &silent):
		return cli.Exit(silent.Error()+afterwards(err), ExitUnreachable)
	case errors.Is(err, context.Canceled), c.Context.Err() != nil && (IsAway(err) || errors.Is(err, redis.ErrClosed)):
		return ErrInterrupted
	case errors.Is(err, refusal.ErrInvalid):
		return Usage("%v", err)
	case errors.Is(err, refusal.ErrUnavailable) && !errors.As(err, new(redis.Error)): // no server has answered
		return cli.Exit(fmt.Sprintf("%v: give the server's address with --redis or REDIS_URL", err), ExitUnreachable)
	case IsAway(err), isUnfit(err):
		return cli.Exit(err.Error(), ExitUnreachable)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: the output is not complete; free some space, or write to another file", err)
	}
	return err
}

// afterwards describes the work done before the interrupt, from the error of the command, or returns
// "".
func afterwards(err error) string {
	if effect, ok := strings.CutPrefix(err.Error(), "interrupted: "); ok {
		return "; " + effect
	}
	return ""
}

// ErrInterrupted is the error of a command that was interrupted.
var ErrInterrupted = cli.Exit("interrupted", ExitInterrupted)

// Interrupted returns ErrInterrupted with a description of the work done before the interrupt.
func Interrupted(format string, args ...any) error {
	return cli.Exit("interrupted: "+fmt.Sprintf(format, args...), ExitInterrupted)
}

// Endless is Failure for a command that runs until it is interrupted: that is no error.
func Endless(c *cli.Context, err error) error {
	if err = Failure(c, err); err == ErrInterrupted {
		return nil
	}
	return err
}
