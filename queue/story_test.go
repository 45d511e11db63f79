package queue_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/story"
)

// TestStories runs testdata/*.txt on a real Redis and on the embedded server.
func TestStories(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		story.Run(t, rdb, "s", "testdata")
	})
}
