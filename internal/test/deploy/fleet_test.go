package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// spawn starts a process, and returns when it has logged a text.
func spawn(t *testing.T, cmd *exec.Cmd, ready string) (*redisproc.Child, *harness.Logs) {
	t.Helper()
	said := &harness.Logs{}
	cmd.Stderr = said
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	await.Until(t, cmd.Path+" logs: "+ready, func() bool {
		select {
		case <-child.Done():
			t.Fatalf("%s %q ended: %s", cmd.Path, cmd.Args, said)
		default:
		}
		return strings.Contains(said.String(), ready)
	})
	return child, said
}

// listening starts a process that listens, and returns its address.
func listening(t *testing.T, cmd *exec.Cmd) (*redisproc.Child, string) {
	t.Helper()
	child, said := spawn(t, cmd, "Listening on")
	_, rest, _ := strings.Cut(said.String(), "Listening on")
	await.Until(t, "an address", func() bool {
		_, rest, _ = strings.Cut(said.String(), "Listening on")
		return strings.Contains(rest, "\n")
	})
	return child, regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(rest)[1]
}

// quick returns the rules with all times divided.
func quick(t *testing.T, slow string, by time.Duration) string {
	window, age := regexp.MustCompile(`\[(\d+)m\]`), regexp.MustCompile(`^(time\(\) - .*) > (\d+)`)
	return change(t, slow, func(r *rule) {
		lasts, err := time.ParseDuration(r.For)
		if err != nil {
			t.Fatal(err)
		}
		r.For = fmt.Sprintf("%dms", (lasts / by).Milliseconds())
		r.Expr = window.ReplaceAllStringFunc(r.Expr, func(w string) string {
			minutes, _ := strconv.Atoi(window.FindStringSubmatch(w)[1])
			return fmt.Sprintf("[%dms]", (time.Duration(minutes) * time.Minute / by).Milliseconds())
		})
		if parts := age.FindStringSubmatch(r.Expr); parts != nil {
			seconds, _ := strconv.Atoi(parts[2])
			r.Expr = fmt.Sprintf("%s > %v", parts[1], (time.Duration(seconds)*time.Second/by).Seconds()) + strings.TrimPrefix(r.Expr, parts[0])
		}
	})
}

// watcher is a Prometheus that scrapes exporters each three seconds, since a server gives up a read of Redis after two, with rules whose times are divided by 10.
type watcher struct {
	*testing.T
	addr string
}

