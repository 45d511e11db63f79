package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// namespaceFlags returns the flags that name a namespace and its server.
func namespaceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "redis", EnvVars: []string{"REDIS_URL"}, Value: "redis://localhost:6379/0", Usage: "the URL of Redis; if it has a password, set REDIS_URL instead: other users can read a command line"},
		&cli.StringFlag{Name: "namespace", Value: "curfew", Usage: "the namespace, which must exist"},
	}
}

// connect returns a client of the server of --redis. It does not call the server.
func connect(c *cli.Context) (redis.UniversalClient, error) {
	rdb, err := queue.Connect(c.String("redis"))
	if err != nil {
		return nil, usage("--redis: %v", err)
	}
	return rdb, nil
}

// lastReply is how long an interrupted command waits for the reply to a call.
const lastReply = 200 * time.Millisecond

// cutOff closes the connections of a client soon after the command is interrupted, so that the command does not wait
// for a server that does not answer. stop undoes that.
func cutOff(c *cli.Context, rdb redis.UniversalClient) (stop func() bool) {
	return context.AfterFunc(c.Context, func() {
		time.Sleep(lastReply)
		rdb.Close()
	})
}

// openNamespace opens the namespace of the flags to read it. stop closes the connection.
func openNamespace(c *cli.Context) (q *queue.Queue, stop func(), err error) {
	rdb, err := connect(c)
	if err != nil {
		return nil, nil, err
	}
	cutOff(c, rdb)
	if q, err = openOn(c, rdb, queue.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		rdb.Close()
	}
	return q, func() { rdb.Close() }, err
}

// openOn opens the namespace of the flags. It fails if the namespace does not exist, because a mistyped name must not create
// one, unless the command has a flag --create.
func openOn(c *cli.Context, rdb redis.UniversalClient, config queue.Config) (*queue.Queue, error) {
	config.Namespace = c.String("namespace")
	if config.Namespace == "" {
		return nil, usage("--namespace must not be empty")
	}
	defer cutOff(c, rdb)()
	if n, err := rdb.Exists(c.Context, config.Namespace+":{0}").Result(); err == nil && n == 0 && !c.Bool("create") {
		return nil, noNamespace(c, config.Namespace)
	}
	return queue.Open(c.Context, rdb, config) // if Exists fails, this returns a better error
}

// noNamespace returns the error for the namespace of the flags, which does not exist.
func noNamespace(c *cli.Context, name string) error {
	cure := "give the namespace with --namespace, and the server with --redis or REDIS_URL"
	if hasFlag(c.Command, "create") {
		cure += ", or create it with `curfew namespace create` or --create"
	}
	return cli.Exit(fmt.Sprintf("there is no namespace %q on this Redis: %s", refusal.Clip(name), cure), exitNotFound)
}

// isAway reports whether an error says that Redis cannot be reached.
func isAway(err error) bool {
	return errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown)
}

// quietly returns nil if err says that the reader of the output is gone, as after `| head`.
func quietly(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// failure adds to the error of a command its exit code, and what to do. It is nil if the reader of the output is gone.
func failure(c *cli.Context, err error) error {
	switch {
	case quietly(err) == nil:
		return nil
	case errors.Is(err, context.Canceled), c.Context.Err() != nil && (isAway(err) || errors.Is(err, redis.ErrClosed)):
		return errInterrupted
	case errors.Is(err, refusal.ErrInvalid):
		return usage("%v", err)
	case isAway(err):
		return cli.Exit(fmt.Sprintf("%v: give the server's address with --redis or REDIS_URL", err), exitUnreachable)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: the output is not complete; free some space, or write to another file", err)
	}
	return err
}

var errInterrupted = errors.New("interrupted")

// endless is failure for a command that runs until it is interrupted: that is no error.
func endless(c *cli.Context, err error) error {
	if err = failure(c, err); err == errInterrupted {
		return nil
	}
	return err
}
