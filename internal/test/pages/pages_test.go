package pages

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const top = "../../.."

func all(t *testing.T) []Page {
	t.Helper()
	pages, err := All(top)
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 20 {
		t.Fatalf("there are %d pages", len(pages))
	}
	return pages
}

// Each block of Go is a complete program whose types are right; or it stands in a complete program of its page, or in a test or
// example of this repository, which the compiler checks. Indentation and empty lines do not count.
func TestTheGoCodeOfThePagesCompiles(t *testing.T) {
	source := examples(t)
	var programs []string // each with a directive that names its page and line in the errors of the compiler
	for _, page := range all(t) {
		mine := ""
		for _, b := range page.Blocks() {
			if b.Program() {
				mine += "\n" + Squeeze(b.Code) + "\n"
				programs = append(programs, fmt.Sprintf("//line %s:%d\n%s", page.Path, b.Line, b.Code))
			}
		}
		for _, b := range page.Blocks() {
			if b.Language != "go" || b.Program() {
				continue
			}
			if code := "\n" + Squeeze(b.Code) + "\n"; !strings.Contains(mine, code) && !strings.Contains(source, code) {
				t.Errorf("%s:%d: this code stands in no program of the page, and in no test or example:\n%s", page.Path, b.Line, b.Code)
			}
		}
	}
	faults, err := typecheck(programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

// typecheck returns the type errors of programs that import the packages of this repository. It reads what they import
// from the export data of Go's build cache, because a build of each program took most of the time of this package.
func typecheck(programs []string) (faults []string, err error) {
	files := token.NewFileSet()
	var parsed []*ast.File
	imports := map[string]bool{}
	for _, program := range programs {
		file, err := parser.ParseFile(files, "", program, parser.SkipObjectResolution)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		parsed = append(parsed, file)
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			imports[path] = true
		}
	}
	if len(faults) > 0 {
		return faults, nil
	}
	open, err := exported(slices.Sorted(maps.Keys(imports)))
	if err != nil {
		return nil, err
	}
	config := types.Config{
		Importer: importer.ForCompiler(files, "gc", open),
		Error:    func(err error) { faults = append(faults, err.Error()) },
	}
	for _, file := range parsed {
		config.Check("main", files, []*ast.File{file}, nil)
	}
	return faults, nil
}

// exported returns a function that opens the export data of packages, and of all that they import.
func exported(packages []string) (open func(path string) (io.ReadCloser, error), err error) {
	list := exec.Command("go", append([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...)
	var complaint strings.Builder
	list.Dir, list.Stderr = top, &complaint
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaint.String())
	}
	file := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), " ")
		file[path] = export
	}
	return func(path string) (io.ReadCloser, error) {
		if file[path] == "" {
			return nil, fmt.Errorf("there is no package %s", path)
		}
		return os.Open(file[path])
	}, nil
}

// The check finds what a compiler finds, and names the page.
func TestWrongProgramsAreFound(t *testing.T) {
	for _, row := range []struct{ claim, code, want string }{
		{"a field that does not exist", "func main() { _ = queue.Task{Kin: \"a\"} }", "a.md:11: unknown field Kin"},
		{"a variable that is not used", "func main() { a := queue.Task{} }", "a.md:11: declared and not used: a"},
		{"an import that is not used", "func main() {}", "a.md:9: \"github.com/curfew-dev/curfew/queue\" imported and not used"},
		{"no Go", "func main( {}", "a.md:11: expected"},
	} {
		code := "//line a.md:7\npackage main\n\nimport \"github.com/curfew-dev/curfew/queue\"\n\n" + row.code
		faults, err := typecheck([]string{code})
		if err != nil || len(faults) != 1 || !strings.HasPrefix(faults[0], row.want) {
			t.Errorf("%s: %q, %v, want %q", row.claim, faults, err, row.want)
		}
	}
}

// examples returns the tests and examples of the repository, squeezed.
func examples(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") && !(strings.Contains(name, "/examples/") && strings.HasSuffix(name, ".go")) {
			return err
		}
		code, err := os.ReadFile(path)
		text.WriteString("\n" + Squeeze(string(code)) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#+ +(.*)$`)
	code    = regexp.MustCompile("`[^`]*`")
)

// Each relative link leads to a file, and each anchor to a heading.
func TestTheLinksOfThePagesLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range all(t) {
		for n, line := range page.Prose() {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(target, ":") { // https:
					continue
				}
				links++
				to := page.Path
				if target != "" {
					to = path.Join(path.Dir(page.Path), target)
				}
				if _, err := os.Stat(filepath.Join(top, to)); err != nil {
					t.Errorf("%s:%d: there is no file %s", page.Path, n, to)
					continue
				}
				if anchor == "" {
					continue
				}
				other, err := Read(top, to)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(other.anchors(), anchor) {
					t.Errorf("%s:%d: %s has no heading #%s", page.Path, n, to, anchor)
				}
			}
		}
	}
	if links < 50 {
		t.Errorf("the pages have %d links", links)
	}
}

