package httprequest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// serve returns a server with the answers that the tests need.
func serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Write([]byte(`{"method":"` + r.Method + `","type":"` + r.Header.Get("Content-Type") + `","key":"` + r.Header.Get("X-Key") + `","length":` + r.URL.Query().Get("n") + `}`))
		w.Write([]byte(strings.Repeat(" ", len(body))))
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		codes := map[string]int{"404": 404, "408": 408, "429": 429, "500": 500, "503": 503, "304": 304}
		w.WriteHeader(codes[r.PathValue("code")])
		io.WriteString(w, "the reason\nand more")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxAnswer+1)) })
	mux.HandleFunc("/break", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "short")
	})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", http.StatusFound) })
	mux.HandleFunc("/https", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/echo?n=1", http.StatusFound) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestAnAnswerIsAValue(t *testing.T) {
	base, c := serve(t), New(false)
	got, err := c.Do(t.Context(), Request{URL: base + "/echo?n=7", Headers: map[string]string{"X-Key": "k"}, Body: map[string]any{"a": 1}})
	if err != nil {
		t.Fatal(err)
	}
	object, _ := got.Body.(map[string]any)
	if got.Status != 200 || object["method"] != "POST" || object["type"] != "application/json" || object["key"] != "k" || object["length"] != 7.0 || got.Headers["content-type"] == "" {
		t.Errorf("the answer is %+v", got)
	}
	got, err = c.Do(t.Context(), Request{URL: base + "/moved"})
	if err != nil || got.Body.(map[string]any)["method"] != "GET" {
		t.Errorf("after a redirect: %+v, %v", got, err)
	}
}

// A status says whether another attempt makes sense.
func TestTheStatusIsAVerdict(t *testing.T) {
	base, c := serve(t), New(false)
	for _, test := range []struct {
		path  string
		class queue.Class
		code  int
		delay time.Duration
		text  string
	}{
		{"/status/404", queue.ClassFailed, 404, 0, "404 Not Found: the reason"},
		{"/status/304", queue.ClassFailed, 304, 0, "304 Not Modified"},
		{"/status/408", queue.ClassError, 408, 0, "408 Request Timeout: the reason"},
		{"/status/429?after=7", queue.ClassError, 429, 7 * time.Second, "429 Too Many Requests"},
		{"/status/500?after=soon", queue.ClassError, 500, 0, "500 Internal"},
		{"/status/503", queue.ClassError, 503, 0, "503 Service"},
		{"/large", queue.ClassFailed, 0, 0, "more than 1048576 bytes"},
		{"/break", queue.ClassError, 0, 0, "broke off"},
		{"/circle", queue.ClassFailed, 0, 0, "more than 10 times"},
		{"/https", queue.ClassFailed, 0, 0, "which is not http"},
	} {
		_, err := c.Do(t.Context(), Request{URL: base + test.path})
		o := worker.VerdictOf(err)
		if err == nil || o.Class != test.class || o.Code != test.code || o.Delay != test.delay || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %s with code %d after %v: %v", test.path, o.Class, o.Code, o.Delay, err)
		}
	}
}

func TestARequestThatCannotBeMadeIsRefused(t *testing.T) {
	c := New(false)
	for _, test := range []struct {
		in   Request
		want string
	}{
		{Request{}, "must begin with http"}, {Request{URL: "file:///etc/passwd"}, "must begin with http"}, {Request{URL: "http://"}, "names no host"},
		{Request{URL: "http://a b"}, "cannot be read"}, {Request{URL: "http://127.0.0.1:1/", Method: "G ET"}, "the method"},
		{Request{URL: "http://127.0.0.1:1/", Headers: map[string]string{"a b": ""}}, "the header"},
		{Request{URL: "http://127.0.0.1:1/", Headers: map[string]string{"a": "b\r\nc: d"}}, "the header"},
		{Request{URL: "http://127.0.0.1:1/", Body: func() {}}, "as JSON"},
	} {
		_, err := c.Do(t.Context(), test.in)
		if err == nil || worker.VerdictOf(err).Class != queue.ClassFailed || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.in, err)
		}
	}
}

// No request outlives its context.
func TestARequestEndsWithItsContext(t *testing.T) {
	base, c := serve(t), New(false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Do(ctx, Request{URL: base + "/hang"}); err == nil || ctx.Err() == nil {
		t.Errorf("it returns %v", err)
	}
}

// A client for public addresses looks at the address that it connects to, whatever name it was given.
func TestPrivateAddressesAreRefused(t *testing.T) {
	base, c := serve(t), New(true)
	for _, u := range []string{base + "/echo?n=1", strings.Replace(base, "127.0.0.1", "localhost", 1) + "/echo?n=1"} {
		_, err := c.Do(t.Context(), Request{URL: u})
		if err == nil || worker.VerdictOf(err).Class != queue.ClassFailed || !strings.Contains(err.Error(), "private network") {
			t.Errorf("%s: %v", u, err)
		}
	}
	for address, want := range map[string]bool{
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.1.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "ff02::1": false,
		"1.1.1.1": true, "172.32.0.1": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
	}
}
