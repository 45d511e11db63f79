package app

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/operate"
)

// ServerFlags returns the flags of commands about a whole server.
func ServerFlags(more ...cli.Flag) []cli.Flag {
	return append(NamespaceFlags()[:1], more...) // --redis
}

// FormatFlag returns the flag for the format of the output.
func FormatFlag() cli.Flag {
	f := ChoiceFlag("output", "text", "text, or json or jsonl: one line for each object", "text", "json", "jsonl")
	f.Aliases = []string{"o"}
	return f
}

// InJSON reports whether the output is JSON.
func InJSON(c *cli.Context) bool { return strings.HasPrefix(c.String("output"), "json") }

// PrintLine writes a line of JSON.
func PrintLine(c *cli.Context, value any) error { return WriteLine(c.App.Writer, value) }

// WriteLine writes a line of JSON.
func WriteLine(w io.Writer, value any) error {
	_, err := w.Write(append(jsonx.Encode(value), '\n'))
	return err
}

// WriteText writes a text to the output.
func WriteText(c *cli.Context, text string) error {
	_, err := io.WriteString(c.App.Writer, text)
	return err
}

// GoOn makes a command that changes many things go on when nobody reads its output any more, as after `| head`.
func GoOn(c *cli.Context) { c.App.Writer = &unread{out: c.App.Writer} }

// unread is an output whose reader may go.
type unread struct {
	out  io.Writer
	gone bool
}

func (u *unread) Write(p []byte) (int, error) {
	if u.gone {
		return len(p), nil
	}
	n, err := u.out.Write(p)
	if err != nil && Quietly(err) == nil {
		u.gone = true
		return len(p), nil
	}
	return n, err
}

// OnServer returns the action of a command about a whole server: it checks the arguments, connects and calls do.
func OnServer(t Args, do func(c *cli.Context, s *operate.Server, words []string) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		words, err := Arguments(c, t)
		if err != nil {
			return err
		}
		s, stop, err := ConnectServer(c)
		if err != nil {
			return err
		}
		defer stop()
		return Failure(c, do(c, s, words))
	}
}

// ConnectServer connects to the server of the flags. stop closes the connection.
func ConnectServer(c *cli.Context) (s *operate.Server, stop func(), err error) {
	rdb, err := Connect(c)
	if err != nil {
		return nil, nil, err
	}
	CutOff(c, rdb)
	s, err = operate.Connect(c.Context, rdb)
	if err != nil {
		rdb.Close()
		return nil, nil, Failure(c, err)
	}
	return s, func() { rdb.Close() }, nil
}

// Progress returns a function that prints the progress of a scan on stderr, every two seconds.
func Progress(c *cli.Context, what string) func(operate.Looked) {
	printed := time.Now()
	return func(l operate.Looked) {
		if time.Since(printed) < 2*time.Second {
			return
		}
		printed = time.Now()
		if c.Bool("no-progress") {
			return
		}
		Note(c, "%s: looked at about %s of %s keys", what, Grouped(l.Keys), Grouped(l.Of))
	}
}

// Grouped returns a number with its digits in groups of three.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Plural returns a number and a noun: 1 key, 2,000 keys.
func Plural(n int64, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(n) + " " + several
}

// ReadLine returns the next line of the input, or the cause when the context ends. More than a line may be read.
func ReadLine(ctx context.Context, in io.Reader) (string, error) {
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

// PlainText quotes s if it has characters that could control a terminal. Unlike PlainWord, it does not quote a text because of a space or =.
func PlainText(s string) string {
	if quoted := strconv.Quote(s); strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) != s {
		return quoted
	}
	return s
}

// PlainWord quotes s if it has characters that could control a terminal, or a space or = sign.
// Anybody can write such text into an event.
func PlainWord(s string) string {
	if quoted := strconv.Quote(s); s == "" || strings.ContainsAny(s, " =") || quoted[1:len(quoted)-1] != s {
		return quoted
	}
	return s
}
