package command

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

// maxDelay bounds what a command or server can ask for.
const maxDelay = 365 * 24 * time.Hour

// retryAfterLine reads a line such as "retry-after: 90s". A number without a unit is in seconds, as in
// HTTP.
func retryAfterLine(line string) (time.Duration, bool) {
	name, value, found := strings.Cut(line, ":")
	if !found || !strings.EqualFold(strings.TrimSpace(name), "retry-after") {
		return 0, false
	}
	value = strings.TrimSpace(value)
	if d, ok := seconds(value); ok {
		return d, true
	}
	d, err := duration.Parse(value)
	return min(d, maxDelay), err == nil && value != ""
}

// retryAfterHeader reads the HTTP header Retry-After: seconds, or a date.
func retryAfterHeader(value string, now time.Time) (time.Duration, bool) {
	if d, ok := seconds(strings.TrimSpace(value)); ok {
		return d, true
	}
	at, err := http.ParseTime(value)
	return min(max(at.Sub(now), 0), maxDelay), err == nil
}

func seconds(value string) (time.Duration, bool) {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		return 0, false
	}
	return time.Duration(min(n, uint64(maxDelay/time.Second))) * time.Second, true
}
