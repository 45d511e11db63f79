package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// HTTPConfig sets the load that HTTP measures.
type HTTPConfig struct {
	// Serve starts `curfew serve` for the namespace bench, and returns its URL and its process.
	Serve   func(ctx context.Context) (url string, process *os.Process, err error)
	Tasks   int // how many requests of each kind
	Waiting int // how many requests wait at once
}

// httpClients is how many requests are under way at once.
const httpClients = 16

// web measures the API over HTTP, and the Go client beside it.
type web struct {
	HTTPConfig
	q       *queue.Queue
	client  *http.Client
	base    string
	process *os.Process
	ids     []string
}

// HTTP measures requests a second and latencies of the API of `curfew serve`, which runs as a process of its own: enqueue and
// get from 16 clients, the delay of a result for a waiting request, and the memory of many waiting requests. The Go client
// does the same beside it, on the same Redis.
func HTTP(ctx context.Context, rdb redis.UniversalClient, config HTTPConfig) (Report, error) {
	r := Report{Bench: "http"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	url, process, err := config.Serve(ctx)
	if err != nil {
		return r, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: config.Waiting + httpClients}
	defer transport.CloseIdleConnections()
	w := &web{HTTPConfig: config, q: q, client: &http.Client{Transport: transport}, base: url + "/api/v1/bench/", process: process}
	for _, step := range []func(context.Context, *Report) error{w.enqueue, w.get, w.results, w.memory} {
		if err := step(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// do makes a request, and reads the answer. It repeats the request while the server reports that Redis does not answer, as on a busy
// machine, and that nothing was changed. The time for that counts.
func (w *web) do(ctx context.Context, method, path string, body []byte, into any) error {
	for {
		err := w.try(ctx, method, path, body, into)
		if !errors.Is(err, errUnavailable) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// errUnavailable is the error of a request that changed nothing, because Redis does not answer. A request with another 503, such as one of
// a wrong setting, has the same answer when it is made again.
var errUnavailable = errors.New("unavailable")

func (w *web) try(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		var problem struct{ Error struct{ Word string } }
		if json.Unmarshal(text, &problem) == nil && answer.StatusCode == http.StatusServiceUnavailable && problem.Error.Word == "unavailable" {
			return fmt.Errorf("%s %s: %s: %s (%w)", method, path, answer.Status, text, errUnavailable)
		}
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// beside measures the same call n times from all clients, over HTTP and by the Go client.
func (w *web) beside(r *Report, name string, over, direct func(i int) error) error {
	for _, c := range []struct {
		name string
		call func(i int) error
	}{{name + " over HTTP", over}, {name + " by the Go client", direct}} {
		lags := make([]time.Duration, w.Tasks)
		start := time.Now()
		err := fromGoroutines(w.Tasks, httpClients, func(i int) error {
			began := time.Now()
			err := c.call(i)
			lags[i] = time.Since(began)
			return err
		})
		if err != nil {
			return err
		}
		r.add(c.name, float64(w.Tasks)/time.Since(start).Seconds(), "calls/s")
		r.percentiles(c.name, lags)
	}
	return nil
}

func (w *web) enqueue(ctx context.Context, r *Report) error {
	payload := []byte(`"` + strings.Repeat("x", 98) + `"`)
	body := fmt.Appendf(nil, `{"kind": "noop", "timeout": "1h", "payload": %s}`, payload)
	w.ids = make([]string, w.Tasks)
	return w.beside(r, "enqueue", func(i int) error {
		var task struct{ ID string }
		err := w.do(ctx, http.MethodPost, "tasks", body, &task)
		w.ids[i] = task.ID
		return err
	}, func(int) error {
		_, err := w.q.Enqueue(ctx, queue.Task{Kind: "noop", Timeout: time.Hour, Payload: payload})
		return err
	})
}

func (w *web) get(ctx context.Context, r *Report) error {
	return w.beside(r, "get", func(i int) error {
		return w.do(ctx, http.MethodGet, "tasks/"+w.ids[i]+"/result", nil, nil)
	}, func(i int) error {
		_, err := w.q.Get(ctx, w.ids[i])
		return err
	})
}

// results measures how late the result of a promise reaches who waits for it, from the call that resolves it.
func (w *web) results(ctx context.Context, r *Report) error {
	for _, c := range []struct {
		name string
		wait func(id string) error
	}{
		{"a result over HTTP", func(id string) error {
			return w.do(ctx, http.MethodGet, "tasks/"+id+"/result?wait=30s", nil, nil)
		}},
		{"a result by the Go client", func(id string) error {
			_, err := w.q.Wait(ctx, id)
			return err
		}},
	} {
		var lags []time.Duration
		for range min(w.Tasks, 300) {
			lag, err := w.result(ctx, c.wait)
			if err != nil {
				return err
			}
			lags = append(lags, lag)
		}
		r.percentiles(c.name, lags)
	}
	return nil
}

func (w *web) result(ctx context.Context, wait func(id string) error) (time.Duration, error) {
	id, err := w.promise(ctx)
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- wait(id) }()
	pause(ctx, 5*time.Millisecond) // long enough that it waits
	began := time.Now()
	if _, err := w.q.Resolve(ctx, id, nil); err != nil {
		return 0, err
	}
	err = <-done
	return time.Since(began), err
}

func (w *web) promise(ctx context.Context) (string, error) {
	receipt, err := w.q.Enqueue(ctx, queue.Task{Kind: "promise", Promise: true, Timeout: time.Hour})
	return receipt.ID, err
}

// memory measures the resident memory of the server before and while many requests wait for the result of a promise each.
func (w *web) memory(ctx context.Context, r *Report) error {
	before, err := resident(w.process.Pid)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	ids, done := make([]string, w.Waiting), make(chan error, w.Waiting)
	for i := range ids {
		if ids[i], err = w.promise(ctx); err != nil {
			return err
		}
		go func() { done <- w.do(ctx, http.MethodGet, "tasks/"+ids[i]+"/result?wait=60s", nil, nil) }()
	}
	pause(ctx, 2*time.Second) // the server has read all requests by then
	during, err := resident(w.process.Pid)
	if err != nil {
		return err
	}
	r.add("memory of the server, MiB", float64(before)/(1<<20), "MiB")
	r.add("memory with all requests waiting", float64(during)/(1<<20), "MiB")
	r.add("memory of a request that waits", float64(during-before)/1024/float64(w.Waiting), "KiB")
	began := time.Now()
	for _, id := range ids {
		if _, err := w.q.Resolve(ctx, id, nil); err != nil {
			return err
		}
	}
	for range ids {
		if err := <-done; err != nil {
			return err
		}
	}
	r.add("all are resolved and answered after", time.Since(began).Seconds()*1000, "ms")
	return nil
}

// resident returns the resident memory of a process in bytes, and errors.ErrUnsupported on systems without /proc.
func resident(pid int) (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, errors.ErrUnsupported
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "VmRSS:" {
			return engine.Number(fields[1]) << 10, nil
		}
	}
	return 0, errors.ErrUnsupported
}
