package httprequest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// most is how many bytes an answer can have.
const most = 1 << 16

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
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, most+1)) })
	mux.HandleFunc("/break", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "short")
	})
	mux.HandleFunc("/same", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Type", r.Header.Get("Content-Type"))
		w.Header().Set("X-Method", r.Method)
		io.Copy(w, r.Body)
	})
	mux.HandleFunc("/many/{bytes}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("bytes"))
		io.WriteString(w, strings.Repeat(r.URL.Query().Get("of"), n))
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
	base, c := serve(t), New(loopback, most)
	got, err := c.Do(t.Context(), Request{URL: base + "/echo?n=7", Headers: map[string]string{"X-Key": "k"}, Body: json.RawMessage(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	object, _ := got.Body.(map[string]any)
	if got.Status != 200 || object["method"] != "POST" || object["type"] != "application/json" || object["key"] != "k" || object["length"] != 7 || got.Headers["content-type"] == "" {
		t.Errorf("the answer is %+v", got)
	}
	got, err = c.Do(t.Context(), Request{URL: base + "/moved"})
	if err != nil || got.Body.(map[string]any)["method"] != "GET" {
		t.Errorf("after a redirect: %+v, %v", got, err)
	}
}

// Numbers arrive as they were written, in a body and in an answer.
func TestLargeNumbersStayTheSame(t *testing.T) {
	base, c := serve(t), New(loopback, most)
	for body, want := range map[string]string{
		`{"id":1234567890123456789,"large":[18446744073709551615,123456789012345678901234567890],"f":2.5,"text":"<é>"}`: `{"f":2.5,"id":1234567890123456789,"large":[18446744073709551615,123456789012345678901234567890],"text":"\u003cé\u003e"}`,
		`9007199254740993`: `9007199254740993`, `[1e400]`: `[1e400]`, `false`: `false`, `"\"quoted\""`: `"quoted"`, `"no JSON"`: `"no JSON"`, `null`: `""`, ``: `""`,
	} {
		var in Request
		payload := `{"url":"` + base + `/same"`
		if body != "" {
			payload += `,"body":` + body
		}
		if err := json.Unmarshal([]byte(payload+"}"), &in); err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(answer.Body)
		if err != nil || string(got) != want {
			t.Errorf("%s comes back as %s, want %s (%v)", body, got, want, err)
		}
		method, isJSON := "POST", "application/json"
		if want == `""` {
			method = "GET"
		}
		if strings.HasPrefix(want, `"`) {
			isJSON = ""
		}
		if h := answer.Headers; h["x-method"] != method || h["x-type"] != isJSON {
			t.Errorf("%s is sent with %s as %q", body, h["x-method"], h["x-type"])
		}
	}
}

// An answer fits in a result, with its headers and as JSON, or says that it does not.
func TestAnAnswerFitsInAResult(t *testing.T) {
	base, c := serve(t), New(loopback, most)
	for path, want := range map[string]string{
		"/many/65000?of=x": "", "/many/65536?of=x": "as JSON with its headers, the limit is 65536", "/many/30000?of=%22": "", "/many/40000?of=%22": "has 80", "/many/65537?of=x": "more than 65536 bytes",
	} {
		answer, err := c.Do(t.Context(), Request{URL: base + path})
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want) || worker.VerdictOf(err).Class != queue.ClassFailed):
			t.Errorf("%s: %v", path, err)
		case err == nil:
			if text, err := json.Marshal(answer); err != nil || len(text) > most {
				t.Errorf("%s: a result of %d bytes: %v", path, len(text), err)
			}
		}
	}
}

// A status says whether another attempt makes sense.
func TestTheStatusIsAVerdict(t *testing.T) {
	base, c := serve(t), New(loopback, most)
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
		{"/large", queue.ClassFailed, 0, 0, "more than 65536 bytes"},
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
	c := New(loopback, most)
	for _, test := range []struct {
		in   Request
		want string
	}{
		{Request{}, "must begin with http"}, {Request{URL: "file:///etc/passwd"}, "must begin with http"}, {Request{URL: "http://"}, "names no host"},
		{Request{URL: "http://a b"}, "cannot be read"}, {Request{URL: "http://127.0.0.1:1/", Method: "G ET"}, "the method"},
		{Request{URL: "http://127.0.0.1:1/", Headers: map[string]string{"a b": ""}}, "the header"},
		{Request{URL: "http://127.0.0.1:1/", Headers: map[string]string{"a": "b\r\nc: d"}}, "the header"},
	} {
		_, err := c.Do(t.Context(), test.in)
		if err == nil || worker.VerdictOf(err).Class != queue.ClassFailed || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.in, err)
		}
	}
}

// No request outlives its context.
func TestARequestEndsWithItsContext(t *testing.T) {
	base, c := serve(t), New(loopback, most)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Do(ctx, Request{URL: base + "/hang"}); err == nil || ctx.Err() == nil {
		t.Errorf("it returns %v", err)
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A redirect to another host gets no header of the request: another port is another host.
func TestHeadersGoToOneHost(t *testing.T) {
	got := make(chan http.Header, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	defer other.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/there":
			got <- r.Header
		default:
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
	}))
	defer first.Close()
	for path, want := range map[string]string{"/here": "secret", "/away": ""} {
		if _, err := New(loopback, most).Do(t.Context(), Request{URL: first.URL + path, Headers: map[string]string{"X-Api-Key": "secret"}}); err != nil {
			t.Fatal(err)
		}
		if key := (<-got).Get("X-Api-Key"); key != want {
			t.Errorf("after %s the key is %q, want %q", path, key, want)
		}
	}
}

// A client looks at the address that it connects to, whatever name it was given.
func TestPrivateAddressesAreRefused(t *testing.T) {
	base, c := serve(t), New(nil, most)
	for _, u := range []string{base + "/echo?n=1", strings.Replace(base, "127.0.0.1", "localhost", 1) + "/echo?n=1"} {
		_, err := c.Do(t.Context(), Request{URL: u})
		if err == nil || worker.VerdictOf(err).Class != queue.ClassFailed || !strings.Contains(err.Error(), "private network") {
			t.Errorf("%s: %v", u, err)
		}
	}
	if err := permitted(append(loopback, netip.MustParsePrefix("fd00::/8")), "[::ffff:127.0.0.1]:80"); err != nil {
		t.Errorf("an allowed address in another form: %v", err)
	}
	if err := permitted(loopback, "10.0.0.1:80"); err == nil {
		t.Error("an address that is not allowed is permitted")
	}
	for address, want := range map[string]bool{
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.1.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false,
		"168.63.129.16": false, "192.88.99.1": false, "::127.0.0.1": false, "::ffff:0:127.0.0.1": false, "3fff::1": false, "5f00::1": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "ff02::1": false, "fec0::1": false, "feff::1": false,
		"1.1.1.1": true, "172.32.0.1": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
	}
}
