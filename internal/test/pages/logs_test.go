package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logged is a line of the log in the source.
type logged struct {
	at, level, message string
	keys               []string
}

// levels are the functions that log, and the level and the keys of those that are ours.
var levels = map[string]struct {
	level string
	keys  []string
}{"Debug": {level: "DEBUG"}, "Info": {level: "INFO"}, "Warn": {level: "WARN"}, "Error": {level: "ERROR"}, "LogAttrs": {level: "INFO"},
	"logError": {"ERROR", []string{"worker", "partition", "error"}}, "callFailed": {"ERROR", []string{"worker", "partition", "error", "not_logged_before"}}}

var aLogger = regexp.MustCompile(`(?i)^log(ger)?$`)

// ofLogger reports whether a function is one of levels, of a logger or of ours.
func ofLogger(call *ast.CallExpr) (name string, ok bool) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	l, known := levels[f.Sel.Name]
	switch x := f.X.(type) {
	case *ast.Ident:
		return f.Sel.Name, known && (l.keys != nil || aLogger.MatchString(x.Name))
	case *ast.SelectorExpr:
		return f.Sel.Name, known && (l.keys != nil || aLogger.MatchString(x.Sel.Name))
	}
	return "", false
}

// text returns the constant that an expression is or begins with.
func text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		return text(e.X)
	}
	return "", false
}

// aKey matches texts that are keys: messages have capitals, and values spaces.
var aKey = regexp.MustCompile(`^[a-z][a-z_]*$`)

// linesOf returns the lines of the log in a file.
func linesOf(file string) (all []logged, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, ok := ofLogger(call)
		if !ok {
			return true
		}
		line := logged{at: set.Position(call.Pos()).String(), level: levels[name].level, keys: slices.Clone(levels[name].keys)}
		for _, arg := range call.Args {
			if line.message == "" {
				line.message, _ = text(arg)
				continue
			}
			if t, ok := text(arg); ok && aKey.MatchString(t) {
				line.keys = append(line.keys, t)
			} else if attr, ok := arg.(*ast.CallExpr); ok && len(attr.Args) == 2 { // slog.String and others
				if t, ok := text(attr.Args[0]); ok && aKey.MatchString(t) {
					line.keys = append(line.keys, t)
				}
			}
		}
		if line.message != "" { // otherwise it is in a function that gets the message
			all = append(all, line)
		}
		return true
	})
	return all, nil
}

// noProgram are folders whose lines no operator sees.
var noProgram = []string{".git", "testdata", "bench", "examples", "docs", "internal/demo", "internal/test/harness", "internal/test/queuetest", "curfewtest"}

func sourceLines(t *testing.T) (all []logged) {
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, file)
		if entry.IsDir() && (slices.Contains(noProgram, filepath.ToSlash(name)) || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		lines, err := linesOf(file)
		all = append(all, lines...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("found %d lines of the log in the source", len(all))
	}
	return all
}

// Each line of the log in the source has a row in the reference, with its level and its keys, and each row has a line.
func TestTheReferenceHasAllLinesOfTheLog(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, "docs/reference/logs.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (DEBUG|INFO|WARN|ERROR) \\| `(.+?)`(?: and the error)? \\|(.*)\\| .* \\|$").FindAllStringSubmatch(string(page), -1) {
		rows[strings.TrimSpace(strings.ReplaceAll(row[2], "``", "`"))] = row[1] + " " + row[3]
	}
	used := map[string]bool{}
	for _, line := range sourceLines(t) {
		message := strings.TrimSpace(line.message)
		row, ok := rows[message]
		level, keys, _ := strings.Cut(row, " ")
		if !ok || level != line.level {
			t.Errorf("%s: docs/reference/logs.md has no row for %s %q", line.at, line.level, line.message)
			continue
		}
		used[message] = true
		if slices.Contains(line.keys, "task_id") && regexp.MustCompile(`/(worker|outside)/\w+\.go:`).MatchString(line.at) {
			for _, key := range []string{"queue", "kind", "worker"} {
				if !slices.Contains(line.keys, key) {
					t.Errorf("%s: the line is about a task and has no key %s", line.at, key)
				}
			}
		}
		for _, key := range line.keys {
			if !strings.Contains(keys, "`"+key+"`") {
				t.Errorf("%s: the row of %q has no key %s", line.at, line.message, key)
			}
		}
	}
	for message := range rows {
		if !used[message] {
			t.Errorf("docs/reference/logs.md: no line of the log in the source has the message %q", message)
		}
	}
}
