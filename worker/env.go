package worker

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// TaskTimeoutVariable is the environment's word on Config.TaskTimeout.
const TaskTimeoutVariable = "WORKER_TASK_TIMEOUT"

// TaskTimeoutFromEnv reads WORKER_TASK_TIMEOUT: a duration such as 90s, 1h30m or
// 2d12h. Unset, empty and 0s mean no limit. Run asks it where Config.TaskTimeout is 0.
func TaskTimeoutFromEnv() (time.Duration, error) {
	s := strings.TrimSpace(os.Getenv(TaskTimeoutVariable))
	if s == "" {
		return 0, nil
	}
	d, err := parseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is %q: it must be a duration that is not negative, such as 90s, 1h30m or 2d", TaskTimeoutVariable, s)
	}
	return d, nil
}

// parseDuration is time.ParseDuration that also knows days, which come first.
func parseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, fmt.Errorf("%q is no number of days", days)
	}
	var d time.Duration
	if rest != "" {
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, fmt.Errorf("%q after the days is no duration", rest)
		}
	}
	if most := float64(math.MaxInt64-d) / float64(24*time.Hour); n >= most {
		return 0, fmt.Errorf("%v days are more than a duration holds", n)
	}
	return d + time.Duration(n*float64(24*time.Hour)), nil
}
