package structure

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/size"
)

// listed is a package as `go list -json` prints it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports         []string
	ImportMap       map[string]string // of the paths that name another package, such as those in std/vendor
	Module          *struct {
		Path string
		Main bool
	}
}

// forOthers is what is built for each system: the programs with all that they need.
var forOthers = []string{"../../../cmd/curfew", "../../../cmd/curfew-bench"}

// The types of the programs fit together on other systems. That takes a tenth of the time of a build, which
// `make release` does.
func TestTheProgramsFitOtherSystems(t *testing.T) {
	longOnly(t)
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			packages := listFor(t, system, forOthers...)
			if err := check(packages, nil); err != nil {
				t.Errorf("on %s: %v", system, err)
			}
		})
	}
}

// A function that only one system has is found.
func TestAFunctionOfAnotherSystemIsFound(t *testing.T) {
	longOnly(t)
	packages := listFor(t, "windows", "../../redisproc")
	err := check(packages, map[string]string{"github.com/curfew-dev/curfew/internal/redisproc": `package redisproc
import "syscall"
func fork() { syscall.Kill(1, 9) }`})
	if err == nil || !strings.Contains(err.Error(), "undefined: syscall.Kill") {
		t.Errorf("check of a call of syscall.Kill on Windows = %v, want that it is undefined", err)
	}
}

func longOnly(t *testing.T) {
	t.Helper()
	if !size.Long() {
		t.Skip("CURFEW_LONG is not 1: this test checks the types of the standard library too")
	}
}

// listFor lists packages and all that they import, each after what it imports.
func listFor(t *testing.T, system string, paths ...string) (packages []listed) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,ImportMap,Module"}, paths...)...)
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Fatalf("%v: %v\n%s", list, err, failed.Stderr)
	}
	for lines := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := lines.Decode(&p)
		if err == io.EOF {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// checked is the importer of what has been checked.
type checked struct {
	done map[string]*types.Package
	of   map[string]string // the ImportMap of the package that imports
}

func (c checked) Import(path string) (*types.Package, error) {
	if other := c.of[path]; other != "" {
		path = other
	}
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := c.done[path]; p != nil {
		return p, nil
	}
	return nil, errors.New(path + " was not listed before its importer")
}

// check checks the types of packages in their order, and of those of this module the bodies of functions too. more has
// one more file for some packages.
func check(packages []listed, more map[string]string) error {
	files, done := token.NewFileSet(), map[string]*types.Package{}
	for _, p := range packages {
		if p.ImportPath == "unsafe" {
			continue
		}
		ours := p.Module != nil && p.Module.Main
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			parsed = append(parsed, f)
		}
		if text := more[p.ImportPath]; text != "" {
			f, err := parser.ParseFile(files, "more.go", text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			parsed = append(parsed, f)
		}
		config := types.Config{Importer: checked{done: done, of: p.ImportMap}, Sizes: types.SizesFor("gc", "amd64"), IgnoreFuncBodies: !ours}
		if !ours {
			config.Error = func(error) {} // what others publish builds
		}
		var err error
		if done[p.ImportPath], err = config.Check(p.ImportPath, files, parsed, nil); err != nil && ours {
			return err
		}
	}
	return nil
}
