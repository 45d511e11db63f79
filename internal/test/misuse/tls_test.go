package misuse

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// A URL can name the authority of the server and a client certificate.
func TestAURLNamesCertificates(t *testing.T) {
	addr, a := secured(t, time.Now().Add(time.Hour))
	certificate, key := a.signs(t, "client", time.Now().Add(time.Hour))
	_, other := a.signs(t, "other", time.Now().Add(time.Hour))
	late, lateKey := a.signs(t, "late", time.Now().Add(-time.Minute))
	none := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(none, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(url string) error {
		rdb, err := queue.Connect(url)
		if err != nil {
			return err
		}
		defer rdb.Close()
		q, err := queue.Open(t.Context(), rdb, queue.Config{Logger: quiet})
		if err == nil {
			_, err = q.Enqueue(t.Context(), queue.Task{Kind: "k"})
		}
		return err
	}
	for _, row := range []struct {
		claim, url string
		want       error
		says       string
	}{
		{"authority and client certificate", "rediss://" + addr + "?tls_ca=" + a.file + "&tls_cert=" + certificate + "&tls_key=" + key, nil, ""},
		{"with options of go-redis", "rediss://" + addr + "/0?pool_size=3&tls_ca=" + a.file + "&tls_cert=" + certificate + "&tls_key=" + key, nil, ""},
		{"no client certificate", "rediss://" + addr + "?tls_ca=" + a.file, refusal.ErrMismatch, "client certificate"},
		{"an expired client certificate", "rediss://" + addr + "?tls_ca=" + a.file + "&tls_cert=" + late + "&tls_key=" + lateKey, refusal.ErrMismatch, "expired"},
		{"no authority", "rediss://" + addr + "?tls_cert=" + certificate + "&tls_key=" + key, refusal.ErrMismatch, "authority"},
		{"a key of another certificate", "rediss://" + addr + "?tls_cert=" + certificate + "&tls_key=" + other, refusal.ErrInvalid, "do not match"},
		{"a certificate without a key", "rediss://" + addr + "?tls_cert=" + certificate, refusal.ErrInvalid, "both tls_cert and tls_key"},
		{"the file of the authority does not exist", "rediss://" + addr + "?tls_ca=/no/such/file", refusal.ErrInvalid, "tls_ca"},
		{"the file of the authority has no certificate", "rediss://" + addr + "?tls_ca=" + none, refusal.ErrInvalid, "PEM"},
		{"no TLS", "redis://" + addr + "?tls_ca=" + a.file, refusal.ErrInvalid, "begin with rediss://"},
	} {
		t.Run(row.claim, func(t *testing.T) {
			err := open(row.url)
			if row.want == nil && err != nil || row.want != nil && (!errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says)) {
				t.Errorf("error %v, want %v and %q", err, row.want, row.says)
			}
		})
	}
	for _, url := range []string{"rediss+cluster://" + addr + "?tls_ca=" + a.file + "&tls_cert=" + certificate + "&tls_key=" + key} {
		if err := open(url); !errors.Is(err, refusal.ErrMismatch) || !strings.Contains(err.Error(), "it is not a cluster") {
			t.Errorf("a cluster client on a single server = %v, want ErrMismatch", err)
		}
	}
}
