package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/internal/pages"
)

// inText is a command in the text of a page, which can name what the reader puts in: `curfew explain ID...`.
var inText = regexp.MustCompile("`(?:go run \\./cmd/)?(curfew [a-z][^`]*)`")

// Each command line of the pages that calls curfew is valid: curfew finds its command, its flags and enough arguments. No command
// gets further, since its context has ended and there is no Redis. A command in the text need not have its arguments.
func TestTheCommandLinesOfThePagesAreValid(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	all, err := pages.All("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	found := 0
	reasons := map[string]string{} // why a command line is invalid, so that none is tried twice
	check := func(place string, words []string, text bool) {
		words = slices.Clone(words)
		if len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == "./cmd/curfew" {
			words = words[2:]
		}
		for len(words) > 1 && strings.Contains(words[0], "=") { // NAME=value curfew
			words = words[1:]
		}
		if words[0] != "curfew" && words[0] != "./cmd/curfew" {
			return
		}
		found++
		line := strings.Join(words, " ")
		if _, tried := reasons[line]; !tried {
			needs(t, words)
			reasons[line] = invalid(words)
		}
		if why := reasons[line]; why != "" && (!text || strings.Contains(why, "there is no")) {
			t.Errorf("%s: %s: %s", place, line, why)
		}
	}
	for _, page := range all {
		for _, b := range page.Blocks() {
			if b.Language == "console" || b.Language == "sh" {
				for _, words := range b.Commands() {
					check(fmt.Sprintf("%s:%d", page.Path, b.Line), words, false)
				}
			}
		}
		for n, line := range page.Prose() {
			for _, m := range inText.FindAllStringSubmatch(line, -1) {
				one := pages.Block{Language: "sh", Code: strings.ReplaceAll(m[1], `\|`, "|") + "\n"}
				check(fmt.Sprintf("%s:%d", page.Path, n), one.Commands()[0], true)
			}
		}
	}
	if found < 40 {
		t.Errorf("the pages have %d command lines", found)
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
			if err := os.WriteFile(name, []byte("{}"), 0o700); err != nil {
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
		{"curfew enqueue render --timeout 30", false}, {"curfew work --kind resize -- ./resize.sh", true}, {"curfew dev --no-demo --port 0", true},
	} {
		if why := invalid(strings.Fields(row.words)); (why == "") != row.valid {
			t.Errorf("%s is valid: %v, want %v: %s", row.words, why == "", row.valid, why)
		}
	}
}
