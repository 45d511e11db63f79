package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

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

// openNamespace opens the namespace of the flags. It fails if the namespace does not exist, because a
// mistyped name must not create one. A command can have a flag --create. stop closes the connection.
// Callers pass err to readError, as each error of a command that reads.
func openNamespace(c *cli.Context) (q *queue.Queue, stop func(), err error) {
	return openNamespaceAs(c, queue.Config{Logger: slog.New(slog.DiscardHandler)})
}

// openNamespaceAs opens the namespace of the flags with a config.
func openNamespaceAs(c *cli.Context, config queue.Config) (q *queue.Queue, stop func(), err error) {
	namespace := c.String("namespace")
	if namespace == "" {
		return nil, nil, usage("--namespace must not be empty")
	}
	rdb, err := queue.Connect(c.String("redis"))
	if err != nil {
		return nil, nil, usage("--redis: %v", err)
	}
	defer func() {
		if err != nil {
			rdb.Close()
		}
	}()
	if n, err := rdb.Exists(c.Context, namespace+":{0}").Result(); err == nil && n == 0 && !c.Bool("create") {
		return nil, nil, fmt.Errorf("there is no namespace %q on this Redis: give the namespace with --namespace, and the server with --redis or REDIS_URL", namespace)
	}
	config.Namespace = namespace
	// If Exists fails, Open returns a better error.
	q, err = queue.Open(c.Context, rdb, config)
	if errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown) {
		err = cli.Exit(fmt.Sprintf("%v: give its address with --redis or REDIS_URL", err), exitUnreachable)
	}
	return q, func() { rdb.Close() }, err
}

// quietly returns nil if err says that the reader of the output is gone, as after `| head`.
func quietly(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// readError adds to the error of a command that reads a namespace what to do about it.
func readError(err error) error {
	switch {
	case quietly(err) == nil, errors.Is(err, context.Canceled):
		return nil // interrupted, or the reader is gone
	case errors.Is(err, refusal.ErrInvalid):
		return usage("%v", err)
	case errors.Is(err, refusal.ErrUnavailable), errors.Is(err, refusal.ErrUnknown):
		return cli.Exit(err, exitUnreachable)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: the output is not complete; free some space, or write to another file with -o", err)
	}
	return err
}
