package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/curfew-dev/curfew/internal/clip"
)

// logChange logs a request that changes something, with the name of the client, and what the request is about. The message says whether the
// change was made, was refused, or is unknown.
func (c *call) logChange(status int, answer any, start time.Time) {
	log := c.server.log.With("who", c.who.Name, "method", c.route.Method, "route", c.route.Path, "namespace", c.request.PathValue("namespace"),
		"task_id", c.task, "status", status, "remote", c.request.RemoteAddr, "ms", time.Since(start).Milliseconds())
	for _, about := range []struct{ key, value string }{
		{"queue", cmp.Or(c.path("queue"), c.queue)}, {"kind", cmp.Or(c.path("kind"), c.kind)}, {"worker", c.path("worker")}, {"query", c.request.URL.RawQuery},
	} {
		if about.value != "" {
			log = log.With(about.key, clip.Text(about.value, mostLogged))
		}
	}
	if many, is := answer.(interface{ tasks() int }); is {
		log = log.With("tasks", many.tasks())
	}
	switch {
	case status < http.StatusBadRequest && c.renews:
		log.Debug("HTTP request")
	case status < http.StatusBadRequest:
		log.Info("HTTP change")
	case status == http.StatusInternalServerError || status == http.StatusGatewayTimeout:
		log.Info("HTTP change unknown") // it may have had its effect
	default:
		log.Info("HTTP change refused")
	}
}

// mostLogged is how many bytes of a value are logged. A name that is valid has fewer.
const mostLogged = 256

// How many tasks an answer is about, for the log.

func (a enqueuedLines) tasks() int { return len(a.Tasks) }

func (a childLines) tasks() int { return len(a.Results) }

func (a resultLines) tasks() int { return len(a.Results) }

func (a outcomes) tasks() int { return len(a.Tasks) }

func (a drained) tasks() int { return int(a.Cancelled) }

func (a *fetched) tasks() int { return len(a.Claims) }

func (a settledTasks) tasks() int { return len(a.Outcomes) }
