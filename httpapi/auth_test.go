package httpapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/refusal"
)

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = values }
}

// What a client sends as its token, password or name, and whether it is known.
func TestClientsAreKnownByWhatTheySend(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	bearers, err := Tokens(tokenFile(t, tokens), quiet)
	if err != nil {
		t.Fatal(err)
	}
	passwords, err := Basic(tokenFile(t, fmt.Sprintf("ada:%s read\n", hash)), quiet)
	if err != nil {
		t.Fatal(err)
	}
	basic := func(name, secret string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, secret) }
	}
	s := newStage(t, Config{Auth: []Authenticator{bearers, passwords}})
	for _, row := range []struct {
		what   string
		change func(*http.Request)
		known  bool
	}{
		{"a token", as("a-reader"), true},
		{"the scheme in small letters", header("Authorization", "bearer token-of-a-reader"), true},
		{"no header", header("X", "y"), false},
		{"an empty header", header("Authorization", ""), false},
		{"a scheme alone", header("Authorization", "Bearer"), false},
		{"an empty token", header("Authorization", "Bearer "), false},
		{"a token without a scheme", header("Authorization", "token-of-a-reader"), false},
		{"a token in capitals", header("Authorization", "Bearer TOKEN-OF-A-READER"), false},
		{"the beginning of a token", header("Authorization", "Bearer token-of-a-reade"), false},
		{"more than a token", header("Authorization", "Bearer token-of-a-reader x"), false},
		{"a line of the file", header("Authorization", "Bearer token-of-a-reader read reader"), false},
		{"two headers, the first one right", header("Authorization", "Bearer token-of-a-reader", "Bearer wrong"), false},
		{"two headers, both right", header("Authorization", "Bearer token-of-a-reader", "Bearer token-of-a-reader"), false},
		{"a password", basic("ada", "secret"), true},
		{"a password again, from memory", basic("ada", "secret"), true},
		{"a wrong password", basic("ada", "Secret"), false},
		{"no password", basic("ada", ""), false},
		{"a name in capitals", basic("Ada", "secret"), false},
		{"a name that does not exist", basic("eve", "secret"), false},
		{"a password that is longer than bcrypt reads", basic("ada", "secret"+strings.Repeat("x", 80)), false},
		{"the hash", basic("ada", string(hash)), false},
		{"text that is not base64", header("Authorization", "Basic !!!"), false},
		{"a name without a colon", header("Authorization", "Basic YWRh"), false},
		{"two passwords", header("Authorization", "Basic YWRhOnNlY3JldA==", "Basic YWRhOnNlY3JldA=="), false},
	} {
		if a := s.do("GET", "queues", "", row.change); a.status != map[bool]int{true: 200, false: 401}[row.known] {
			t.Errorf("%s: %d %s", row.what, a.status, a.body)
		}
	}
	if strings.Contains(s.log.String(), "secret") {
		t.Errorf("the log has a password: %s", s.log)
	}
}

// The header of a proxy counts only once, and only from its address.
func TestAProxyIsBelievedFromItsAddressOnly(t *testing.T) {
	for _, row := range []struct {
		from   string
		values []string
		status int
	}{
		{"127.0.0.0/8", []string{"ada"}, 200},
		{"10.0.0.0/8", []string{"ada"}, 401},
		{"127.0.0.0/8", nil, 401},
		{"127.0.0.0/8", []string{""}, 401},
		{"127.0.0.0/8", []string{"ada", "root"}, 401},
		{"127.0.0.0/8", []string{strings.Repeat("a", 257)}, 401},
	} {
		auth, err := Proxy("X-Remote-User", []netip.Prefix{netip.MustParsePrefix(row.from)}, []Role{Read})
		if err != nil {
			t.Fatal(err)
		}
		s := newStage(t, Config{Auth: []Authenticator{auth}})
		forwarded := header("X-Forwarded-For", "10.0.0.1") // anybody can write this one
		if a := s.do("GET", "queues", "", header("X-Remote-User", row.values...), forwarded); a.status != row.status {
			t.Errorf("%.60q from %s: %d %s", row.values, row.from, a.status, a.body)
		}
		if a := s.do("POST", "tasks", `{"kind":"k"}`, header("X-Remote-User", row.values...)); a.status == 201 {
			t.Errorf("%.60q changes something with the role read", row.values)
		}
	}
}

