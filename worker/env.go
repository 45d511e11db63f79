package worker

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

// TaskTimeoutVariable is the environment variable that sets Config.TaskTimeout.
const TaskTimeoutVariable = "WORKER_TASK_TIMEOUT"

// TaskTimeoutFromEnv returns the value of WORKER_TASK_TIMEOUT, in the form that duration.Parse
// reads: 90s, 1h30m, 2d12h. Unset, empty and 0s mean no limit, 0. Space around the value is ignored.
// Run calls TaskTimeoutFromEnv if Config.TaskTimeout is 0. The error wraps refusal.ErrInvalid and
// names the variable and the value.
func TaskTimeoutFromEnv() (time.Duration, error) {
	d, err := duration.Parse(strings.TrimSpace(os.Getenv(TaskTimeoutVariable)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", TaskTimeoutVariable, err)
	}
	return d, nil
}
