package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/internal/operate"
)

// serverFlags returns the flags of commands about a whole server.
func serverFlags(more ...cli.Flag) []cli.Flag {
	return append(namespaceFlags()[:1], more...) // --redis
}

// formatFlag returns the flag for the format of the output.
func formatFlag() cli.Flag {
	f := choiceFlag("output", "text", "text, or json: one line for each object", "text", "json")
	f.Aliases = []string{"o"}
	return f
}

// inJSON reports whether the output is JSON.
func inJSON(c *cli.Context) bool { return c.String("output") == "json" }

// printLine writes a line of JSON.
func printLine(c *cli.Context, value any) error { return writeLine(c.App.Writer, value) }

func writeLine(w io.Writer, value any) error {
	_, err := w.Write(append(jsonline.Encode(value), '\n'))
	return err
}

// onServer returns the action of a command about a whole server: it checks the arguments, connects and calls do.
func onServer(t takes, do func(c *cli.Context, s *operate.Server, words []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		words, err := arguments(c, t)
		if err != nil {
			return err
		}
		s, stop, err := connectServer(c)
		if err != nil {
			return err
		}
		defer stop()
		return failure(c, do(c, s, words))
	}
}

// connectServer connects to the server of the flags. stop closes the connection.
func connectServer(c *cli.Context) (s *operate.Server, stop func(), err error) {
	rdb, err := connect(c)
	if err != nil {
		return nil, nil, err
	}
	cutOff(c, rdb)
	s, err = operate.Connect(c.Context, rdb)
	if err != nil {
		rdb.Close()
		return nil, nil, failure(c, err)
	}
	return s, func() { rdb.Close() }, nil
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