func TestAProxyNeedsTheNameOfAHeader(t *testing.T) {
	for _, name := range []string{"", "X Remote User", " X", "X-Remote:User", "X-Rémote", "X\x7f", "X\n"} {
		if _, err := Proxy(name, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []Role{Read}); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A file that cannot be read stops the start. Later it changes nothing, is logged once, and counts when it can be read again.
func TestAFileOfClientsThatCannotBeRead(t *testing.T) {
	if _, err := Tokens(t.TempDir()+"/none", nil); err == nil {
		t.Error("a file that does not exist is accepted")
	}
	if _, err := Basic(tokenFile(t, ""), nil); err == nil {
		t.Error("an empty file is accepted")
	}
	path, log := tokenFile(t, tokens), &harness.Logs{}
	reads := 0
	file, err := watchFile(path, slog.New(slog.NewTextHandler(log, nil)), func(text string) (int, error) {
		if reads++; reads == 2 {
			return 0, fmt.Errorf("not now")
		}
		return reads, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	look := func() int {
		file.mu.Lock()
		file.looked = file.looked.Add(-2 * reloadAfter)
		file.mu.Unlock()
		return file.get()
	}
	os.Chmod(path, 0o400) // no new text and no new time: only the mode
	for range 3 {
		if n := look(); n != 1 {
			t.Errorf("the broken file gives %d", n)
		}
	}
	os.Chmod(path, 0o600)
	if n := look(); n != 3 || strings.Count(log.String(), "not now") != 1 {
		t.Errorf("the mended file gives %d, and the log is %s", n, log)
	}
}

// A refused request is not logged as a change, and each change is logged with who.
func TestOnlyChangesAreLoggedAsChanges(t *testing.T) {
	s := newStage(t, withTokens(t))
	s.want(403, "POST", "tasks", `{"kind":"k"}`, as("a-reader"))
	s.want(401, "POST", "tasks", `{"kind":"k"}`, as("nobody"))
	for _, row := range []struct {
		who, path, body, line string
		status                int
	}{
		{"a-producer", "tasks", `{"kind":"k","no":1}`, `"HTTP change refused" who=producer`, 400},
		{"a-producer", "tasks", `{"kind":"k"}`, `"HTTP change" who=producer`, 201},
		{"an-operator", "queues/q/pause?force=true", "", `"HTTP change" who=operator`, 200},
		{"a-worker", "workers/w/fetch", `{"seq":1}`, `"HTTP change" who=worker`, 200},
	} {
		s.log.Reset()
		s.want(row.status, "POST", row.path, row.body, as(row.who))
		await.Until(t, "the line", func() bool { return strings.Contains(s.log.String(), "HTTP change") })
		if text := s.log.String(); !strings.Contains(text, row.line) || strings.Count(text, "HTTP change") != 1 {
			t.Errorf("%s as %s is logged as %s", row.path, row.who, text)
		}
	}
}

// Changes of pages: what a browser says about where a request is from decides.
func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	s := newStage(t, Config{Origins: []string{"https://ops.example.com"}})
	for _, row := range []struct {
		what   string
		change func(*http.Request)
		status int
	}{
		{"no browser", header("X", "y"), 201},
		{"a page of this server", header("Sec-Fetch-Site", "same-origin"), 201},
		{"the address line", header("Sec-Fetch-Site", "none"), 201},
		{"a page of the same site", header("Sec-Fetch-Site", "same-site"), 403},
		{"a page of another site", header("Sec-Fetch-Site", "cross-site"), 403},
		{"an old browser, of this server", func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }, 201},
		{"an old browser, of another server", header("Origin", "http://evil.example"), 403},
		{"a page without an origin", header("Origin", "null"), 403},
		{"an allowed origin", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "https://ops.example.com")
		}, 201},
		{"an allowed name without TLS", func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "http://ops.example.com")
		}, 403},
	} {
		a := s.do("POST", "tasks", `{"kind":"k"}`, row.change)
		if a.status != row.status || a.status == 403 && (a.word() != "cross_site" || a.field() != "Origin") {
			t.Errorf("%s: %d %s", row.what, a.status, a.body)
		}
	}
	s.want(200, "GET", "queues", "", header("Sec-Fetch-Site", "cross-site"))
}

// Who tries many passwords at once keeps neither the server nor other clients busy.
func TestFewPasswordsAreCheckedAtOnce(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	f, err := watchFile(tokenFile(t, fmt.Sprintf("ada:%s read\n", hash)), slog.New(slog.DiscardHandler), readPasswords)
	if err != nil {
		t.Fatal(err)
	}
	b := &basic{file: f, checked: map[[sha256.Size]byte]time.Time{}, busy: make(chan struct{}, 1), line: map[string]int{}}
	s := newStage(t, Config{Auth: []Authenticator{b.identify}})
	guess := func(address, secret string) int {
		r := httptest.NewRequest("GET", s.base+"queues", nil)
		r.Host, r.RemoteAddr = "localhost", address+":4711"
		r.SetBasicAuth("ada", secret)
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		return w.Code
	}
	if status := guess("10.0.0.9", "secret"); status != 200 {
		t.Fatalf("the right password: %d", status)
	}
	b.busy <- struct{}{} // a check that takes long
	answers := make(chan int, 2*checksWaiting)
	inLine := func() int { b.mu.Lock(); defer b.mu.Unlock(); return b.inLine }
	for i := range checksWaiting {
		address := fmt.Sprintf("10.0.0.%d", i/checksPerAddress)
		go func() { answers <- guess(address, fmt.Sprint("wrong", i)) }()
		await.Until(t, "the request stands in line", func() bool { return inLine() == i+1 })
		if i+1 == checksPerAddress {
			if status := guess(address, "another"); status != 429 {
				t.Errorf("more passwords of an address: %d", status)
			}
		}
	}
	if status := guess("10.1.1.1", "another"); status != 429 {
		t.Errorf("more passwords than the server checks: %d", status)
	}
	if status := guess("10.0.0.0", "secret"); status != 200 {
		t.Errorf("a password that is remembered: %d", status)
	}
	<-b.busy
	for range checksWaiting {
		if status := await.Receive(t, answers, "an answer"); status != 401 {
			t.Errorf("a wrong password: %d", status)
		}
	}
	if n := inLine(); n != 0 || len(b.line) != 0 {
		t.Errorf("%d requests stand in line, of %d addresses", n, len(b.line))
	}
}
