package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request is made again while Redis does not answer. The error of a wrong setting, which has the same status, comes at once.
func TestOnlyRequestsThatRedisDoesNotAnswerAreRepeated(t *testing.T) {
	var words []string // of the answers that are left
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if len(words) == 0 {
			fmt.Fprint(w, `{"id":"0-A"}`)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"error":{"word":%q,"sentence":"…"}}`, words[0])
		words = words[1:]
	}))
	defer server.Close()
	client := &web{client: server.Client(), base: server.URL + "/"}
	for _, test := range []struct {
		words string
		left  int
		fails bool
	}{
		{"unavailable unavailable", 0, false},
		{"misconfigured unavailable", 1, true},
		{"unavailable no_namespace unavailable", 1, true},
		{"busy", 0, true},
	} {
		words = strings.Fields(test.words)
		var task struct{ ID string }
		err := client.do(t.Context(), "GET", "tasks", nil, &task)
		if (err != nil) != test.fails || len(words) != test.left || (err == nil) != (task.ID == "0-A") {
			t.Errorf("%s: %v, %d answers are left", test.words, err, len(words))
		}
	}
}
