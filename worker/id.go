package worker

import (
	"os"

	"github.com/curfew-dev/curfew/internal/names"
)

// newID returns a new id of a worker: the name, if it has one, then host, process and a random part.
func newID(name string) string {
	host, _ := os.Hostname()
	return names.OfProcess(name, host)
}
