package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// make mutants writes the table. What it cannot know is why a mutant that no test finds may live.
func TestTheTableOfMutants(t *testing.T) {
	tree := os.DirFS(ours(t).tree)
	rows, err := readTable(tree)
	if err != nil || len(rows) < 60 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for id, r := range rows {
		switch {
		case !slices.Contains(classes, r.class) || r.place == "" || r.shown == "":
			t.Errorf("%s: it has no class, place or edit", id)
		case r.class == classInvalid && len(r.killed) > 0 || r.class == classUnreached && r.lua() && slices.ContainsFunc(r.killed, func(by string) bool { return strings.HasPrefix(by, "model") }):
			t.Errorf("%s is %s, but found by %q", id, r.class, r.killed)
		case len(r.killed) > 0 && r.reason != "":
			t.Errorf("%s is found, and has a reason why it is not", id)
		case r.survived() && r.reason == "":
			t.Errorf("%s: no test finds it, and no reason says why that is right: %s: %s", id, r.place, r.shown)
		}
	}
	text, err := os.ReadFile("mutants.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range summary(rows) {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("mutants.md lacks the line %s", line)
		}
	}
}
