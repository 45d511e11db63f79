package structure

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// packageComments finds packages without a package comment. A folder that has only tests
// needs none.
func packageComments(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	missing := map[string]string{} // folder: what its comment must begin with
	for _, s := range sources {
		if s.test() {
			continue
		}
		folder, begin := path.Dir(s.name), "Package "+s.file.Name.Name+" "
		if s.file.Name.Name == "main" {
			begin = "Command " + path.Base(folder) + " "
		}
		if _, seen := missing[folder]; !seen {
			missing[folder] = begin
		}
		if strings.HasPrefix(s.file.Doc.Text(), begin) {
			missing[folder] = ""
		}
	}
	var found []string
	for folder, begin := range missing {
		if begin != "" {
			found = append(found, fmt.Sprintf("%s has no package comment that begins with %q", folder, begin))
		}
	}
	slices.Sort(found)
	return found, err
}

// writes are methods of the Redis client that change a key, and whose names no other type has.
var writes = []string{"HSet", "HSetNX", "HMSet", "HDel", "HIncrBy", "ZAdd", "ZAddArgs", "ZRem", "ZIncrBy", "ZPopMin",
	"SAdd", "SRem", "LPush", "RPush", "LTrim", "LRem", "XAdd", "XDel", "XTrim", "IncrBy", "SetNX", "Unlink"}

// stateInGo finds Go code that writes to Redis without a script. Benchmarks, tests and test
// helpers may.
func stateInGo(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	var found []string
	for _, s := range sources {
		from := room(path.Dir(s.name))
		if s.test() || from == "bench" || strings.HasPrefix(from, "internal/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if method, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(writes, method.Sel.Name) {
					found = append(found, fmt.Sprintf("%s:%d: %s writes to Redis: only a script may", s.name, s.line(n.Pos()), method.Sel.Name))
				}
			}
			return true
		})
	}
	return found, err
}

// sleeps finds time.Sleep in a test without a comment "sleeps: why" on its line or
// the line above. A test should wait for a signal.
func sleeps(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	var found []string
	for _, s := range sources {
		if !s.test() {
			continue
		}
		said := s.reasons("// sleeps:")
		ast.Inspect(s.file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "Sleep" {
				line := s.line(n.Pos())
				if name, ok := selector.X.(*ast.Ident); ok && name.Name == "time" && !said[line] && !said[line-1] {
					found = append(found, fmt.Sprintf("%s:%d: a test sleeps: wait for a signal, or give the reason in a comment \"// sleeps: why\"", s.name, line))
				}
			}
			return true
		})
	}
	return found, err
}

// joins finds an error that a caller acts on, such as refusal.ErrNotFound, among the arguments of errors.Join. The joined error
// matches it whatever the other errors are: an outage was answered as a task that does not exist.
func joins(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	var found []string
	for _, s := range sources {
		if s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, _ := n.(*ast.CallExpr)
			if call == nil {
				return true
			}
			method, _ := call.Fun.(*ast.SelectorExpr)
			if method == nil || method.Sel.Name != "Join" {
				return true
			}
			if of, _ := method.X.(*ast.Ident); of == nil || of.Name != "errors" {
				return true
			}
			for _, arg := range call.Args {
				name := ""
				switch arg := arg.(type) {
				case *ast.SelectorExpr:
					name = arg.Sel.Name
				case *ast.Ident:
					name = arg.Name
				}
				if rest, ok := strings.CutPrefix(name, "Err"); ok && rest != "" {
					found = append(found, fmt.Sprintf("%s:%d: %s is joined to another error: return it alone, where the other one is nil", s.name, s.line(n.Pos()), name))
				}
			}
			return true
		})
	}
	return found, err
}

// programs finds a test that writes a file that can be executed without redisproc.WriteProgram: a process that starts in
// the same moment holds the file open, and Linux does not execute it.
func programs(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	var found []string
	for _, s := range sources {
		if !s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, _ := n.(*ast.CallExpr)
			if call == nil || len(call.Args) != 3 {
				return true
			}
			method, _ := call.Fun.(*ast.SelectorExpr)
			mode, _ := call.Args[2].(*ast.BasicLit)
			if method == nil || method.Sel.Name != "WriteFile" || mode == nil {
				return true
			}
			if bits, err := strconv.ParseUint(mode.Value, 0, 32); err == nil && bits&0o111 != 0 {
				found = append(found, fmt.Sprintf("%s:%d: a test writes a program: use redisproc.WriteProgram", s.name, s.line(n.Pos())))
			}
			return true
		})
	}
	return found, err
}

