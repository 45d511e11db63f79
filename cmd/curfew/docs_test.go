package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheReferenceIsWhatTheCommandPrints(t *testing.T) {
	for page, word := range map[string]string{"command.md": "markdown", "metrics.md": "metrics"} {
		_, want, _ := curfew(t, "__docs", word)
		if got, err := os.ReadFile("../../docs/reference/" + page); err != nil || string(got) != want {
			t.Errorf("docs/reference/%s is not what the command prints: run make docs (%v)", page, err)
		}
	}
}

// A stranger copies an invocation, and reads one sentence about each command and flag.
func TestEachHelpHasAnInvocationAndPlainSentences(t *testing.T) {
	_, page, _ := curfew(t, "__docs", "markdown")
	commands, flags := 0, 0
	for _, part := range strings.Split(page, "\n#") {
		heading, text, _ := strings.Cut(part, "\n\n")
		name, found := strings.CutPrefix(strings.TrimLeft(heading, "# "), "curfew ")
		if !found {
			continue
		}
		commands++
		_, about, _ := strings.Cut(text, "\n\n") // after the sentence and the usage
		invocations := len(regexp.MustCompile(`(?m)^    .*\bcurfew `+name+`\b`).FindAllString(text, -1))
		if !strings.Contains(page, "# curfew "+name+" ") {
			invocations-- // the usage of a command that is no group
		}
		if invocations < 1 {
			t.Errorf("curfew %s --help has no invocation", name)
		}
		if sentence, _, _ := strings.Cut(text, "\n"); strings.HasSuffix(sentence, "..") || strings.Contains(sentence, ". ") {
			t.Errorf("curfew %s: %q must be one sentence without a full stop", name, sentence)
		}
		for line := range strings.Lines(about) {
			flag, usage, isFlag := strings.Cut(strings.TrimSpace(line), "`: ")
			if !strings.HasPrefix(flag, "- `-") || !isFlag {
				continue
			}
			flags++
			if strings.Count(usage, "(default") > 1 || strings.HasSuffix(usage, ".") || usage == "" || strings.Contains(usage, "`") {
				t.Errorf("curfew %s %s: %q", name, flag, usage)
			}
		}
		_, help, _ := curfew(t, append(strings.Fields(name), "--help")...)
		for line := range strings.Lines(help) {
			if strings.Count(line, "(default: ") > 1 {
				t.Errorf("curfew %s --help: two defaults: %s", name, line)
			}
		}
	}
	if commands < 60 || flags < 250 {
		t.Errorf("the page has %d commands and %d flags", commands, flags)
	}
}
