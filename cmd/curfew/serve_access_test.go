package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, _ := x509.ParseCertificate(der)
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), file(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})), pool
}

func file(t *testing.T, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// served opens a namespace on the shared Redis, and returns the flags that name it, and the beginning of its paths.
func served(t *testing.T) (flags []string, path string) {
	server, name := redistest.Shared(t), redistest.Namespace(t)
	queuetest.Open(t, server.Client(t), queue.Config{Namespace: name})
	return []string{"--redis", "redis://" + server.Addr, "--namespace", name}, "/api/v1/" + name + "/"
}

func TestServeWithTLS(t *testing.T) {
	t.Parallel()
	flags, path := served(t)
	cert, key, pool := certificate(t)
	url, _, _ := startServe(t, append(flags, "--tls-cert", cert, "--tls-key", key)...)
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("it listens on %s", url)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url + path + "queues")
	if err != nil || answer.StatusCode != 200 || answer.TLS.Version < tls.VersionTLS12 {
		t.Fatalf("%v %v", answer, err)
	}
	answer.Body.Close()
	if _, err := http.Get(url + path + "queues"); err == nil {
		t.Error("a client that does not know the certificate accepts it")
	}
	old := &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), old); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(await.Patience))
	io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	plain, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || plain.StatusCode != 400 {
		t.Errorf("HTTP without TLS is answered with %v, %v", plain, err)
	}
}

// What is wrong with the certificate is said before anything else is tried: here no Redis runs.
func TestServeRefusesACertificateWithoutItsKey(t *testing.T) {
	cert, key, _ := certificate(t)
	_, other, _ := certificate(t)
	for _, row := range []struct{ cert, key, want string }{
		{cert, other, "does not match"},
		{key, cert, "must be a certificate and its key"},
		{cert, "/nowhere", "no such file"},
		{cert, file(t, nil), "must be a certificate and its key"},
	} {
		code, _, errs := curfew(t, "serve", "--redis", "redis://"+nobody, "--listen", "127.0.0.1:0", "--tls-cert", row.cert, "--tls-key", row.key)
		if code != 2 || !strings.Contains(errs, row.want) || strings.Contains(errs, "The server runs") {
			t.Errorf("exit code %d: %s, want %q", code, errs, row.want)
		}
	}
}

// An address that other machines reach needs --auth-none or clients that are known. TestServeRefusesBadFlags has the refusals.
func TestServeOnAPublicAddress(t *testing.T) {
	t.Parallel()
	flags, path := served(t)
	tokens := file(t, []byte("0123456789abcdef read ada\n"))
	for _, row := range []struct {
		flags  []string
		status int
		warns  bool
	}{
		{[]string{"--auth-none"}, 200, false},
		{[]string{"--auth-token-file", tokens}, 401, true},
	} {
		url, errs, _ := startServe(t, append(append(row.flags, "--listen", "0.0.0.0:0"), flags...)...)
		local := "http://127.0.0.1" + url[strings.LastIndex(url, ":"):]
		if status, text := answerTo(t, "GET", local+path+"queues", "", ""); status != row.status {
			t.Errorf("%v: %d %s", row.flags, status, text)
		}
		if warns := strings.Contains(errs.String(), "are sent in clear"); warns != row.warns {
			t.Errorf("%v: the log is %s", row.flags, errs)
		}
	}
}

// A route of each role, for clients of each role that are known by a password, or by the header of a proxy.
func TestServeLetsInByPasswordAndProxy(t *testing.T) {
	t.Parallel()
	flags, path := served(t)
	routes := []struct {
		role, method, path, body string
		status                   int
	}{
		{"read", "GET", "queues", "", 200},
		{"produce", "POST", "tasks", `{"kind":"k"}`, 201},
		{"work", "POST", "workers/w/fetch", `{"seq":1}`, 200},
		{"operate", "POST", "queues/mail/pause?force=true", "", 200},
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var passwords strings.Builder
	for _, r := range routes {
		fmt.Fprintf(&passwords, "a-%s:%s %s\n", r.role, hash, r.role)
	}
	byPassword, _, _ := startServe(t, append(flags, "--auth-basic-file", file(t, []byte(passwords.String())))...)
	for _, client := range routes {
		byProxy, _, _ := startServe(t, append(flags, "--auth-proxy-header", "X-Remote-User", "--auth-proxy-roles", client.role)...)
		for _, r := range routes {
			may := client.role == r.role || client.role == "operate" || r.role == "read"
			want := 403
			if may {
				want = r.status
			}
			for _, as := range []struct {
				url      string
				identify func(*http.Request)
				want     int
			}{
				{byPassword, func(r *http.Request) { r.SetBasicAuth("a-"+client.role, "secret") }, want},
				{byPassword, func(r *http.Request) { r.SetBasicAuth("a-"+client.role, "Secret") }, 401},
				{byProxy, func(r *http.Request) { r.Header.Set("X-Remote-User", "ada") }, want},
				{byProxy, func(*http.Request) {}, 401},
			} {
				if got := statusOf(t, r.method, as.url+path+r.path, r.body, as.identify); got != as.want {
					t.Errorf("%s %s at %s as a client with the role %s: %d, want %d", r.method, r.path, as.url, client.role, got, as.want)
				}
			}
		}
	}
}

// statusOf makes a request, which identify changes first.
func statusOf(t *testing.T, method, url, body string, identify func(*http.Request)) int {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	identify(r)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}
