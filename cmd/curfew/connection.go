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

// namespaceFlags say which namespace a command is about.
func namespaceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "redis", EnvVars: []string{"REDIS_URL"}, Value: "redis://localhost:6379/0", Usage: "where Redis is; its password is better in the environment than on a command line"},
		&cli.StringFlag{Name: "namespace", Value: "curfew", Usage: "the namespace"},
	}
}

// openNamespace opens the namespace of the flags, which must be there: a mistyped name
// must not make a new one. stop ends the connection.
func openNamespace(c *cli.Context) (q *queue.Queue, stop func(), err error) {
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
	if n, err := rdb.Exists(c.Context, namespace+":{0}").Result(); err == nil && n == 0 {
		return nil, nil, fmt.Errorf("there is no namespace %q on this Redis: name it with --namespace, and the server with --redis or REDIS_URL", namespace)
	}
	// Whatever else is wrong with the server, Open says it better.
	q, err = queue.Open(c.Context, rdb, queue.Config{Namespace: namespace, Logger: slog.New(slog.DiscardHandler)})
	if errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown) {
		err = cli.Exit(fmt.Sprintf("%v: say where it is with --redis or REDIS_URL", err), exitUnreachable)
	}
	return q, func() { rdb.Close() }, readError(err)
}

// quietly drops the error of an output that nobody reads any more, as behind `| head`.
func quietly(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// readError is the error of a command that reads a namespace, with what to try.
func readError(err error) error {
	switch {
	case quietly(err) == nil, errors.Is(err, context.Canceled):
		return nil // somebody ended it
	case errors.Is(err, refusal.ErrInvalid):
		return usage("%v", err)
	case errors.Is(err, refusal.ErrUnavailable), errors.Is(err, refusal.ErrUnknown):
		return cli.Exit(err, exitUnreachable)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: what was written is not whole; make room, or write elsewhere with -o", err)
	}
	return err
}
