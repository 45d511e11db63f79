package app

import "github.com/curfew-dev/curfew/inspect"

// Unserved returns the reason why no live worker takes tasks of a queue, "" if a worker does.
func Unserved(crew inspect.Crew, queue string) string {
	unserved, nearest, leaving := crew.Unserved(queue)
	switch {
	case !unserved:
		return ""
	case leaving:
		return "the workers that serve queue " + PlainWord(queue) + " are draining, and take no more tasks"
	}
	return "no live worker serves queue " + PlainWord(queue) + maybe(nearest)
}

// Unhandled returns the reason why no live worker takes tasks of a kind from a queue that workers
// serve, "" if a worker does.
func Unhandled(crew inspect.Crew, queue, kind string) string {
	unhandled, nearest := crew.Unhandled(queue, kind)
	if !unhandled {
		return ""
	}
	return "no live worker that serves queue " + PlainWord(queue) + " handles the kind " + PlainWord(kind) + maybe(nearest)
}

// maybe returns a question about the name that is nearest to one that nobody serves, "" if none is near.
func maybe(nearest string) string {
	if nearest == "" {
		return ""
	}
	return " (did you mean " + PlainWord(nearest) + "?)"
}
