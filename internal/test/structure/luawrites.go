package structure

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// mayEnd is the function that ends tasks, and mayRead that which decodes a stored task.
const (
	mayEnd  = "lua/task/finish.lua: change_record"
	mayRead = "lua/store/record.lua: parse"
)

// endingLua is the file that returns how a task ends. finish writes it.
const endingLua = "lua/task/ending.lua"

// terminalStatus finds Lua outside of finish that sets the status of a task, or creates a
// task with a status, unless the status is the literal name of a live one. A table that is an
// argument of finish describes how a task ends, and is allowed.
func terminalStatus(fsys fs.FS) ([]string, error) {
	var found []string
	err := luaFiles(fsys, func(name string, chunk []ast.Stmt) {
		report := func(line int) {
			found = append(found, fmt.Sprintf("%s:%d: gives a status that may be terminal: only %s does", name, line, mayEnd))
		}
		endings := map[*ast.TableExpr]bool{}
		visitEach(name, chunk, func(function string, node any) {
			if function == mayEnd || function == mayRead {
				return
			}
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
					if field.Key != nil && literal(field.Key) == "status" && !live(field.Value) && !endings[n] && name != endingLua {
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

// mayWrite lists the functions that may write, by file, and what. All but those after the empty line write for commit,
// which calls them in its order after everything is decided.
var mayWrite = map[string]string{
	"lua/unit/unit.lua: write_root":        "the places and the alarm of the root",
	"lua/store/events.lua: add":            "events",
	"lua/store/record.lua: record":         "records",
	"lua/store/index.lua: run":             "sorted sets",
	"lua/store/later.lua: later":           "commands that were deferred",
	"lua/store/messages.lua: publish":      "messages",
	"lua/store/figures.lua: home":          "the hash of a kind's figures",
	"lua/store/figures.lua: add_one":       "a figure",
	"lua/store/figures.lua: add_many":      "figures",
	"lua/queue/queue.lua: count":           "counters of queues",
	"lua/queue/queue.lua: pass_on":         "tokens: it reads the lines as commit has left them",
	"lua/queue/queue.lua: wake_one":        "tokens",
	"lua/queue/queue.lua: recount_running": "counters, computed from what commit has written",
	"lua/queue/queue.lua: go_to":           "where the recount goes on",
	"lua/queue/queue.lua: finish_count":    "the end of the recount",
	"lua/wait/wait.lua: write_waits":       "counters of waits",
	"lua/wait/journal.lua: journal":        "journals",

	"lua/named/task.lua: count_refused": "a counter of a queue: the call ends with an error, and nothing else of it is written",

	"lua/store/try.lua: try":            "runs the command of its caller, which has the same rule",
	"lua/store/try.lua: attempt":        "the same",
	"lua/explain/read.lua: ask":         "the same; explain has the flag no-writes",
	"lua/sweep/turn.lua: turn":          "the turn and the next reaper, after all units of the sweep are written",
	"lua/call/open.lua: open":           "the root: there is nothing else to decide",
	"lua/call/define.lua: store":        "defaults of a kind: there is nothing else to decide",
	"lua/call/configure.lua: configure": "settings of the root: there is nothing else to decide",
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
// also finds functions in mayWrite that write nothing.
func writesInLua(fsys fs.FS) ([]string, error) {
	var found []string
	writes := map[string]bool{}
	err := luaFiles(fsys, func(name string, chunk []ast.Stmt) {
		visitEach(name, chunk, func(function string, node any) {
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
			writes[function] = true
			if mayWrite[function] != "" {
				return
			}
			if command == "" {
				command = "a computed command"
			}
			found = append(found, fmt.Sprintf("%s:%d: %s in %s: a call must not write while it decides: defer the command (%s)",
				name, call.Line(), command, path.Base(function), strings.Join(putOff, ", ")))
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
