package structure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Limits of what a build costs. docs/decisions/0050-cheap-builds.md has the reasons.
const (
	mostModules  = 41
	mostArchives = 125_000_000 // bytes
)

// modulesList lists the modules that the command links, one a line and sorted.
const modulesList = "testdata/modules.txt"

// lookAtSources looks at all that go list reads. go test repeats an old result, without running the test, until a file that the
// test has looked at changes, and it does not know of the files that programs of the test read.
func lookAtSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(top(t), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
			return cmp.Or(err, fs.SkipDir)
		}
		if entry.IsDir() || filepath.Ext(path) == ".go" || filepath.Ext(path) == ".mod" {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The command links few modules, because whoever runs it first compiles them all. None is asynq, which only benchmarks need.
func TestTheCommandLinksTheListedModules(t *testing.T) {
	t.Parallel()
	lookAtSources(t)
	text, err := os.ReadFile(modulesList)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(text))
	for _, finding := range moduleFindings(listFor(t, "linux", "../../../cmd/curfew"), want) {
		t.Error(finding)
	}
	if !slices.IsSorted(want) {
		t.Errorf("%s is not sorted", modulesList)
	}
}

// moduleFindings compares the modules of packages with a list. The packages are in the order in which go list prints them, so
// each is after those that it imports, and the command is the last one.
func moduleFindings(packages []listed, want []string) (found []string) {
	reached := map[string]string{} // by package: the imports through which the command reaches it
	first := map[string]string{}   // by module: the shortest of them
	for _, p := range slices.Backward(packages) {
		way, known := reached[p.ImportPath]
		if !known {
			way = p.ImportPath
		}
		if p.Module != nil && !p.Module.Main {
			if shortest, known := first[p.Module.Path]; !known || strings.Count(way, " ") < strings.Count(shortest, " ") {
				first[p.Module.Path] = way
			}
		}
		for _, path := range p.Imports {
			if other := p.ImportMap[path]; other != "" {
				path = other
			}
			if old, known := reached[path]; !known || strings.Count(way, " ")+2 < strings.Count(old, " ") {
				reached[path] = way + " -> " + path
			}
		}
	}
	for module, way := range first {
		if !slices.Contains(want, module) {
			found = append(found, fmt.Sprintf("the command links the module %s, which is not in %s: %s", module, modulesList, way))
		}
		if module == "github.com/hibiken/asynq" {
			found = append(found, "the command links asynq, which is for cmd/curfew-bench: "+way)
		}
	}
	for _, module := range want {
		if first[module] == "" {
			found = append(found, fmt.Sprintf("the command no longer links the module %s: remove it from %s", module, modulesList))
		}
	}
	if len(first) > mostModules {
		found = append(found, fmt.Sprintf("the command links %d modules, want at most %d", len(first), mostModules))
	}
	slices.Sort(found)
	return found
}

func TestAModuleThatComesOrGoesIsFound(t *testing.T) {
	ours := func(path string, imports ...string) listed {
		p := listed{ImportPath: path, Imports: imports}
		p.Module = &struct {
			Path string
			Main bool
		}{module, true}
		return p
	}
	theirs := func(path, of string, imports ...string) listed {
		p := ours(path, imports...)
		p.Module.Path, p.Module.Main = of, false
		return p
	}
	packages := []listed{{ImportPath: "fmt"}, theirs("github.com/hibiken/asynq/internal/base", "github.com/hibiken/asynq", "fmt"),
		theirs("github.com/hibiken/asynq", "github.com/hibiken/asynq", "github.com/hibiken/asynq/internal/base"), theirs("b.org/b", "b.org/b", "fmt"),
		ours("bench", "github.com/hibiken/asynq", "fmt"), ours("queue", "b.org/b"), ours("cmd", "queue", "bench", "b.org/b")}
	for _, row := range []struct {
		claim    string
		packages []listed
		want     []string // the list
		found    []string
	}{
		{"the listed modules", packages[3:4], []string{"b.org/b"}, nil},
		{"a module that came", packages, []string{"b.org/b"}, []string{
			"the command links asynq, which is for cmd/curfew-bench: cmd -> bench -> github.com/hibiken/asynq",
			"the command links the module github.com/hibiken/asynq, which is not in testdata/modules.txt: cmd -> bench -> github.com/hibiken/asynq"}},
		{"asynq in the list", packages, []string{"b.org/b", "github.com/hibiken/asynq"}, []string{"the command links asynq, which is for cmd/curfew-bench: cmd -> bench -> github.com/hibiken/asynq"}},
		{"a module that is gone", packages[3:4], []string{"b.org/b", "c.org/c"}, []string{"the command no longer links the module c.org/c: remove it from testdata/modules.txt"}},
	} {
		if found := moduleFindings(row.packages, row.want); !slices.Equal(found, row.found) {
			t.Errorf("%s: found %q, want %q", row.claim, found, row.found)
		}
	}
	var many []listed
	var list []string
	for i := range mostModules + 1 {
		path := fmt.Sprintf("m.org/%02d", i)
		many, list = append(many, theirs(path, path)), append(list, path)
	}
	if found := moduleFindings(many, list); !slices.Equal(found, []string{"the command links 42 modules, want at most 41"}) {
		t.Errorf("42 listed modules: found %q", found)
	}
}

