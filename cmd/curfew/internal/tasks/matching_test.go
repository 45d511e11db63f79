package tasks

import "testing"

func TestHooksOfChangedTasksAreKnown(t *testing.T) {
	changed := map[string]bool{"0-a": true, "0-b.c": true}
	for id, want := range map[string]bool{
		"0-a": false, "0-a.x": false, "0-a!cancel": true, "0-a.x!cancel": true, "0-a.x.y!cancel": true, "0-b.c!cancel": true, "0-b.c.d!cancel": true,
		"0-b!cancel": false, "0-b.d!cancel": false, "0-ab!cancel": false, "0-z!cancel": false, "!cancel": false,
	} {
		if got := hookOf(id, changed); got != want {
			t.Errorf("hookOf(%q) = %v, want %v", id, got, want)
		}
	}
}
