package programs

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// The request that is one too many is refused at once, and a place that is free again is used.
func TestRequestsAtOnceAreLimited(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	limited := atOnce(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	}))
	ask := func() int {
		answer := httptest.NewRecorder()
		limited.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return answer.Code
	}
	codes := make(chan int, 3)
	for range 2 {
		go func() { codes <- ask() }()
		await.Receive(t, begun, "a request begins")
	}
	if code := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("the third request is answered with %d, want 503", code)
	}
	end <- struct{}{}
	if code := await.Receive(t, codes, "an answer"); code != http.StatusOK {
		t.Errorf("the first request is answered with %d", code)
	}
	go func() { codes <- ask() }()
	await.Receive(t, begun, "a request begins after another has ended")
	close(end)
	for range 2 {
		await.Receive(t, codes, "an answer")
	}
}
