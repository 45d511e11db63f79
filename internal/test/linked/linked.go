// Package linked builds several programs as one binary for tests, because a build spends most of its time in the linker.
package linked

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/curfew-dev/curfew/"

// place is the folder of the module in which the programs are packages. It exists for the build only.
const place = "linked-programs"

// Build builds programs, each the code of a package main of one file, by their names. It returns a folder with a file for each name. with is
// the folder of another program of the module that is built too, such as cmd/curfew; "" is none. top is the top of the module.
//
// All files are one binary, which runs the program of the name by which it is called. So a program that sets up something before main, such
// as a flag, does that also in the others.
func Build(tb testing.TB, top, with string, programs map[string]string) (folder string) {
	tb.Helper()
	top, err := filepath.Abs(top)
	if err != nil {
		tb.Fatal(err)
	}
	folder = tb.TempDir()
	sources := tb.TempDir()
	overlay := map[string]string{}
	write := func(path, code string) {
		file := filepath.Join(sources, fmt.Sprint(len(overlay), ".go"))
		overlay[filepath.Join(top, path)] = file
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	imports, calls := "", ""
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		code := strings.NewReplacer("\npackage main\n", "\npackage "+name+"\n", "\nfunc main() {", "\nfunc Main() {").Replace("\n" + programs[name])
		write(filepath.Join(place, name, "main.go"), code)
		imports += fmt.Sprintf("import %q\n", module+place+"/"+name)
		calls += fmt.Sprintf("case %q:\n%s.Main()\nos.Exit(0)\n", name, name)
	}
	main := "package main\nimport \"os\"\nimport \"path/filepath\"\n" + imports + "func init() {\nswitch filepath.Base(os.Args[0]) {\n" + calls + "}\n}\n"
	binary := filepath.Join(folder, filepath.Base(with))
	if with == "" {
		with, binary = place, filepath.Join(folder, place)
		main += "func main() {}\n"
	}
	write(filepath.Join(with, "linked_programs.go"), main)
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		tb.Fatal(err)
	}
	list := filepath.Join(sources, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	build := exec.CommandContext(tb.Context(), "go", "build", "-ldflags", "-s -w", "-overlay", list, "-o", binary, "./"+with)
	build.Dir = top
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	for name := range programs {
		if err := os.Symlink(binary, filepath.Join(folder, name)); err != nil {
			tb.Fatal(err)
		}
	}
	return folder
}
