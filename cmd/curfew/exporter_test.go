package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// exported waits until a process says where it serves its metrics, and returns the address.
func exported(t *testing.T, of interface{ String() string }) string {
	t.Helper()
	address := regexp.MustCompile(`url=http://(\S+)/metrics`)
	await.Until(t, "the log has the address of the metrics", func() bool { return address.MatchString(of.String()) })
	return address.FindStringSubmatch(of.String())[1]
}

// scraped returns the status and the text of a scrape.
func scraped(t *testing.T, address, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 2 * time.Minute}
	response, err := client.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// closed fails the test if a metric can still be read at an address. Another process may have got the port meanwhile.
func closed(t *testing.T, address, metric string) {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); strings.Contains(string(text), metric) {
		t.Error("the address is still open after the end of the command")
	}
}

// A command ignores that its task has timed out. The scrape shows the handler that still runs, until it is killed.
func TestWorkExportsItsHandlers(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	p := s.start("--kind", "k", "--concurrency", "3", "--grace", "1h", "--metrics-listen", "127.0.0.1:0", "--metrics-prefix", "shop_", "--", "/bin/sh", "-c", stubborn)
	address := exported(t, p.log)
	await.Until(t, "the worker is exported", func() bool {
		_, text := scraped(t, address, "/metrics")
		return strings.Contains(text, `shop_worker_slots{namespace="`+s.q.Namespace()+`"} 3`) && strings.Contains(text, `shop_worker_stray{namespace="`+s.q.Namespace()+`"} 0`)
	})
	inTime(t, func(slower time.Duration) error {
		id := s.enqueue(queue.Task{Timeout: slower * 300 * time.Millisecond})
		await.Until(t, "the task has timed out", func() bool { return s.record(id).Status == queue.Failed })
		if _, err := os.Stat(filepath.Join(s.folder, "pid")); err != nil {
			return lateError{fmt.Errorf("the task timed out before its command ran: %v", err)}
		}
		return nil
	})
	stray := regexp.MustCompile(`shop_worker_stray{namespace="` + s.q.Namespace() + `"} [1-9]`)
	await.Until(t, "a handler is stray", func() bool {
		_, text := scraped(t, address, "/metrics")
		return stray.MatchString(text)
	})
	_, text := scraped(t, address, "/metrics")
	for _, want := range []string{"shop_worker_attempts_started_total{", "shop_reaper_batches_total{", `shop_script_duration_seconds_count{`, "shop_clock_offset_seconds{", "shop_build_info{", "go_goroutines "} {
		if !strings.Contains(text, want) {
			t.Errorf("a scrape has no %s:\n%s", want, text)
		}
	}
	for _, namespaced := range []string{"shop_up", "shop_tasks", "shop_deadlines"} { // curfew serve exports those
		if strings.Contains(text, "\n"+namespaced) {
			t.Errorf("a scrape has %s, which is of the namespace", namespaced)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/": 404, "/api/v1/shop/tasks": 404} {
		if status, text := scraped(t, address, path); status != want {
			t.Errorf("GET %s: %d %s, want %d", path, status, text, want)
		}
	}
	if response, err := http.Post("http://"+address+"/metrics", "text/plain", strings.NewReader("x")); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: %v, %v", response, err)
	} else {
		response.Body.Close()
	}
	p.Process.Signal(syscall.SIGTERM)
	await.Until(t, "the worker drains", s.drains)
	if status, _ := scraped(t, address, "/healthz"); status != 200 { // it still runs
		t.Errorf("/healthz of a worker that drains: %d", status)
	}
	await.Until(t, "a second signal ends the worker", func() bool {
		p.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	closed(t, address, `shop_worker_slots{namespace="`+s.q.Namespace())
}

// A reaper exports its sweeps, and says that it runs also before Redis is there.
func TestReapExportsItsSweeps(t *testing.T) {
	t.Parallel()
	rdb, url := database(t)
	queuetest.Open(t, rdb, queue.Config{})
	errs, stop := startReap(t, "--fallback 50ms --metrics-listen 127.0.0.1:0 --metrics-prefix sweeping_ --redis "+url)
	address := exported(t, errs)
	sweeps := regexp.MustCompile(`\nsweeping_reaper_batches_total{namespace="curfew"} ([0-9]+)\n`)
	before := ""
	await.Until(t, "sweeps are counted, and then more", func() bool {
		_, text := scraped(t, address, "/metrics")
		found := sweeps.FindStringSubmatch(text)
		if found == nil || found[1] == "0" {
			return false
		}
		if before == "" {
			before = found[1]
		}
		return found[1] != before
	})
	if code := stop(); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
	closed(t, address, "sweeping_reaper_batches_total")
}

func TestAReaperThatWaitsForRedisIsHealthy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	errs, stop := startReap(t, "--create --metrics-listen 127.0.0.1:0 --redis redis://"+server.Addr)
	address := exported(t, errs)
	if status, _ := scraped(t, address, "/healthz"); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
	if status, text := scraped(t, address, "/metrics"); status != 200 || strings.Contains(text, "curfew_") || !strings.Contains(text, "go_goroutines") {
		t.Errorf("without Redis a scrape is %d %s", status, text)
	}
	server.Restart(t)
	await.Until(t, "the namespace is exported", func() bool {
		_, text := scraped(t, address, "/metrics")
		return strings.Contains(text, "curfew_reaper_batches_total{")
	})
	if code := stop(); code != 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// Clients that connect and send nothing take some files of the process and no more, and not for long.
func TestSilentClientsDoNotStopScrapes(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	p := s.start("--kind", "k", "--metrics-listen", "127.0.0.1:0", "--", "true")
	address := exported(t, p.log)
	const silent = 120
	for range silent {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Process.Pid)); err == nil && len(files) > silent*2/3 {
		t.Errorf("with %d silent clients the process has %d files open", silent, len(files))
	}
	if status, _ := scraped(t, address, "/metrics"); status != 200 {
		t.Errorf("a scrape is answered with %d", status)
	}
}

// What is wrong with the address is said before a task is taken, and nothing is created.
func TestABadAddressForMetricsIsRefused(t *testing.T) {
	t.Parallel()
	rdb, url := database(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, row := range []struct{ flag, want string }{
		{"--metrics-listen=" + busy.Addr().String(), "give a free address"},
		{"--metrics-listen=127.0.0.1", "missing port"},
		{"--metrics-listen=127.0.0.1:99999", "invalid port"},
		{"--metrics-listen=", "--metrics-listen is empty"},
		{"--metrics-listen=127.0.0.1:0 --metrics-prefix=1-2", `--metrics-prefix "1-2" must be letters, digits and _`},
		{"--metrics-listen=127.0.0.1:0 --metrics-prefix=", "--metrics-prefix is empty"},
		{"--metrics-prefix=shop_", "--metrics-prefix needs --metrics-listen"},
	} {
		for _, command := range []string{"reap --create", "work --create --kind k"} {
			args := strings.Fields(command + " --redis " + url + " " + row.flag)
			if strings.HasPrefix(command, "work") {
				args = append(args, "--", "true")
			}
			if code, _, errs := curfew(t, args...); code != 2 || !strings.Contains(errs, row.want) || strings.Contains(errs, "takes tasks") {
				t.Errorf("curfew %q: %d %s, want %q", args, code, errs, row.want)
			}
		}
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("refused commands have written %d keys", n)
	}
}