// archive is what the compiler wrote for a package: what its importers and the linker read.
type archive struct {
	path string
	size int64
}

// The archives of all packages are small. What makes them large costs a build the same time again: a generic type of a dependency
// that each package instantiates for itself. go list compiles only what go build ./... has not.
func TestTheArchivesOfThePackagesAreSmall(t *testing.T) {
	t.Parallel()
	lookAtSources(t)
	list := exec.Command("go", "list", "-export", "-json=ImportPath,Export", "./...")
	list.Dir = top(t)
	out, err := list.Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("%v: %v\n%s", list, err, failed.Stderr)
	}
	var archives []archive
	for lines := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		err := lines.Decode(&p)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Export == "" { // a package that consists of tests
			continue
		}
		file, err := os.Stat(p.Export)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive{strings.TrimPrefix(p.ImportPath, module+"/"), file.Size()})
	}
	if len(archives) < 50 {
		t.Errorf("go list names %d archives", len(archives))
	}
	sum, finding := archiveFinding(archives, mostArchives)
	t.Logf("the archives of %d packages have %.1f MB", len(archives), float64(sum)/1e6)
	if finding != "" {
		t.Error(finding)
	}
}

// archiveFinding returns the sum of the sizes of archives, and what is wrong if it is above a limit.
func archiveFinding(archives []archive, most int64) (sum int64, finding string) {
	for _, a := range archives {
		sum += a.size
	}
	if sum <= most {
		return sum, ""
	}
	archives = slices.SortedFunc(slices.Values(archives), func(a, b archive) int { return int(b.size - a.size) })
	var largest []string
	for _, a := range archives[:min(5, len(archives))] {
		largest = append(largest, fmt.Sprintf("%s %.1f MB", a.path, float64(a.size)/1e6))
	}
	return sum, fmt.Sprintf("the archives of our packages have %.1f MB, want at most %.1f MB: compare with the commit before, and look with go tool nm for what a package instantiates. The largest: %s",
		float64(sum)/1e6, float64(most)/1e6, strings.Join(largest, ", "))
}

func TestLargeArchivesAreNamed(t *testing.T) {
	archives := []archive{{"a", 1e6}, {"b", 6e6}, {"c", 3e6}, {"d", 2e6}, {"e", 5e6}, {"f", 4e6}}
	if sum, finding := archiveFinding(archives, 21e6); sum != 21e6 || finding != "" {
		t.Errorf("at the limit: %d, %s", sum, finding)
	}
	want := "have 21.0 MB, want at most 20.9 MB"
	if _, finding := archiveFinding(archives, 20.9e6); !strings.Contains(finding, want) || !strings.HasSuffix(finding, "The largest: b 6.0 MB, e 5.0 MB, f 4.0 MB, c 3.0 MB, d 2.0 MB") {
		t.Errorf("above the limit: %s, want that the archives %s", finding, want)
	}
}
