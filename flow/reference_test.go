package flow

import (
	"os"
	"strings"
	"testing"
)

func TestTheReferenceIsMadeFromTheTable(t *testing.T) {
	if got, err := os.ReadFile("../docs/reference/flow.schema.json"); err != nil || string(got) != string(Schema()) {
		t.Errorf("docs/reference/flow.schema.json is not what the table says: run make docs (%v)", err)
	}
	page, err := os.ReadFile("../docs/reference/flow.md")
	if err != nil || !strings.HasSuffix(string(page), "\n\n"+Reference()) {
		t.Errorf("docs/reference/flow.md does not end with what the table says: run make docs (%v)", err)
	}
}
