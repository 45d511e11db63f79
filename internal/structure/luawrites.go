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

// endingLua are files that return how a task is to end, for finish to write.
var endingLua = []string{"lua/task/ending.lua", "lua/task/timed_out.lua", "lua/task/cancelled.lua"}

// parseLua makes a task of what is stored.
const parseLua = "lua/store/parse.lua"

// terminalStatus finds Lua outside of finish.lua that gives a task a status which is not
// spelled out as a live one, or makes a task that is born with such a one. What stands in
// a table that finish is called with is how a task is to end.
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

// live tells whether a value is a live status, or that of a task which is not there.
func live(value ast.Expr) bool {
	_, none := value.(*ast.FalseExpr)
	return none || slices.Contains([]string{"PENDING", "RUNNING", "WAITING"}, literal(value))
}

// Files that may write, and why. All but the last six write for commit, which calls them
// in its order once everything is decided.
var mayWrite = map[string]string{
	"lua/store/commit.lua":          "the places and the alarm of the root",
	"lua/store/events.lua":          "events",
	"lua/store/record.lua":          "records",
	"lua/store/index.lua":           "sorted sets",
	"lua/store/later.lua":           "what was put off by name",
	"lua/store/publish.lua":         "messages",
	"lua/queue/count.lua":           "counters of queues",
	"lua/queue/wake.lua":            "tokens: it looks at the lines as they are by then",
	"lua/store/add_figures.lua":     "figures",
	"lua/queue/recount_running.lua": "counters, which it works out from what has been written",
	"lua/wait/write_waits.lua":      "counters of waits",
	"lua/wait/journal.lua":          "journals",

	"lua/store/try.lua":     "runs what its caller names, and is held to the same",
	"lua/store/attempt.lua": "the same",
	"lua/explain/ask.lua":   "the same; explain declares that it writes nothing",
	"lua/sweep/turn.lua":    "which reaper looks next, once all units of the sweep are written",
	"lua/call/open.lua":     "makes the root, and there is nothing else to decide",
	"lua/call/define.lua":   "defaults of a kind, and there is nothing else to decide",
}

// runs are functions that run a command, and which of their arguments names it.
var runs = map[string]int{"redis.call": 0, "redis.pcall": 0, "try": 1, "attempt": 0, "ask": 0, "pcall": 1}

// putOff run a command when everything is decided.
var putOff = []string{"later.before", "later.after"}

// Commands that write nothing.
var readers = []string{"EXISTS", "GET", "MGET", "STRLEN", "TYPE", "TIME", "TTL",
	"HGET", "HMGET", "HGETALL", "HLEN", "HEXISTS", "LRANGE", "LLEN", "LINDEX", "SMEMBERS", "SSCAN", "ZSCAN", "SISMEMBER", "SCARD",
	"ZCARD", "ZCOUNT", "ZRANK", "ZSCORE", "ZMSCORE", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZINTER",
	"XINFO", "XLEN", "XRANGE", "XREVRANGE"}

// writesInLua finds commands that are run where a call still decides, and are not known to
// write nothing. Redis does not roll back, so what a call writes before it has decided
// remains though it raises.
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
				command = "a command that is worked out"
			}
			found = append(found, fmt.Sprintf("%s:%d: %s: nothing is written while a call decides: put it off (%s)",
				name, call.Line(), command, strings.Join(putOff, ", ")))
		})
	})
	if _, missing := fs.Stat(fsys, "lua/store/commit.lua"); missing == nil {
		for _, name := range slices.Sorted(maps.Keys(mayWrite)) {
			if !writes[name] {
				found = append(found, name+": writes nothing, and is on the list of what may")
			}
		}
	}
	return found, err
}
