package command

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/worker"
)

const (
	prefix       = "CURFEW_"
	headerPrefix = "CURFEW_HEADER_"
	headersName  = "CURFEW_HEADERS"
)

// without returns the environment of this process without the variables whose names are hidden.
func without(hidden func(name string) bool) []string {
	return slices.DeleteFunc(os.Environ(), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return hidden(name)
	})
}

// ownEnvironment returns the environment of this process without some hidden variables, and without those that a task sets: one
// that the task does not set must not come from elsewhere.
func ownEnvironment(hidden []string) []string {
	ours := map[string]bool{headersName: true}
	for _, name := range hidden {
		ours[name] = true
	}
	for _, name := range everyFact {
		ours[prefix+variable(name)] = true
	}
	for _, name := range traceHeaders {
		ours[variable(name)] = true
	}
	return without(func(name string) bool { return ours[name] || strings.HasPrefix(name, headerPrefix) })
}

// environment returns what a command is told about its task, as variables. A header of the task
// becomes CURFEW_HEADER_NAME, so that a producer cannot set a variable such as PATH. Headers whose
// names differ in nothing but what a variable cannot hold get one variable, the last by name. CURFEW_HEADERS has
// all headers as they are. If the attempt is traced, TRACEPARENT is its span, and not the header of the task.
func environment(ctx context.Context) []string {
	var lines []string
	for _, f := range facts(ctx) {
		lines = append(lines, prefix+variable(f.name)+"="+f.value)
	}
	headers, traced := worker.Info(ctx).Headers, spans.Carried(ctx)
	for _, name := range slices.Sorted(maps.Keys(traced)) {
		lines = append(lines, variable(name)+"="+traced[name])
	}
	if len(headers) == 0 {
		return lines
	}
	lines = append(lines, headersName+"="+headersAsJSON(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		if strings.ContainsRune(value, 0) {
			continue // no variable can hold it
		}
		lines = append(lines, headerPrefix+variable(name)+"="+value)
		if len(traced) == 0 && slices.Contains(traceHeaders, strings.ToLower(name)) {
			lines = append(lines, variable(name)+"="+value)
		}
	}
	return lines
}

// variable returns the name in the form of a variable: TASK_ID for Task-Id.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}
