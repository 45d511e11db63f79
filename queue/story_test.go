package queue_test

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/story"
)

// TestStories runs testdata/*.txt on a real Redis, and a part of them on the embedded server.
func TestStories(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	t.Run("redis", func(t *testing.T) {
		story.Run(t, redistest.Start(t).Client(t), "s", "testdata", func(string) bool { return true })
	})
	t.Run("embedded", func(t *testing.T) {
		story.Run(t, redistest.Embedded(t).Client(), "s", "testdata", func(name string) bool { return size.Drawn(name, 4) })
	})
}

func TestStoriesWithAClockThatIsSetBack(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rdb := redistest.Start(t).Client(t)
	played := story.SetBack(t, rdb, "b", "testdata", func(point string) bool { return size.Drawn(point, 16) })
	if t.Logf("%d stories with one step back", played); played < 100 {
		t.Error("few stories were played")
	}
}
