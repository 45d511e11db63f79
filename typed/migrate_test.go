package typed_test

import (
	"os"
	"strings"
	"testing"
)

// Each block of Go code in these pages is part of an example, which is compiled and runs.
func TestTheCodeOfThePagesIsThatOfTheExamples(t *testing.T) {
	for _, row := range []struct {
		page, example string
		first, blocks int // the first block to compare, and how many blocks the page has
	}{
		{"../docs/how-to/migrate.md", "example_migrate_test.go", 0, 7},
		{"../docs/how-to/typed.md", "example_test.go", 0, 4},
		{"../README.md", "example_test.go", 1, 3},
	} {
		page, example := read(t, row.page), "\n"+squeeze(read(t, row.example))+"\n"
		blocks := strings.Split(page, "```go\n")[1:]
		if len(blocks) != row.blocks {
			t.Errorf("%s has %d blocks of Go code, want %d", row.page, len(blocks), row.blocks)
		}
		for _, block := range blocks[row.first:] {
			if strings.Contains(block, "agentwait.Handle(") {
				continue // the sketch of an agent in README.md
			}
			code, _, ended := strings.Cut(block, "```")
			if !ended || !strings.Contains(example, "\n"+squeeze(code)+"\n") {
				t.Errorf("this code of %s is not in %s:\n%s", row.page, row.example, code)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// squeeze returns code without indentation and empty lines.
func squeeze(code string) string {
	var kept []string
	for line := range strings.Lines(code) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
