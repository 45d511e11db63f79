// Package wire writes the arguments of calls, and reads their answers, for tests that call
// the Lua itself, as a program in another language does.
package wire

import "fmt"

// Tasks are the arguments that hand over tasks to a call, each given as name, value, …,
// its id and payload among them. Each has a shape of its own, as a simple producer in
// another language would do it.
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

// Answers are what enqueue said of each of them: a word, and what belongs to it. The word
// of a task that was accepted is OK.
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
