package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// startServe runs curfew serve on a free port until stop, which returns its exit code. url is where it listens.
func startServe(t *testing.T, args ...string) (url string, errs *log, stop func() int) {
	t.Helper()
	errs = &log{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"curfew", "serve", "--listen", "127.0.0.1:0"}, args...), io.Discard, errs)
	}()
	stop = func() int {
		cancel()
		return await.Receive(t, ended, "curfew serve ends")
	}
	t.Cleanup(cancel)
	errs.await(t, "The server runs")
	return regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(errs.String())[1], errs, stop
}

func answerTo(t *testing.T, method, url, body, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// Two namespaces are served to those with a token. When the command ends, a request that waits is answered.
func TestServeServesTheNamespacesUntilItIsInterrupted(t *testing.T) {
	server := redistest.Start(t)
	for _, name := range []string{"shop", "mail"} {
		queuetest.Open(t, server.Client(t), queue.Config{Namespace: name})
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef produce billing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, errs, stop := startServe(t, "--redis", "redis://"+server.Addr, "--namespace", "shop,mail", "--auth-token-file", tokens)
	for _, name := range []string{"shop", "mail"} {
		if status, text := answerTo(t, "GET", url+"/api/v1/"+name+"/queues", "", "0123456789abcdef"); status != 200 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _ := answerTo(t, "GET", url+"/api/v1/shop/queues", "", ""); status != 401 {
		t.Errorf("nobody is answered with %d", status)
	}
	status, text := answerTo(t, "POST", url+"/api/v1/shop/tasks", `{"kind":"k","id":"0-A1","payload":"secret"}`, "0123456789abcdef")
	if status != 201 || !strings.Contains(text, `"id":"0-A1"`) {
		t.Errorf("enqueue: %d %s", status, text)
	}
	errs.await(t, "who=billing method=POST route=tasks namespace=shop task_id=0-A1 status=201")
	waiting := make(chan string, 1)
	go func() {
		_, text := answerTo(t, "GET", url+"/api/v1/shop/tasks/0-A1/result?wait=60s", "", "0123456789abcdef")
		waiting <- text
	}()
	await.Until(t, "the request waits", func() bool {
		return server.Client(t).PubSubNumSub(context.Background(), "curfew").Err() == nil && strings.Contains(server.Client(t).ClientList(context.Background()).Val(), "sub=1")
	})
	if code := stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if text := await.Receive(t, waiting, "the answer"); !strings.Contains(text, `"status":"PENDING"`) {
		t.Errorf("a request that waits is answered with %s", text)
	}
	if strings.Contains(errs.String(), "secret") || strings.Contains(errs.String(), "0123456789abcdef") {
		t.Errorf("the log has a payload or a token: %s", errs)
	}
}

// The API answers what the commands print.
func TestServeAnswersWhatTheCommandsPrint(t *testing.T) {
	rdb, at := database(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	id := queuetest.Enqueue(t, q, queue.Task{Kind: "render", Queue: "mail", Timeout: time.Hour}).ID
	w.Settle(t, queue.Outcome{ID: id, Epoch: w.Take(t, id, "mail").Epoch, Verb: queue.Complete, Result: []byte("1")})
	if err := q.DefineKind(t.Context(), "render", queue.Defaults{Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	url, _, _ := startServe(t, "--redis", at)
	for command, path := range map[string]string{"queue get mail": "queues/mail", "kind get render": "kinds/render", "worker get w1": "workers/w1"} {
		_, want, _ := curfew(t, append(strings.Fields(command), "-o", "json", "--redis", at)...)
		if status, got := answerTo(t, "GET", url+"/api/v1/curfew/"+path, "", ""); status != 200 || got != want {
			t.Errorf("%s is answered with %d %s, and curfew %s prints %s", path, status, got, command, want)
		}
	}
}

// The server starts while Redis is away, and serves when Redis is there.
func TestServeStartsWhileRedisIsAway(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes")
	queuetest.Open(t, server.Client(t), queue.Config{})
	server.Kill()
	url, errs, stop := startServe(t, "--redis", "redis://"+server.Addr)
	inTime(t, func(time.Duration) error {
		runs := aCall(t, "redis://"+server.Addr)
		status, text := answerTo(t, "GET", url+"/healthz", "", "")
		if soon := runs(); status != 503 || !soon {
			return lateIf(status == 503, fmt.Errorf("/healthz: %d %s, before a call is given up: %v", status, text, soon))
		}
		return nil
	})
	errs.await(t, "Redis does not answer yet")
	if status, text := answerTo(t, "GET", url+"/readyz", "", ""); status != 503 {
		t.Errorf("/readyz: %d %s", status, text)
	}
	if status, text := answerTo(t, "GET", url+"/api/v1/curfew/queues", "", ""); status != 503 {
		t.Errorf("queues: %d %s", status, text)
	}
	server.Restart(t)
	await.Until(t, "requests are answered", func() bool {
		status, _ := answerTo(t, "GET", url+"/api/v1/curfew/queues", "", "")
		return status == 200
	})
	if code := stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestServeRefusesBadFlags(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(bad, []byte("short read x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ args, want string }{
		{"--listen 0.0.0.0:0", "can be reached from other machines: give --auth-token-file"},
		{"--listen :0", "can be reached from other machines"},
		{"--listen 127.0.0.1", "--listen"},
		{"--auth-token-file " + bad, "line 1"},
		{"--auth-token-file /nowhere", "--auth-token-file /nowhere: no such file"},
		{"--auth-none --auth-token-file " + bad, "--auth-token-file"},
		{"--auth-proxy-from 10.0.0.1", "need --auth-proxy-header"},
		{"--auth-proxy-header X --auth-proxy-from ten", "must be an address or a network"},
		{"--auth-proxy-header X --auth-proxy-roles admin", "must be read, produce, work or operate"},
		{"--tls-cert x", "need each other"},
		{"--max-wait 0s", "--max-wait 0s must be from 1ms"},
		{"--namespace shop,", "--namespace must not be empty"},
		{"--rate -1", "--rate"},
		{"--rate 0", "leave it out for no limit"},
		{"--namespace shop,mail,shop", "--namespace names shop twice: name it once"},
		{"--metrics-prefix 9x", `--metrics-prefix "9x" must be letters, digits and _, and must not begin with a digit`},
		{"--metrics-prefix a:b", `--metrics-prefix "a:b" must be letters`},
		{"--metrics-prefix=", "--metrics-prefix is empty"},
		{"now", "serve takes no argument"},
	} {
		if code, _, errs := curfew(t, append([]string{"serve"}, strings.Fields(row.args)...)...); code != 2 || !strings.Contains(errs, row.want) {
			t.Errorf("serve %s: %d %s, want %q", row.args, code, errs, row.want)
		}
	}
}

// A name that is mistyped creates no namespace. With --create, it does.
func TestServeCreatesNamespacesOnRequestOnly(t *testing.T) {
	rdb, at := database(t)
	if code, _, errs := curfew(t, "serve", "--redis", at, "--listen", "127.0.0.1:0", "--namespace", "shop"); code != 3 || !strings.Contains(errs, "--create") {
		t.Errorf("without the namespace: %d %s", code, errs)
	}
	if n, err := rdb.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys were made: %v", n, err)
	}
	url, errs, stop := startServe(t, "--redis", at, "--namespace", "shop,mail", "--create")
	for _, name := range []string{"shop", "mail"} {
		if status, text := answerTo(t, "POST", url+"/api/v1/"+name+"/tasks", `{"kind":"k"}`, ""); status != 201 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A namespace that is lost while it is served is not created again by the server, also with --create: it would have other settings, and
// nobody would notice the loss. When an operator has created it, the server serves it.
func TestServeDoesNotCreateALostNamespaceAgain(t *testing.T) {
	server := redistest.Start(t)
	rdb, at := server.Client(t), "redis://"+server.Addr
	url, errs, _ := startServe(t, "--redis", at, "--namespace", "shop", "--create")
	tasks := url + "/api/v1/shop/tasks"
	if status, text := answerTo(t, "POST", tasks, `{"kind":"k"}`, ""); status != 201 {
		t.Fatalf("before: %d %s", status, text)
	}
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status, text := answerTo(t, "POST", tasks, `{"kind":"k"}`, ""); status != 503 || !strings.Contains(text, `"no_namespace"`) || !strings.Contains(text, "curfew namespace create") {
			t.Errorf("after the loss: %d %s", status, text)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} { // a restart would not bring it back
		if status, text := answerTo(t, "GET", url+path, "", ""); status != want || !strings.Contains(text, `"missing":["shop"]`) {
			t.Errorf("%s after the loss: %d %s, want %d", path, status, text, want)
		}
	}
	if n, err := rdb.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys were made: %v", n, err)
	}
	if code, out, errs := curfew(t, "namespace", "create", "shop", "--redis", at); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if status, text := answerTo(t, "POST", tasks, `{"kind":"k"}`, ""); status != 201 {
		t.Errorf("created again: %d %s", status, text)
	}
	if n := strings.Count(errs.String(), "has lost the namespace"); n != 1 {
		t.Errorf("the loss is logged %d times: %s", n, errs)
	}
}

// After SIGTERM, whoever looks at /readyz learns that the server stops while it still listens.
func TestServeIsNotReadyWhileItStops(t *testing.T) {
	_, at := database(t)
	url, errs, stop := startServe(t, "--redis", at, "--create")
	if status, text := answerTo(t, "GET", url+"/readyz", "", ""); status != 200 {
		t.Fatalf("/readyz: %d %s", status, text)
	}
	ended := make(chan int, 1)
	go func() { ended <- stop() }()
	await.Until(t, "/readyz says so", func() bool {
		answer, err := http.Get(url + "/readyz")
		if err != nil {
			t.Fatalf("/readyz while the server stops: %v", err)
		}
		answer.Body.Close()
		return answer.StatusCode == 503
	})
	if code := await.Receive(t, ended, "the end"); code != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
