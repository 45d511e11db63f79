package queue

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

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

// LogClient makes go-redis write its own lines to a logger. Without it, they go to the logger of the first [Open], and to stderr before
// that. Their level is DEBUG, since calls also return these errors and workers and reapers log them. The text of go-redis is the message,
// and client is go-redis. The setting is one for the whole process. A program that calls redis.SetLogger has its own, and Open does
// not change it. LogClient panics if the logger is nil.
func LogClient(logger *slog.Logger) {
	if logger == nil {
		panic("queue: LogClient needs a logger")
	}
	redis.SetLogger(clientLog{logger})
}

// init sets the logger of go-redis before main, since go-redis does not say whether a program has set its own: one that it sets later stays.
func init() { redis.SetLogger(untilOpen{}) }

// firstLogger is the logger of the first Open.
var firstLogger atomic.Pointer[slog.Logger]

// untilOpen is a logger of go-redis. Until the first Open it writes as go-redis does by itself.
type untilOpen struct{}

var stderr = log.New(os.Stderr, "redis: ", log.LstdFlags|log.Lshortfile)

// Printf logs a line.
func (untilOpen) Printf(ctx context.Context, format string, args ...any) {
	if logger := firstLogger.Load(); logger != nil {
		clientLog{logger}.Printf(ctx, format, args...)
		return
	}
	stderr.Output(3, fmt.Sprintf(format, args...)) // 3: the caller of the logger of go-redis, which calls this one
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
