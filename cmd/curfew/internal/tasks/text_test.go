package tasks

import "testing"

// What an agent remembers is shown in words.
func TestEntriesOfAJournalAreShownInWords(t *testing.T) {
	for entry, want := range map[string]string{
		"wait satisfied 1 1800000000000 d\nall of 2 (a b)\na b\na b":  "waited for all of 2 (a b): satisfied at 2027-01-15T08:00:00.000Z, 2 of 2 tasks had ended",
		"wait timed_out - 1800000000000 d\nany of 3 (a b c)\na b c\n": "waited for any of 3 (a b c): timed_out at 2027-01-15T08:00:00.000Z, 0 of 3 tasks had ended",
		"step charge\n{\"paid\": 7}":                                  `step charge: {"paid": 7}`,
		"failed charge\ncard\x1b[31m refused":                         "step charge failed: card�[31m refused",
		"now 1800000000000":                                           "the time: 2027-01-15T08:00:00.000Z",
		"rand 17 18":                                                  "the seed of random numbers",
		"cancel cancelled completed":                                  "cancelled tasks: cancelled completed",
		"(hidden)":                                                    "(hidden)",
		"something of a newer version":                                "something of a newer version",
	} {
		if got := journalText(entry, false); got != want {
			t.Errorf("%q is shown as %q, want %q", entry, got, want)
		}
	}
}