// anchors returns the anchors of the headings of a page, as GitHub makes them.
func (p Page) anchors() (anchors []string) {
	seen := map[string]int{}
	for _, line := range p.Prose() {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, link.ReplaceAllString(m[1], "]"))
		if seen[anchor]++; seen[anchor] > 1 {
			anchor = fmt.Sprintf("%s-%d", anchor, seen[anchor]-1)
		}
		anchors = append(anchors, anchor)
	}
	return anchors
}

// generated are the pages that the commands themselves write: `make docs`.
var generated = []string{"docs/reference/command.md", "docs/reference/bench.md"}

// No line of text that people edit is longer than 140 characters. Tables and code can be. A rebase has left no marks.
func TestTheLinesOfThePagesAreShort(t *testing.T) {
	for _, page := range all(t) {
		if slices.Contains(generated, page.Path) {
			continue
		}
		for n, line := range page.Prose() {
			if length := utf8.RuneCountInString(line); length > 140 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has %d characters: break it", page.Path, n, length)
			}
			if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
				t.Errorf("%s:%d is the mark of a conflict: resolve it", page.Path, n)
			}
		}
	}
}

// The index of the documents has a line for each page in docs, and no page twice. The decisions have an index of their own.
func TestEachPageIsInTheIndex(t *testing.T) {
	listed := map[string]int{"docs/README.md": 1}
	for _, name := range []string{"docs/README.md", "docs/decisions/README.md"} {
		index, err := Read(top, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range index.Prose() {
			if strings.HasPrefix(line, "| [") {
				listed[path.Join(path.Dir(name), link.FindStringSubmatch(line)[1])]++
			}
		}
	}
	for _, page := range all(t) {
		if strings.HasPrefix(page.Path, "docs/") && listed[page.Path] != 1 {
			t.Errorf("%s has %d lines in the indexes, want 1", page.Path, listed[page.Path])
		}
	}
}

// Each decision is short, says in its title which number it has, and is in the index under its title.
func TestDecisionsAreShort(t *testing.T) {
	index, err := Read(top, "docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range all(t) {
		name, is := strings.CutPrefix(page.Path, "docs/decisions/")
		if !is || page.Path == index.Path {
			continue
		}
		heading, text, _ := strings.Cut(page.Text, "\n")
		title, numbered := strings.CutPrefix(heading, "# "+name[:4]+" ")
		if !numbered || !strings.Contains(index.Text, "| ["+name[:4]+"]("+name+") | "+title) {
			t.Errorf("%s has the title %q, which is not in the index with its number", page.Path, heading)
		}
		if words := len(strings.Fields(text)); words > 420 {
			t.Errorf("%s has %d words, want 420 at most: what goes stale belongs elsewhere", page.Path, words)
		}
	}
}

// A block of code names its language, so that a test knows what to do with it.
func TestBlocksNameTheirLanguage(t *testing.T) {
	known := []string{"go", "console", "sh", "json", "yaml", "dockerfile", "mermaid", "text"}
	for _, page := range all(t) {
		for _, b := range page.Blocks() {
			if !slices.Contains(known, b.Language) && b.Language != "" {
				t.Errorf("%s:%d: the block is of the language %q, want one of %q or none", page.Path, b.Line, b.Language, known)
			}
			if b.Language == "" && (strings.Contains(b.Code, ":= ") || strings.HasPrefix(b.Code, "$ ")) {
				t.Errorf("%s:%d: the block names no language", page.Path, b.Line)
			}
		}
	}
}

func TestCommandsOfABlock(t *testing.T) {
	for _, row := range []struct {
		name, language, code string
		want                 [][]string
	}{
		{"output is no command", "console", "$ curfew ls\nid  kind\n", [][]string{{"curfew", "ls"}}},
		{"each line of sh is a command", "sh", "# why\nexit 75\n", [][]string{{"exit", "75"}}},
		{"quotes", "sh", `curfew enqueue k '{"a": 1}' "b \" c"` + "\n", [][]string{{"curfew", "enqueue", "k", `{"a": 1}`, `b " c`}}},
		{"a comment", "sh", "curfew reap # why\n", [][]string{{"curfew", "reap"}}},
		{"a line that goes on", "sh", "curfew \\\n  reap\n", [][]string{{"curfew", "reap"}}},
		{"a pipe, a background command, a redirection", "sh", "a b | c >f 2>&1 < g & d && e\n", [][]string{{"a", "b"}, {"c"}, {"d"}, {"e"}}},
		{"a command in another", "sh", "id=$(curfew ls -o id)\n", [][]string{{"id="}, {"curfew", "ls", "-o", "id"}}},
	} {
		if got := (Block{Language: row.language, Code: row.code}).Commands(); !slices.EqualFunc(got, row.want, slices.Equal) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
