package embedded

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Clients in other languages ask for INFO when they connect, and `curfew doctor` recognizes the embedded server by it.
func TestInfoTellsThatThisIsTheEmbeddedServer(t *testing.T) {
	rdb := start(t).Client()
	var inside *redis.StringCmd
	if _, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		inside = p.Info(t.Context(), "SERVER")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, reply := range map[string]*redis.StringCmd{"all": rdb.Info(t.Context()), "server": rdb.Info(t.Context(), "server"), "in a transaction": inside} {
		if text, err := reply.Result(); err != nil || !strings.Contains(text, "\r\ncurfew_embedded:1\r\n") {
			t.Errorf("INFO %s = %q, %v", name, text, err)
		}
	}
	if text, err := rdb.Info(t.Context(), "clients").Result(); err != nil || !strings.Contains(text, "connected_clients:") {
		t.Errorf("INFO clients = %q, %v", text, err)
	}
}
