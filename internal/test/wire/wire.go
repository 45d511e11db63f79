// Package wire formats the arguments of calls and parses their answers, for tests that run the Lua
// directly, as a program in another language does.
package wire

import "fmt"

// Tasks returns the arguments that pass tasks to a call. Each task is given as name, value, …, with
// its id and payload among them. Each task gets a shape of its own, as a simple producer in another
// language would send it.
func Tasks(tasks ...[]any) []any {
	args, rows := []any{len(tasks)}, []any{}
	for n, task := range tasks {
		fields, id, payload := []any{}, any(""), any("")
		for i := 0; i+1 < len(task); i += 2 {
			switch task[i] {
			case "id":
				id = task[i+1]
			case "payload":
				payload = task[i+1]
			default:
				fields = append(fields, task[i], task[i+1])
			}
		}
		args = append(append(args, len(fields)/2), fields...)
		rows = append(rows, n+1, id, payload)
	}
	return append(args, rows...)
}

// Answers returns the answer of enqueue to each task: a word, and what belongs to it. The word of an
// accepted task is OK, followed by its id and deadline.
func Answers(tasks [][]any, reply any) [][]any {
	var rows [][]any
	for n, answer := range reply.([]any) {
		if deadline, ok := answer.(string); ok {
			id := ""
			for i := 0; i+1 < len(tasks[n]); i += 2 {
				if tasks[n][i] == "id" {
					id = fmt.Sprint(tasks[n][i+1])
				}
			}
			rows = append(rows, []any{"OK", id, deadline})
			continue
		}
		rows = append(rows, answer.([]any))
	}
	return rows
}
