package main

import (
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/pages"
)

// The definitions in docs/how-to/move-to-flows.md pass the check. The Argo workflow on that page, which is the one to be
// moved, does not.
func TestTheDefinitionsOfThePagesAreGood(t *testing.T) {
	page, err := pages.Read("../..", "docs/how-to/move-to-flows.md")
	if err != nil {
		t.Fatal(err)
	}
	good := 0
	for _, b := range page.Blocks() {
		if b.Language != "yaml" && b.Language != "json" || !strings.Contains(b.Code, "spec") && !strings.Contains(b.Code, "nodes") {
			continue
		}
		err := flow.Check([]byte(b.Code))
		if foreign := strings.Contains(b.Code, "argoproj.io"); foreign != (err != nil) {
			t.Errorf("%s\n%v", b.Code, err)
		} else if !foreign {
			good++
		}
	}
	if good != 2 {
		t.Errorf("%d definitions are good", good)
	}
}
