package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/pages"
)

// Each command line of the pages that calls curfew is valid: curfew finds its command, its flags and enough arguments. No command
// gets further, since its context has ended and there is no Redis. A command in the text need not have its arguments.
func TestTheCommandLinesOfThePagesAreValid(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	lines, err := pages.Lines("../..", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	reasons := map[string]string{} // why a command line is invalid, so that none is tried twice
	for _, l := range lines {
		text := strings.Join(l.Words, " ")
		if _, tried := reasons[text]; !tried {
			needs(t, l.Words)
			reasons[text] = invalid(l.Words)
		}
		if why := reasons[text]; why != "" && (!l.InText || strings.Contains(why, "there is no") || strings.Contains(why, "of their own")) {
			t.Errorf("%s: %s: %s", l.Place, text, why)
		}
	}
	if len(lines) < 40 {
		t.Errorf("the pages have %d command lines", len(lines))
	}
}

// needs makes the files of the current folder that a command line names: a program ./resize.sh, a payload @mail.json, a file of tokens.
func needs(t *testing.T, words []string) {
	t.Helper()
	for i, word := range words[1:] {
		if word == "--auth-token-file" && i+2 < len(words) {
			if err := os.WriteFile(words[i+2], []byte("0123456789abcdef0123 read billing\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasSuffix(word, ".yaml") {
			if err := os.WriteFile(word, []byte(oneDefinition("k")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		name, program := strings.CutPrefix(word, "./")
		payload, is := strings.CutPrefix(word, "@")
		if is {
			name = payload
		}
		if program || is {
			if err := redisproc.WriteProgram(name, "{}"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// invalid returns why curfew refuses these words, or "" if it does not.
func invalid(words []string) string {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	if code := runWith(ctx, words, strings.NewReader(""), &out, &errs); code == app.ExitUsage {
		return errs.String()
	}
	return ""
}

func TestACommandLineThatIsInvalidIsFound(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	t.Chdir(t.TempDir())
	needs(t, []string{"curfew", "./resize.sh"})
	for _, row := range []struct {
		words string
		valid bool
	}{
		{"curfew ls --kind render", true}, {"curfew ls --knd render", false}, {"curfew lst", false}, {"curfew get", false},
		{"curfew enqueue render --timeout 30", false}, {"curfew work --kind resize -- ./resize.sh", true}, {"curfew dev --no-demo --port 0", true}, {"curfew bench throughput", false},
	} {
		if why := invalid(strings.Fields(row.words)); (why == "") != row.valid {
			t.Errorf("%s is valid: %v, want %v: %s", row.words, why == "", row.valid, why)
		}
	}
}
