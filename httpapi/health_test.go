package httpapi

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A namespace that was removed is named by /healthz and /readyz, and fails neither as long as another one is served. A Redis that
// hangs fails both, and the answer does not say that nothing was changed: they are reads.
func TestARemovedNamespaceIsNoFailureOfTheServer(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	shop, mail := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"}), queuetest.Open(t, rdb, queue.Config{Namespace: "mail"})
	s := stageOf(t, shop, Config{Silence: awaySilence})
	api, err := New(Config{Queues: []*queue.Queue{shop, mail}, Public: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.server = api
	s.listen(api.HTTPServer())
	remove := func(name string) {
		t.Helper()
		keys, err := rdb.Keys(t.Context(), name+":*").Result()
		if err != nil || len(keys) == 0 {
			t.Fatalf("the keys of %s: %v, %v", name, keys, err)
		}
		rdb.Del(t.Context(), keys...)
	}
	expect := func(path string, status int, missing string) {
		t.Helper()
		a := s.want(status, "GET", path, "")
		if got := fmt.Sprint(a.json["missing"]); got != missing || missing != "<nil>" && !strings.Contains(a.text("sentence"), "do not exist") {
			t.Errorf("%s: %s, want missing %s", path, a.body, missing)
		}
	}
	expect("/healthz", 200, "<nil>")
	expect("/readyz", 200, "<nil>")
	remove("mail")
	expect("/healthz", 200, "[mail]")
	expect("/readyz", 200, "[mail]")
	s.want(200, "GET", "/api/v1/shop/queues", "")
	remove("shop")
	expect("/healthz", 200, "[mail shop]")
	expect("/readyz", 503, "[mail shop]")

	server.Pause()
	t.Cleanup(server.Resume)
	for _, path := range []string{"/healthz", "/readyz", "/api/v1/shop/queues"} {
		if a := s.want(503, "GET", path, ""); !strings.Contains(a.body, "Redis does not answer") || strings.Contains(a.body, "changed") {
			t.Errorf("%s while Redis hangs: %s", path, a.body)
		}
	}
	server.Resume()
	await.Until(t, "Redis answers", func() bool { return s.do("GET", "/healthz", "").status == 200 })
}