// realTime finds a test outside internal/test/timing that compares the time since an instant, or a variable with such a time, as
// too long. A busy machine exceeds any limit. A comment "real time: why" on the line or the line above permits a
// comparison that no busy machine can turn into a failure, such as one that ends a loop.
func realTime(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	var found []string
	for _, s := range sources {
		if !s.test() || strings.HasPrefix(s.name, "internal/test/timing/") {
			continue
		}
		said := s.reasons("// real time:")
		elapsed := map[string]bool{} // names of variables with a time since an instant
		var isElapsed func(e ast.Expr) bool
		isElapsed = func(e ast.Expr) bool {
			is := false
			ast.Inspect(e, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					name, ok := n.X.(*ast.Ident)
					is = is || ok && name.Name == "time" && n.Sel.Name == "Since"
				case *ast.Ident:
					is = is || elapsed[n.Name]
				case *ast.BinaryExpr:
					if n.Op == token.QUO { // a rate: a busy machine makes it smaller
						is = is || isElapsed(n.X)
						return false
					}
				}
				return !is
			})
			return is
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				clear(elapsed)
			case *ast.AssignStmt:
				for i, to := range n.Lhs {
					if name, ok := to.(*ast.Ident); ok && len(n.Rhs) == len(n.Lhs) {
						elapsed[name.Name] = isElapsed(n.Rhs[i])
					}
				}
			case *ast.BinaryExpr:
				over := (n.Op == token.GTR || n.Op == token.GEQ) && isElapsed(n.X) || (n.Op == token.LSS || n.Op == token.LEQ) && isElapsed(n.Y)
				if line := s.line(n.Pos()); over && !said[line] && !said[line-1] {
					found = append(found, fmt.Sprintf("%s:%d: a test has a limit of real time: use a clock that the test sets, a count, or internal/test/timing, or give the reason in a comment \"// real time: why\"", s.name, line))
				}
			}
			return true
		})
	}
	return found, err
}

// reasons returns the lines with a comment that begins with a word and goes on.
func (s source) reasons(word string) (lines map[int]bool) {
	lines = map[int]bool{}
	for _, group := range s.file.Comments {
		for _, comment := range group.List {
			if why, ok := strings.CutPrefix(comment.Text, word); ok && strings.TrimSpace(why) != "" {
				lines[s.line(group.End())] = true
			}
		}
	}
	return lines
}

// changelog finds a CHANGELOG.md that is missing, or has no heading for unreleased changes.
func changelog(fsys fs.FS) ([]string, error) {
	text, err := fs.ReadFile(fsys, "CHANGELOG.md")
	if err != nil {
		return []string{"there is no CHANGELOG.md"}, nil
	}
	if !strings.Contains(string(text), "\n## Unreleased\n") {
		return []string{`CHANGELOG.md has no heading "## Unreleased"`}, nil
	}
	return nil, nil
}

// pipelines finds calls of go-redis that send several commands and whose error is dropped. If Redis refuses the connection, the
// commands have neither an error nor a reply: engine.Pipelined gives them that error.
func pipelines(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	var found []string
	for _, s := range sources {
		if s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			statement, _ := n.(*ast.ExprStmt)
			if statement == nil {
				return true
			}
			call, _ := statement.X.(*ast.CallExpr)
			if call == nil || len(call.Args) == 0 {
				return true
			}
			method, _ := call.Fun.(*ast.SelectorExpr)
			if method == nil {
				return true
			}
			ask, _ := call.Args[len(call.Args)-1].(*ast.FuncLit)
			sends := slices.Contains([]string{"Pipelined", "TxPipelined"}, method.Sel.Name) && ask != nil && ask.Type.Results != nil
			if pipe, is := method.X.(*ast.Ident); sends || is && pipe.Name == "pipe" && method.Sel.Name == "Exec" {
				found = append(found, fmt.Sprintf("%s:%d: the error of a pipeline is dropped: use engine.Pipelined", s.name, s.line(n.Pos())))
			}
			return true
		})
	}
	return found, err
}
