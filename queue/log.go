package queue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

// LogTo returns a context for calls that log to another logger than Config.Logger which tasks timed out and which agents
// resumed. Workers and reapers use it for the loggers of their Configs. It panics if an argument is nil.
func LogTo(ctx context.Context, logger *slog.Logger) context.Context {
	if engine.IsNil(ctx) || logger == nil {
		panic("queue: LogTo needs a context and a logger")
	}
	return engine.LogTo(ctx, logger)
}

// LogClient makes go-redis write its own lines to a logger, and not to stderr. Their level is DEBUG, since calls also
// return these errors and workers and reapers log them. The text of go-redis is the message, and client is go-redis.
// The setting is one for the whole process, and it is not safe to change while clients are in use. LogClient panics
// if the logger is nil.
func LogClient(logger *slog.Logger) {
	if logger == nil {
		panic("queue: LogClient needs a logger")
	}
	redis.SetLogger(clientLog{logger})
}

// maxClientLine is the most bytes of a line of go-redis. Its lines can quote replies.
const maxClientLine = 1024

// clientLog is a logger of go-redis.
type clientLog struct{ logger *slog.Logger }

// Printf logs a line.
func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.logger.Enabled(ctx, slog.LevelDebug) {
		text := fmt.Sprintf(format, args...)
		if len(text) > maxClientLine {
			text = strings.ToValidUTF8(text[:maxClientLine], "")
		}
		l.logger.DebugContext(ctx, text, "client", "go-redis")
	}
}