func watch(t *testing.T, exporters, processes []string, flags ...string) *watcher {
	t.Helper()
	path, folder := program(t, "prometheus"), t.TempDir()
	text := quick(t, read(t, "prometheus/rules.yml"), 10)
	targets, _ := json.Marshal(exporters)
	others, _ := json.Marshal(processes)
	config := fmt.Sprintf("global: {scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 500ms}\nrule_files: [rules.yml]\n"+
		"scrape_configs: [{job_name: curfew, static_configs: [{targets: %s}]}, {job_name: curfew-processes, static_configs: [{targets: %s}]}]\n", targets, others)
	for name, content := range map[string]string{"rules.yml": text, "prometheus.yml": config} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(path, append(flags, "--config.file="+filepath.Join(folder, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address=127.0.0.1:0")...)
	_, addr := listening(t, cmd)
	return &watcher{t, addr}
}

// get asks the HTTP API, and reports whether it answered.
func (w *watcher) get(path string, into any) bool {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + w.addr + "/api/v1/" + path)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK && json.NewDecoder(response.Body).Decode(into) == nil
}

// value returns the value of a query. It returns -1 if the query has no value, or several.
func (w *watcher) value(query string) float64 {
	var reply struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if !w.get("query?query="+url.QueryEscape(query), &reply) || len(reply.Data.Result) != 1 {
		return -1
	}
	n, err := strconv.ParseFloat(fmt.Sprint(reply.Data.Result[0].Value[1]), 64)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// firing returns the names of the alerts that fire; false if Prometheus did not answer.
func (w *watcher) firing() (names []string, ok bool) {
	var reply struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	ok = w.get("alerts", &reply)
	for _, a := range reply.Data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	return names, ok
}

func (w *watcher) awaitValue(query string, want float64) {
	w.Helper()
	await.Until(w, fmt.Sprintf("%s is %v", query, want), func() bool { return w.value(query) == want })
}

// awaitAlerts waits until all these alerts fire, or none of them does.
func (w *watcher) awaitAlerts(fires bool, names ...string) {
	w.Helper()
	defer func() {
		if w.Failed() {
			firing, _ := w.firing()
			w.Logf("at the end fire: %q", firing)
		}
	}()
	await.Until(w, fmt.Sprintf("%q fire: %v", names, fires), func() bool {
		firing, ok := w.firing()
		return ok && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(firing, name) != fires })
	})
}

// awaitQuiet waits until Prometheus has evaluated the rules for so long since start, and fails if one of the alerts has fired since.
func (w *watcher) awaitQuiet(start time.Time, long time.Duration, names ...string) {
	w.Helper()
	since := func() int { return int(time.Since(start).Seconds()) }
	await.Until(w, fmt.Sprintf("rules are evaluated for %v", long), func() bool {
		return w.value(fmt.Sprintf("count_over_time(sum(up)[%ds:1s]) >= bool %d", max(since(), 1), int(long.Seconds()))) == 1
	})
	for _, name := range names {
		if w.value(fmt.Sprintf(`count(max_over_time(ALERTS{alertstate="firing",alertname="%s"}[%ds]))`, name, since())) != -1 {
			w.Errorf("%s has fired in a fleet that works", name)
			for _, seen := range []string{"up", "curfew_up", `ALERTS{alertname="` + name + `"}`} {
				var reply any
				w.get("query?query="+url.QueryEscape(seen+"[2m]"), &reply)
				w.Logf("%s: %v", seen, reply)
			}
		}
	}
}

// A real Prometheus watches a fleet of processes by two servers, `curfew serve`. It finds the timeouts that happened, pages when no reaper
// runs any more, and stops when one runs again.
func TestPrometheusSeesWhatHappensToAFleet(t *testing.T) {
	program(t, "prometheus")
	server := redistest.Start(t)
	q := queuetest.Open(t, server.Client(t), queue.Config{Namespace: "shop"})
	command := filepath.Join(t.TempDir(), "curfew")
	if out, err := exec.Command("go", "build", "-o", command, "../../../cmd/curfew").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(command, args...)
		cmd.Env = append(os.Environ(), "CURFEW_REDIS_URL=redis://"+server.Addr, "CURFEW_NAMESPACE=shop")
		return cmd
	}
	var own []string // where workers and reapers serve their own metrics
	served := func(said *harness.Logs) {
		own = append(own, regexp.MustCompile(`url=http://([^/\s]+)/metrics`).FindStringSubmatch(said.String())[1])
	}
	reap := func() *redisproc.Child {
		child, said := spawn(t, run("reap", "--metrics-listen", "127.0.0.1:0"), "The reaper runs")
		served(said)
		return child
	}
	reapers := []*redisproc.Child{reap(), reap()}
	for _, worker := range []struct{ kind, queue, command string }{
		{"shout", "default", "cat"}, {"shout", "default", "cat"}, {"deaf", "deaf", "trap '' TERM; while :; do sleep 0.1; done"},
	} {
		_, said := spawn(t, run("work", "--no-reaper", "--metrics-listen", "127.0.0.1:0", "--grace", "1h", "--queue", worker.queue, "--kind", worker.kind,
			"--", "/bin/sh", "-c", worker.command), "The worker takes tasks")
		served(said)
	}
	var exporters []string
	var processes []*redisproc.Child
	for range 2 {
		child, said := spawn(t, run("serve", "--listen", "127.0.0.1:0"), "The server runs")
		addr := regexp.MustCompile(`url=http://([^/\s]+)`).FindStringSubmatch(said.String())[1]
		processes, exporters = append(processes, child), append(exporters, addr)
	}
	w := watch(t, exporters, own)

	// Before the first timeout, so that Prometheus sees the counters rise.
	w.awaitValue("count(max by (namespace) (curfew_up) == 1) * sum(up)", 7)
	start := time.Now() // until now, nothing was scraped
	const (
		late, done = 20, 5
		timeouts   = "max by (queue, kind, type, policy) (curfew_task_timeouts_total)"
		ended      = "max by (queue, kind, status, reason) (curfew_tasks_finished_total)"
	)
	report := func() {
		queuetest.Enqueue(t, q, queue.Task{Kind: "report", Queue: "idle", Timeout: 100 * time.Millisecond})
	}
	report() // Prometheus must have seen a counter once before it can see an increase of it
	w.awaitValue("sum("+timeouts+")", 1)
	for range late - 1 {
		report()
	}
	for range done {
		queuetest.Enqueue(t, q, queue.Task{Kind: "shout", Payload: []byte("x"), Timeout: time.Hour})
	}
	w.awaitValue("sum("+timeouts+")", late)
	w.awaitValue(`sum(max by (queue, kind, type, policy) (increase(curfew_task_timeouts_total{queue="idle",kind="report",type="execution"}[1m]))) > bool 0`, 1)
	w.awaitValue(`sum(max by (queue, kind, status, reason) (curfew_tasks_finished_total{status="COMPLETED",kind="shout"}))`, done)
	w.awaitValue("sum("+ended+")", late+done)
	w.awaitValue("sum(curfew_task_timeouts_total)", 2*late) // both exporters have all of them: a sum over exporters is wrong
	w.awaitValue(`curfew_timeout_detection_lag_seconds_count{queue="idle",instance="`+exporters[0]+`"}`, late)
	w.awaitQuiet(start, 20*time.Second, "CurfewNoReaper", "CurfewOverdue", "CurfewDown", "CurfewExporterDown", "CurfewEvictionPolicy", "CurfewStalled",
		"CurfewBrokenRecords", "CurfewNoWorker", "CurfewWorkerStray")

	// What only a worker or a reaper knows.
	w.awaitValue("sum(curfew_worker_slots)", 30)
	w.awaitValue(`sum(curfew_worker_outcomes_total{outcome="completed"})`, done)
	w.awaitValue("sum(rate(curfew_reaper_batches_total[30s])) > bool 0", 1)
	w.awaitValue("count(curfew_clock_offset_seconds)", 7)
	queuetest.Enqueue(t, q, queue.Task{Kind: "deaf", Queue: "deaf", Payload: []byte("x"), Timeout: 3 * time.Second})
	w.awaitValue(`count(ALERTS{alertname="CurfewWorkerStray"})`, 1) // it fires after a minute, and is pending until then
	timedOut := float64(late + 1)

	for _, r := range reapers {
		r.Kill()
	}
	queuetest.Enqueue(t, q, queue.Task{Kind: "report", Queue: "forgotten", Timeout: 100 * time.Millisecond})
	w.awaitAlerts(true, "CurfewNoReaper", "CurfewOverdue", "CurfewNoWorker")
	w.awaitValue("sum("+timeouts+")", timedOut) // nobody has looked
	w.awaitAlerts(false, "CurfewExporterDown")  // a reaper is no exporter
	reap()
	w.awaitAlerts(false, "CurfewNoReaper", "CurfewOverdue", "CurfewNoWorker")
	w.awaitValue("sum("+timeouts+")", timedOut+1)

	processes[1].Kill()
	w.awaitAlerts(true, "CurfewExporterDown")
	w.awaitAlerts(false, "CurfewDown")
	server.Kill()
	w.awaitAlerts(true, "CurfewDown")
}
