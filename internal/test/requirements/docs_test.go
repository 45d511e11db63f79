package requirements

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const top = "../../.." // of the repository, from here

var (
	tableRow = regexp.MustCompile(`(?m)^\| (S\d+\.\d+) \|[^|]+\| (.+) \|$`)
	rowName  = regexp.MustCompile(`\bS[0-4]\.\d+\b`)
	// A test is a folder, a function, and perhaps a word of a subtest's name. Without a folder it is in
	// the folder of the test before it. A story is its file.
	testRef  = regexp.MustCompile("`(?:([a-z/]+) )?(Test[A-Za-z0-9]+)(?:/([^`]+))?`")
	storyRef = regexp.MustCompile("`([a-z/]+/testdata/(?:flows/)?[a-z0-9_]+\\.txt)`")
	excuse   = regexp.MustCompile(`^(with the dashboard|No test: .+)$`)
)

// TestEveryRequirementHasItsTest checks internal/test/requirements/seeds.md: all rows exist, each names a test or
// says why there is none, and a subtest with the number of a row is named in that row.
func TestEveryRequirementHasItsTest(t *testing.T) {
	text := document(t, "internal/test/requirements/seeds.md")
	cells := map[string]string{}
	var rows []string
	for _, m := range tableRow.FindAllStringSubmatch(text, -1) {
		rows = append(rows, m[1])
		cells[m[1]] = m[2]
		if !testRef.MatchString(m[2]) && !storyRef.MatchString(m[2]) && !excuse.MatchString(m[2]) {
			t.Errorf("%s names no test and gives no reason: %s", m[1], m[2])
		}
	}
	var want []string
	for seed, n := range []int{61, 14, 35, 51, 48} {
		for i := range n {
			want = append(want, fmt.Sprintf("S%d.%d", seed, i+1))
		}
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the rows are\n%v, want\n%v", rows, want)
	}

	for _, test := range []struct{ folder, name string }{
		{"internal/test/requirements", "TestSeedS0"}, {"worker", "TestSeedS1"}, {"worker", "TestSeedS1Environment"},
		{"internal/test/requirements", "TestSeedS2"}, {"internal/test/requirements", "TestSeedS3"}, {"internal/test/requirements", "TestSeedS4"},
	} {
		for _, literal := range tests(t, test.folder)[test.name] {
			for _, row := range rowName.FindAllString(literal, -1) {
				if !strings.Contains(cells[row], "`"+test.folder+" "+test.name+"/"+row+"`") {
					t.Errorf("%s of %s has a subtest for %s, and its row does not name it", test.name, test.folder, row)
				}
			}
		}
	}
}

// TestRowsNameTheirDefinitions checks that each row that a definition is for names its file.
func TestRowsNameTheirDefinitions(t *testing.T) {
	files, err := filepath.Glob("testdata/flows/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for _, m := range tableRow.FindAllStringSubmatch(document(t, "internal/test/requirements/seeds.md"), -1) {
		cells[m[1]] = m[2]
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows, _, _ := strings.Cut(string(text), ". ")
		for _, row := range rowName.FindAllString(rows, -1) {
			if !strings.Contains(cells[row], "`internal/test/requirements/"+file+"`") {
				t.Errorf("%s is for %s, and its row does not name it", file, row)
			}
		}
	}
}

// TestDocumentsNameTestsThatExist checks every page that names tests.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	for _, page := range []string{"internal/test/requirements/seeds.md", "internal/test/requirements/attacks.md"} {
		text := document(t, page)
		refs := testRef.FindAllStringSubmatch(text, -1)
		if len(refs) == 0 {
			t.Errorf("%s names no test", page)
		}
		folder := ""
		for _, m := range refs {
			name, sub := m[2], m[3]
			if m[1] != "" {
				folder = m[1]
			}
			literals, there := tests(t, folder)[name]
			if !there {
				t.Errorf("%s: package %s has no test %s", page, folder, name)
				continue
			}
			word := regexp.MustCompile(`(^|\s)` + regexp.QuoteMeta(sub) + `($|\s)`)
			if sub != "" && !slices.ContainsFunc(literals, word.MatchString) {
				t.Errorf("%s: %s of %s has no subtest with %s in its name", page, name, folder, sub)
			}
		}
		for _, m := range storyRef.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(top, m[1])); err != nil {
				t.Errorf("%s: there is no story %s", page, m[1])
			}
		}
	}
}

func document(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var parsed = map[string]map[string][]string{} // results of tests, by folder

// tests returns the test functions of a folder, each with the strings in it, which include the
// names of its subtests.
func tests(t *testing.T, folder string) map[string][]string {
	t.Helper()
	if known := parsed[folder]; known != nil {
		return known
	}
	files, err := filepath.Glob(filepath.Join(top, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, file := range files {
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range source.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			literals := []string{}
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					s, _ := strconv.Unquote(lit.Value)
					literals = append(literals, s)
				}
				return true
			})
			found[f.Name.Name] = literals
		}
	}
	parsed[folder] = found
	return found
}
