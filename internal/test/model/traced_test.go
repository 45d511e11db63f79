package model

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestATraceNoticesEachDifference(t *testing.T) {
	given := *traceFile
	defer func() { *traceFile = given }()
	*traceFile = filepath.Join(t.TempDir(), "trace")
	ctx, rdb := context.Background(), redistest.Start(t).Client(t)
	play := func(replies [3]string, message string) (differs int) {
		t.Helper()
		tr := openTrace(t, rdb)
		for n, reply := range replies {
			tr.add("reply", reply)
			if n == 1 {
				rdb.Publish(ctx, "channel", message)
			}
			if err := tr.end(ctx); err != nil {
				t.Fatal(err)
			}
		}
		tr.close(t)
		return tr.differs
	}
	play([3]string{"a", "b", "c"}, "m")
	for _, test := range []struct {
		claim   string
		replies [3]string
		message string
		want    int
	}{
		{"the same", [3]string{"a", "b", "c"}, "m", 0},
		{"another reply", [3]string{"a", "b", "d"}, "m", 3},
		{"another message", [3]string{"a", "b", "c"}, "n", 2},
	} {
		if got := play(test.replies, test.message); got != test.want {
			t.Errorf("%s: step %d differs, want %d", test.claim, got, test.want)
		}
	}
}
