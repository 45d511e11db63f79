package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/internal/operate"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// serverFlags returns the flags of commands about a whole server.
func serverFlags(more ...cli.Flag) []cli.Flag {
	return append(namespaceFlags()[:1], more...) // --redis
}

// formatFlag returns the flag for the format of the output.
func formatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "text, or json: one line for each object"}
}

// checkFormat returns an error if the output has no such format.
func checkFormat(c *cli.Context) error {
	if o := c.String("output"); o != "text" && o != "json" {
		return usage("--output %q must be text or json", o)
	}
	return nil
}

// inJSON reports whether the output is JSON.
func inJSON(c *cli.Context) bool { return c.String("output") == "json" }

// printLine writes a line of JSON.
func printLine(c *cli.Context, value any) error { return writeLine(c.App.Writer, value) }

func writeLine(w io.Writer, value any) error {
	_, err := w.Write(append(jsonline.Encode(value), '\n'))
	return err
}

// connectServer connects to the server of the flags. stop closes the connection.
func connectServer(c *cli.Context) (s *operate.Server, stop func(), err error) {
	rdb, err := connect(c)
	if err != nil {
		return nil, nil, err
	}
	s, err = operate.Connect(c.Context, rdb)
	if err != nil {
		rdb.Close()
		return nil, nil, serverError(err)
	}
	return s, func() { rdb.Close() }, nil
}

func connect(c *cli.Context) (redis.UniversalClient, error) {
	rdb, err := queue.Connect(c.String("redis"))
	if err != nil {
		return nil, usage("--redis: %v", err)
	}
	return rdb, nil
}

// serverError adds to an error the exit code, and what to do. It is nil if the reader of the output is gone.
func serverError(err error) error {
	switch {
	case quietly(err) == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, refusal.ErrInvalid):
		return usage("%v", err)
	case errors.Is(err, refusal.ErrUnavailable), errors.Is(err, refusal.ErrUnknown):
		return cli.Exit(fmt.Sprintf("%v: give the server's address with --redis or REDIS_URL", err), exitUnreachable)
	}
	return err
}

// progress returns a function that says on stderr how far a scan is, every two seconds.
func progress(c *cli.Context, what string) func(operate.Looked) {
	told := time.Now()
	return func(l operate.Looked) {
		if time.Since(told) < 2*time.Second {
			return
		}
		told = time.Now()
		fmt.Fprintf(c.App.ErrWriter, "%s: looked at about %s of %s keys\n", what, grouped(l.Keys), grouped(l.Of))
	}
}

// grouped returns a number with its digits in groups of three.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plural returns a number and a noun: 1 key, 2,000 keys.
func plural(n int64, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + several
}

// readLine returns the next line of the input, or the cause when the context ends. More than a line may be read.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answered := make(chan answer, 1)
	go func() { // a read of a terminal cannot be interrupted
		var line []byte
		b := make([]byte, 1)
		for len(line) < 1000 {
			n, err := in.Read(b)
			if n == 1 && b[0] == '\n' {
				break
			}
			line = append(line, b[:n]...)
			if err != nil {
				answered <- answer{string(line), err}
				return
			}
		}
		answered <- answer{string(line), nil}
	}()
	select {
	case a := <-answered:
		return a.line, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
