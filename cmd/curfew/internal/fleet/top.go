package fleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/queue"
)

func Top() *cli.Command {
	return &cli.Command{
		Name:  "top",
		Usage: "watch queues, the next deadlines, workers, and how late timeouts are",
		Description: `Keys: q quits, p pauses and resumes the refresh, s sorts the queues by another column, up and down (or k and j) scroll them.
A refresh waits at least nine times as long as the last one took, so that many queues do not keep Redis busy. "lag" is how late
the newest timeouts were written; a namespace with events none has no lag. When the output is no terminal, or a dumb one (TERM=dumb), it
prints one view.

    curfew top --once
    curfew top --once --namespace curfew`,
		Flags: append(app.NamespaceFlags(),
			app.DurationFlag("every", 500*time.Millisecond, "time between two views, 100ms to 1h"),
			&cli.BoolFlag{Name: "once", Usage: "print one view and end"}),
		Action: func(c *cli.Context) error {
			if every := app.DurationOf(c, "every"); every < 100*time.Millisecond || every > time.Hour {
				return app.UsageOf(c, "--every %v must be from 100ms to 1h", duration.Duration(every))
			}
			return app.OnNamespaceAs(queue.AccessRead, app.Nothing, func(c *cli.Context, q *queue.Queue, _ []string) error {
				out, isFile := c.App.Writer.(*os.File)
				in, canType := c.App.Reader.(*os.File)
				if !c.Bool("once") && isFile && canType && app.Redraws(out) {
					if _, _, ok := terminalSize(out); ok {
						return app.Endless(c, live(c, q, in, out))
					}
				}
				return once(c, q)
			})(c)
		},
	}
}

// once prints one view.
func once(c *cli.Context, q *queue.Queue) error {
	v, err := readView(c.Context, q, c.String("namespace"))
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.App.Writer, strings.Join(draw(v, look{width: 120, height: 50}), "\n")+"\n")
	return err
}

// The alternate screen keeps the previous content of the terminal.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// live shows views until q is typed or the context ends. It leaves the terminal as it was, also after an error.
func live(c *cli.Context, q *queue.Queue, in, out *os.File) error {
	v, err := readView(c.Context, q, c.String("namespace")) // an error here needs no screen
	if err != nil {
		return err
	}
	restore, err := readKeys(in)
	if err != nil {
		return fmt.Errorf("the input is no terminal: %w; use --once", err)
	}
	defer restore()
	defer io.WriteString(out, leaveScreen)
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(c.Context)
	defer stop()
	s := screen{out: out, look: look{every: duration.Duration(app.DurationOf(c, "every")).String()}}
	return s.run(ctx, v, keys(ctx, in), func(ctx context.Context) (view, error) { return readView(ctx, q, c.String("namespace")) }, app.DurationOf(c, "every"))
}

// keys sends the typed keys, until the context ends or the terminal is gone.
func keys(ctx context.Context, in io.Reader) <-chan string {
	typed := make(chan string)
	go func() {
		defer close(typed)
		b := make([]byte, 64)
		for ctx.Err() == nil {
			n, err := in.Read(b)
			if n == 0 {
				if err != nil && err != io.EOF {
					return
				}
				continue // nothing was typed
			}
			select {
			case typed <- string(b[:n]):
			case <-ctx.Done():
			}
		}
	}()
	return typed
}

// screen draws views on a terminal.
type screen struct {
	out  *os.File
	look look
	v    view
}

// run draws the first view, and then each new view.
func (s *screen) run(ctx context.Context, first view, typed <-chan string, read func(context.Context) (view, error), every time.Duration) error {
	type answer struct {
		view
		err error
	}
	answers := make(chan answer, 1)
	s.v = first
	next := time.NewTimer(pauseAfter(first.took, every))
	defer next.Stop()
	resize := time.NewTicker(100 * time.Millisecond)
	defer resize.Stop()
	for changed := true; ; {
		if changed {
			if err := s.draw(); err != nil {
				return err
			}
		}
		changed = true
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-resize.C:
			width, height, _ := terminalSize(s.out)
			changed = width != s.look.width || height != s.look.height
		case text, open := <-typed:
			if !open || s.key(text) {
				return nil
			}
		case <-next.C:
			if changed = false; s.look.paused {
				next.Reset(every)
				break
			}
			go func() {
				v, err := read(ctx)
				answers <- answer{v, err}
			}()
		case a := <-answers:
			if a.err != nil {
				a.view = s.v // the old one, and why it is old
				a.view.err = a.err
			}
			s.v = a.view
			next.Reset(pauseAfter(s.v.took, every))
		}
	}
}

// pauseAfter returns how long to wait after a view that took so long, so that reading takes a tenth of the time at most.
func pauseAfter(took, every time.Duration) time.Duration { return max(every, 9*took) }

func (s *screen) draw() error {
	s.look.width, s.look.height, _ = terminalSize(s.out)
	_, err := io.WriteString(s.out, text(draw(s.v, s.look)))
	return err
}

// key handles a typed key, and reports whether it quits.
func (s *screen) key(typed string) (quit bool) {
	switch {
	case typed == "\x1b[A" || typed == "k":
		s.look.skip = max(s.look.skip-1, 0)
	case typed == "\x1b[B" || typed == "j":
		s.look.skip = min(s.look.skip+1, max(len(s.v.queues)-1, 0))
	case strings.HasPrefix(typed, "\x1b"):
	case strings.Contains(typed, "q"), strings.Contains(typed, "\x03"):
		return true
	case strings.Contains(typed, "p"):
		s.look.paused = !s.look.paused
	case strings.Contains(typed, "s"):
		s.look.order, s.look.skip = (s.look.order+1)%len(orders), 0
	}
	return false
}
