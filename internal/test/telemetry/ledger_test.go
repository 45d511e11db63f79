package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// ledger counts what happened. An entry is a word and what it is about:
//
//	created QUEUE KIND                  a task was created
//	enqueued QUEUE KIND SOURCE WHEN     the same, by whom and when it can start
//	finished QUEUE KIND STATUS REASON   a task ended
//	timeout QUEUE KIND TYPE             a task timed out
//	again QUEUE KIND                    the time of an attempt was up, and another followed
//	waited QUEUE KIND POLICY            the wait of an agent reached its limit
//	lag QUEUE TYPE                      the limit of a task, an attempt or a wait passed, and it was measured how late that was noticed
//	late QUEUE                          a worker reported an outcome after its task had timed out
//	woken MODE REASON                   an agent was woken
//	resumed QUEUE KIND                  an agent was woken because a task had timed out
//	released QUEUE KIND                 a worker gave a task back
//	ran QUEUE KIND                      an attempt ran in a worker that makes spans, until its handler returned
//
// Three entries are about one task, so that a number too many does not hide one that is missing:
//
//	timeout-of TASK, resumed-by AGENT TASK, ran-of TASK
type ledger map[string]int

// add counts n for an entry. An absent value is the word "-".
func (l ledger) add(n int, words ...string) {
	for i, word := range words {
		if word == "" {
			words[i] = "-"
		}
	}
	if entry := strings.Join(words, " "); l[entry]+n == 0 {
		delete(l, entry)
	} else {
		l[entry] += n
	}
}

// about returns the entries whose first word is one of these.
func (l ledger) about(words ...string) ledger {
	some := maps.Clone(l)
	maps.DeleteFunc(some, func(entry string, _ int) bool {
		word, _, _ := strings.Cut(entry, " ")
		return !slices.Contains(words, word)
	})
	return some
}

// sum returns the sum of the entries with a first word.
func (l ledger) sum(word string) (n int) {
	for _, more := range l.about(word) {
		n += more
	}
	return n
}

// differences returns a line for each entry that two ledgers do not share.
func differences(got, want ledger) (lines []string) {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, entry := range slices.Sorted(maps.Keys(all)) {
		if got[entry] != want[entry] {
			lines = append(lines, fmt.Sprintf("%s: %d, want %d", entry, got[entry], want[entry]))
		}
	}
	return lines
}

// same fails the test if one source of numbers differs from another in the entries with these words.
func same(t *testing.T, source string, got ledger, than string, want ledger, words ...string) {
	t.Helper()
	for _, word := range words {
		if want.sum(word) == 0 {
			t.Errorf("%s have nothing about %q, so nothing is compared", than, word)
		}
	}
	if lines := differences(got.about(words...), want.about(words...)); lines != nil {
		t.Errorf("%s differ from %s:\n%s", source, than, strings.Join(lines, "\n"))
	}
}
