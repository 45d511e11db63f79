package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/internal/jsonx"
)

// RawFlag returns the flag for a body that is not JSON: see Body.
func RawFlag() cli.Flag {
	return &cli.BoolFlag{Name: "raw", Usage: "take the bytes as they are; otherwise they must be JSON"}
}

// maxBody is how many bytes of a file are read as a payload or result. The limit of a namespace is less.
const maxBody = 64 << 20

// Body returns the payload or result that an argument stands for: JSON, - for stdin, or @FILE.
// Without the flag --raw it must be JSON, without the newline at the end of a file.
func Body(c *cli.Context, what, word string) ([]byte, error) {
	var body []byte
	var err error
	switch name, isFile := strings.CutPrefix(word, "@"); {
	case word == "@":
		return nil, Usage("%s: @ needs the name of a file: write @FILE", what)
	case word == "-":
		body, err = ReadFile(c, what, "-")
	case isFile:
		body, err = ReadFile(c, what, name)
	default:
		body = []byte(word)
	}
	switch {
	case err != nil:
		return nil, err
	case c.Bool("raw"):
		return body, nil
	}
	v, err := jsonx.Parse(body)
	if err != nil {
		return nil, Usage("%s is not JSON: %v; give --raw for other bytes", what, err)
	}
	return v.Text(), nil
}

// ReadFile returns the bytes of a file, or those of stdin if its name is -.
func ReadFile(c *cli.Context, what, name string) (body []byte, err error) {
	if name == "-" {
		body, err = readAll(c.Context, c.App.Reader)
	} else {
		var file *os.File
		if file, err = os.Open(name); err == nil {
			body, err = readAll(c.Context, file)
			file.Close()
		}
	}
	switch {
	case c.Context.Err() != nil:
		return nil, ErrInterrupted
	case err != nil:
		return nil, Usage("%s: %v", what, err)
	case len(body) > maxBody:
		return nil, Usage("%s has more than 64 MiB: store it elsewhere and send a reference", what)
	}
	return body, nil
}

// readAll reads an input to its end, or until the context ends.
func readAll(ctx context.Context, in io.Reader) ([]byte, error) {
	type answer struct {
		body []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() { // a read of a terminal cannot be interrupted
		body, err := io.ReadAll(io.LimitReader(in, maxBody+1))
		answered <- answer{body, err}
	}()
	select {
	case a := <-answered:
		return a.body, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Instant returns the instant that a flag means: 2026-11-22T10:00:00Z, or ms since 1970. It is zero if the flag is not given.
func Instant(c *cli.Context, name string) (time.Time, error) {
	word := c.String(name)
	if !c.IsSet(name) {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, word); err == nil {
		return at, nil
	}
	ms, err := strconv.ParseInt(word, 10, 64)
	if err != nil || len(word) < 10 {
		return time.Time{}, UsageOf(c, "%s %q must be an instant, such as 2026-11-22T10:00:00Z, or ms since 1970", Dashed(name), word)
	}
	return time.UnixMilli(ms), nil
}

// Counter shows how far a long command is, on a terminal only.
type Counter struct {
	out   io.Writer
	shown time.Time
	wrote bool
}

// NewCounter returns a counter on stderr.
func NewCounter(c *cli.Context) *Counter {
	if !Redraws(c.App.ErrWriter) || c.Bool("no-progress") || c.Bool("quiet") {
		return &Counter{}
	}
	return &Counter{out: c.App.ErrWriter}
}

// Show replaces the line that is shown, ten times a second at most.
func (p *Counter) Show(format string, args ...any) {
	if p.out != nil && time.Since(p.shown) > 100*time.Millisecond {
		p.shown, p.wrote = time.Now(), true
		fmt.Fprintf(p.out, "\r\x1b[K"+format, args...)
	}
}

// Clear removes the line.
func (p *Counter) Clear() {
	if p.wrote {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.wrote = false
	}
}
