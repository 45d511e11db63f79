package app

import (
	"context"
	"log/slog"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/queue"
)

// Logger returns the logger of a command that does one thing: for stderr, which tasks its calls have timed out and which agents have
// resumed; with --verbose everything, with --quiet nothing.
func Logger(c *cli.Context) *slog.Logger {
	switch {
	case c.Bool("verbose"):
		return LoggerAt(c, slog.LevelDebug)
	case c.Bool("quiet"):
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(timeouts{LoggerAt(c, slog.LevelInfo).Handler()})
}

// timeouts is a handler that drops all lines but those about timeouts.
type timeouts struct{ slog.Handler }

// Handle implements slog.Handler.
func (h timeouts) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != "Task timed out" && r.Message != "Resuming agent after task timeout" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h timeouts) WithAttrs(attrs []slog.Attr) slog.Handler {
	return timeouts{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h timeouts) WithGroup(name string) slog.Handler { return timeouts{h.Handler.WithGroup(name)} }

// LoggerAt returns a logger for stderr, in the format of --log-format.
func LoggerAt(c *cli.Context, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if c.String("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(c.App.ErrWriter, options))
	}
	return slog.New(slog.NewTextHandler(c.App.ErrWriter, options))
}

// ProgramLogger returns the logger of a command that runs until it is interrupted: from INFO on, with --verbose from DEBUG on,
// with --quiet from WARN on.
func ProgramLogger(c *cli.Context) *slog.Logger {
	switch {
	case c.Bool("verbose"):
		return LoggerAt(c, slog.LevelDebug)
	case c.Bool("quiet"):
		return LoggerAt(c, slog.LevelWarn)
	}
	return LoggerAt(c, slog.LevelInfo)
}

// LogRedis makes the Redis client log to the logger of a command. It returns errors too, so without --verbose they are printed once.
func LogRedis(c *cli.Context) {
	if c.Bool("verbose") {
		queue.LogClient(Logger(c))
	}
}
