package structure

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// usedFolders returns the other folders that the files of each folder of the Lua use.
func usedFolders(tree fs.FS) (map[string]map[string]bool, error) {
	uses := map[string]map[string]bool{}
	err := each(tree, ".lua", func(name string, text []byte) error {
		inLua, ok := strings.CutPrefix(name, "lua/")
		if !ok {
			return nil
		}
		folder := path.Dir(inLua)
		if uses[folder] == nil {
			uses[folder] = map[string]bool{}
		}
		for _, line := range strings.Split(string(text), "\n") {
			if use := useLine.FindStringSubmatch(line); use != nil && path.Dir(use[1]) != folder {
				uses[folder][path.Dir(use[1])] = true
			}
		}
		return nil
	})
	return uses, err
}

// reaches reports whether a folder uses another one, itself or through others.
func reaches(uses map[string]map[string]bool, from, to string) bool {
	for folder := range uses[from] {
		if folder == to || reaches(uses, folder, to) {
			return true
		}
	}
	return false
}

// picture draws the floors as a Mermaid graph. It leaves out arrows that follow from others: a folder that uses task may use
// what task uses.
func picture(uses map[string]map[string]bool) string {
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for i, folders := range slices.Backward(floors) {
		fmt.Fprintf(&b, "    subgraph f%d [\"%d\"]\n", i+1, i+1)
		for _, folder := range folders {
			fmt.Fprintf(&b, "        %s\n", folder)
		}
		b.WriteString("    end\n")
	}
	for _, folders := range slices.Backward(floors) {
		for _, from := range folders {
			for _, to := range slices.Sorted(maps.Keys(uses[from])) {
				others := maps.Clone(uses[from])
				delete(others, to)
				follows := false
				for other := range others {
					follows = follows || reaches(uses, other, to)
				}
				if !follows {
					fmt.Fprintf(&b, "    %s --> %s\n", from, to)
				}
			}
		}
	}
	return b.String() + "```\n"
}

// The picture in docs/explanation/architecture.md shows the floors and what the folders of the Lua use.
func TestThePictureShowsTheFloors(t *testing.T) {
	tree := os.DirFS(top(t))
	uses, err := usedFolders(tree)
	if err != nil {
		t.Fatal(err)
	}
	page, err := fs.ReadFile(tree, "docs/explanation/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	if drawn := picture(uses); !strings.Contains(string(page), drawn) {
		t.Errorf("docs/explanation/architecture.md has not this picture of the floors:\n%s", drawn)
	}
}

// The files of the Lua that the pages for developers name are there, with the functions behind them: `task/finish: load_task`.
func TestThePagesNameFilesOfTheLua(t *testing.T) {
	tree := os.DirFS(top(t))
	named := regexp.MustCompile("`(?:lua/)?([a-z]+)/([a-z_]+)(?:\\.lua)?(?:: ([a-z_]+))?`")
	files := 0
	for _, page := range []string{"docs/explanation/architecture.md", "lua/README.md"} {
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if floor(m[1]) < 0 || m[2] == "testdata" { // queue/testdata is of the Go package
				continue
			}
			files++
			file := path.Join("lua", m[1], m[2]+".lua")
			if code, err := fs.ReadFile(tree, file); err != nil || !strings.Contains(string(code), m[3]) {
				t.Errorf("%s: there is no %s with %q: %v", page, file, m[3], err)
			}
		}
	}
	if files < 20 {
		t.Errorf("the pages name %d files", files)
	}
}
