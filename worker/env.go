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

// TaskTimeoutFromEnv reads WORKER_TASK_TIMEOUT, a duration as duration.Parse reads
// it: 90s, 1h30m, 2d12h. Unset, empty and 0s mean no limit. Space around the value is
// ignored, since files of environment variables may have it. Run calls it if
// Config.TaskTimeout is 0.
func TaskTimeoutFromEnv() (time.Duration, error) {
	d, err := duration.Parse(strings.TrimSpace(os.Getenv(TaskTimeoutVariable)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", TaskTimeoutVariable, err)
	}
	return d, nil
}
