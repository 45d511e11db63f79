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

// LogTo returns a context for calls whose log lines go to logger, not to Config.Logger. The lines
// report the tasks that timed out and the agents that resumed. Workers and reapers use it for the
// loggers of their Configs. LogTo panics if an argument is nil.
func LogTo(ctx context.Context, logger *slog.Logger) context.Context {
	if engine.IsNil(ctx) || logger == nil {
		panic("queue: LogTo needs a context and a logger")
	}
	return engine.LogTo(ctx, logger)
}

// LogClient makes go-redis write its own lines to a logger. Without it, they go to the logger of the
// first [Open], and before that to stderr. Their level is DEBUG, because calls also return these
// errors, and workers and reapers log them. The message is go-redis' text, and the attribute client
// is go-redis.
//
// The setting is global to the process. Open does not change the logger of a program that calls
// redis.SetLogger itself. LogClient panics if the logger is nil.
func LogClient(logger *slog.Logger) {
	if logger == nil {
		panic("queue: LogClient needs a logger")
	}
	redis.SetLogger(clientLog{logger})
}

// init sets the logger of go-redis before main. Open could not do it later, because go-redis does
// not reveal whether the program has set its own logger.
func init() { redis.SetLogger(untilOpen{}) }

// firstLogger is the logger of the first Open.
var firstLogger atomic.Pointer[slog.Logger]

// untilOpen is the logger of go-redis until a program sets another. Before the first Open it writes
// to stderr, in go-redis' own format.
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
