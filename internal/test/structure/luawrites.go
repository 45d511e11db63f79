package structure

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

const finishLua = "lua/task/finish.lua"

// endingLua lists files that return how a task ends. finish writes it.
var endingLua = []string{"lua/task/ending.lua", "lua/task/timed_out.lua", "lua/task/cancelled.lua"}

// parseLua decodes a stored task.
const parseLua = "lua/store/parse.lua"

// terminalStatus finds Lua outside of finish.lua that sets the status of a task, or creates a
// task with a status, unless the status is the literal name of a live one. A table that is an
// argument of finish describes how a task ends, and is allowed.
func terminalStatus(fsys fs.FS) ([]string, error) {
	var found []string
	err := luaFiles(fsys, func(name string, chunk []ast.Stmt) {
		if name == finishLua || name == parseLua {
			return
		}
		report := func(line int) {
			found = append(found, fmt.Sprintf("%s:%d: gives a status that may be terminal: only %s does", name, line, finishLua))
		}
		endings := map[*ast.TableExpr]bool{}
		visit(chunk, func(node any) {
			switch n := node.(type) {
			case *ast.AssignStmt:
				for i, target := range n.Lhs {
					if field, ok := target.(*ast.AttrGetExpr); ok && literal(field.Key) == "status" && (i >= len(n.Rhs) || !live(n.Rhs[i])) {
						report(target.Line())
					}
				}
			case *ast.FuncCallExpr:
				called := dotted(n.Func)
				if called == "record.set" && len(n.Args) > 3 && literal(n.Args[2]) == "status" && !live(n.Args[3]) {
					report(n.Line())
				}
				for _, arg := range n.Args {
					if table, ok := arg.(*ast.TableExpr); ok && called == "finish" {
						endings[table] = true
					}
				}
			case *ast.TableExpr:
				for _, field := range n.Fields {
					if field.Key != nil && literal(field.Key) == "status" && !live(field.Value) && !endings[n] && !slices.Contains(endingLua, name) {
						report(field.Value.Line())
					}
				}
			}
		})
	})
	return found, err
}

// live reports whether a value is a live status, or false, that of a task that does not exist.
func live(value ast.Expr) bool {
	_, none := value.(*ast.FalseExpr)
	return none || slices.Contains([]string{"PENDING", "RUNNING", "WAITING"}, literal(value))
}

// mayWrite lists the files that may write, and why. All but the last seven write for commit,
// which calls them in its order after everything is decided.
var mayWrite = map[string]string{
	"lua/unit/unit.lua":             "the places and the alarm of the root",
	"lua/store/events.lua":          "events",
	"lua/store/record.lua":          "records",
	"lua/store/index.lua":           "sorted sets",
	"lua/store/later.lua":           "commands that were deferred",
	"lua/store/publish.lua":         "messages",
	"lua/queue/count.lua":           "counters of queues",
	"lua/queue/wake.lua":            "tokens: it reads the lines as commit has left them",
	"lua/store/tally.lua":           "figures",
	"lua/queue/recount_running.lua": "counters, computed from what commit has written",
	"lua/wait/write_waits.lua":      "counters of waits",
	"lua/wait/journal.lua":          "journals",

	"lua/store/try.lua":      "runs the command of its caller, which has the same rule",
	"lua/store/attempt.lua":  "the same",
	"lua/explain/ask.lua":    "the same; explain has the flag no-writes",
	"lua/sweep/turn.lua":     "the turn and the next reaper, after all units of the sweep are written",
	"lua/call/open.lua":      "the root: there is nothing else to decide",
	"lua/call/define.lua":    "defaults of a kind: there is nothing else to decide",
	"lua/call/configure.lua": "settings of the root: there is nothing else to decide",
}

// runs lists the functions that run a command, and which of their arguments names it.
var runs = map[string]int{"redis.call": 0, "redis.pcall": 0, "try": 1, "attempt": 0, "ask": 0, "pcall": 1}

// putOff lists the functions that run a command after everything is decided.
var putOff = []string{"later.before", "later.after"}

// readers lists commands that write nothing.
var readers = []string{"EXISTS", "GET", "MGET", "STRLEN", "TYPE", "TIME", "TTL",
	"HGET", "HMGET", "HGETALL", "HLEN", "HEXISTS", "LRANGE", "LLEN", "LINDEX", "SMEMBERS", "SSCAN", "ZSCAN", "SISMEMBER", "SCARD",
	"ZCARD", "ZCOUNT", "ZRANK", "ZSCORE", "ZMSCORE", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZINTER",
	"XINFO", "XLEN", "XRANGE", "XREVRANGE"}

// writesInLua finds commands outside of mayWrite that are not readers. Redis does not roll
// back, so what a call writes before it has decided remains if it then raises an error. It
// also finds files in mayWrite that write nothing.
func writesInLua(fsys fs.FS) ([]string, error) {
	var found []string
	writes := map[string]bool{}
	err := luaFiles(fsys, func(name string, chunk []ast.Stmt) {
		visit(chunk, func(node any) {
			call, ok := node.(*ast.FuncCallExpr)
			if !ok {
				return
			}
			at, ok := runs[dotted(call.Func)]
			if !ok || at >= len(call.Args) || dotted(call.Func) == "pcall" && dotted(call.Args[0]) != "redis.call" {
				return
			}
			command := strings.ToUpper(literal(call.Args[at]))
			if slices.Contains(readers, command) {
				return
			}
			writes[name] = true
			if mayWrite[name] != "" {
				return
			}
			if command == "" {
				command = "a computed command"
			}
			found = append(found, fmt.Sprintf("%s:%d: %s: a call must not write while it decides: defer the command (%s)",
				name, call.Line(), command, strings.Join(putOff, ", ")))
		})
	})
	if _, missing := fs.Stat(fsys, "lua/unit/unit.lua"); missing == nil {
		for _, name := range slices.Sorted(maps.Keys(mayWrite)) {
			if !writes[name] {
				found = append(found, name+": it writes nothing: remove it from mayWrite")
			}
		}
	}
	return found, err
}
