package httpapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/lines"
)

// route is a row of the route table.
type route struct {
	ID      string // for OpenAPI, such as enqueueTask
	Method  string
	Path    string // below /api/v1/{namespace}/
	Role    Role
	Summary string // a sentence
	Query   []param
	Body    any  // a value of the type of the body; nil: it has none
	Bare    bool // the body may be left out
	Answer  any  // a value of the type of the answer
	Status  []int
	Errors  []int // in addition to the statuses of every route, and of every route with a body
	// Poll: the request can wait, for as long as its parameter wait.
	Poll bool
	// Stream: the answer is a stream of events if the client accepts one. Serve writes it.
	Stream bool
	// Serve performs the request, and returns the body of the answer.
	Serve func(c *call) (any, error)
}

// kind is the type of a parameter.
type kind string

const (
	text    kind = "text"
	number  kind = "number"  // a whole number from Least to Most
	span    kind = "span"    // a duration, such as 30s
	instant kind = "instant" // ms since 1970, RFC 3339, or a span that counts back from now
	flag    kind = "flag"    // true or false
	list    kind = "list"    // words with commas between them, or given several times
)

// param is a parameter of the query.
type param struct {
	Name    string
	Type    kind
	Doc     string
	Default string
	Least   int64
	Most    int64
	Words   []string // of a list or text: the words that are allowed
}

// table returns all routes.
func table() []route {
	return slices.Concat(taskRoutes(), listRoutes(), changeRoutes(), workRoutes(), agentRoutes(), eventRoutes(), fleetRoutes(), controlRoutes(), flowRoutes())
}

// every lists the statuses that each route can answer with, in addition to its own.
var every = []int{400, 401, 403, 404, 405, 429, 500, 503, 504}

// failures are the statuses of errors that a route can answer with.
func (r *route) failures() []int {
	statuses := slices.Concat(every, r.Errors)
	if r.Body != nil {
		statuses = append(statuses, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return statuses
}

var hidePayloads = param{Name: "hide_payloads", Type: flag, Doc: "leave out what users have put into tasks"}

func wait() param {
	return param{Name: "wait", Type: span, Doc: "wait so long, such as 30s, for the answer"}
}

// the types of bodies and answers that have no other place
type (
	// tasksBody is the body of enqueueTasks.
	tasksBody struct {
		Tasks []task `json:"tasks"`
	}
	// reasonBody is the body of a change that can have a reason.
	reasonBody struct {
		Reason string `json:"reason,omitempty"`
	}
	// enqueuedLine is a task of a list that was enqueued, or why it was not.
	enqueuedLine struct {
		lines.Enqueued
		Refused *refusedLine `json:"refusal,omitempty"`
	}
	refusedLine struct {
		Word     string `json:"word"`
		Sentence string `json:"sentence"`
	}
	enqueuedLines struct {
		Tasks []enqueuedLine `json:"tasks"`
	}
)

const longestSpan = 100 * 365 * 24 * time.Hour
