package programs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/urfave/cli/v2"
	"golang.org/x/net/netutil"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

const (
	mostScrapes     = 4  // scrapes that are answered at once; others are refused
	mostConnections = 32 // connections that are open at once; others wait. Each takes a file from the handlers of a worker
)

// exporter serves the metrics of this process over HTTP while a command runs. It does not serve the
// metrics of the namespace, which `curfew serve` exports once for all processes. A nil exporter
// serves nothing.
type exporter struct {
	config   metrics.Config
	registry *prometheus.Registry
	server   *http.Server
}

// exporterFlags are the flags of a command that has an exporter.
func exporterFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "metrics-listen", Usage: "an `ADDRESS` such as 127.0.0.1:9464 that serves /metrics of this process, and /healthz, to everybody who reaches it: " +
			"names and numbers only; port 0: any free port"},
		&cli.StringFlag{Name: "metrics-prefix", Value: metrics.DefaultPrefix, Usage: "the beginning of the names of all metrics of --metrics-listen"},
	}
}

// startExporter listens on the address of --metrics-listen and exports the metrics that every
// process has. Without that flag it returns nil.
func startExporter(c *cli.Context, log *slog.Logger) (*exporter, error) {
	if !c.IsSet("metrics-listen") {
		if c.IsSet("metrics-prefix") {
			return nil, app.UsageOf(c, "--metrics-prefix needs --metrics-listen, without which no metrics are served")
		}
		return nil, nil
	}
	address := c.String("metrics-listen")
	if address == "" {
		return nil, app.UsageOf(c, "--metrics-listen is empty: give an address such as 127.0.0.1:9464, or leave it out")
	}
	config, err := metricsConfig(c)
	if err != nil {
		return nil, err
	}
	e := &exporter{config: config, registry: prometheus.NewRegistry()}
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, app.Usage("--metrics-listen %q: %v; give a free address such as 127.0.0.1:9464, or port 0 for any free port", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", atOnce(mostScrapes, metrics.Handler(e.registry)))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	e.server = &http.Server{Handler: mux, MaxHeaderBytes: 16 << 10, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	e.server.SetKeepAlivesEnabled(false) // so no client keeps a connection
	go e.server.Serve(netutil.LimitListener(listener, mostConnections))
	log.Info("Metrics of this process are served", "url", "http://"+listener.Addr().String()+"/metrics")
	return e, nil
}

// metricsConfig returns how metrics are exported, with the prefix of --metrics-prefix.
func metricsConfig(c *cli.Context) (metrics.Config, error) {
	config := metrics.Config{Prefix: c.String("metrics-prefix"), Timeout: scrapeTime}
	var invalid *refusal.InvalidError
	switch err := config.Check(); {
	case config.Prefix == "":
		return config, app.UsageOf(c, "--metrics-prefix is empty: give letters, digits and _, such as shop_, or leave it out for %s", metrics.DefaultPrefix)
	case errors.As(err, &invalid):
		return config, app.UsageOf(c, "--metrics-prefix %s", invalid.Why)
	default:
		return config, err
	}
}

// addProcess exports the metrics of this process for a namespace.
func (e *exporter) addProcess(q *queue.Queue) error {
	if e == nil {
		return nil
	}
	return e.registry.Register(metrics.NewProcess(q, e.config))
}

// addWorker exports the metrics of a worker, and of this process for its namespace.
func (e *exporter) addWorker(w *worker.Worker) error {
	if e == nil {
		return nil
	}
	return errors.Join(e.addProcess(w.Queue()), e.registry.Register(metrics.NewWorker(w, e.config)))
}

// close stops to listen. Scrapes that are under way have a moment to end.
func (e *exporter) close() {
	if e == nil {
		return
	}
	patience, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if e.server.Shutdown(patience) != nil {
		e.server.Close()
	}
}

// atOnce refuses requests while so many are under way.
func atOnce(most int, next http.Handler) http.Handler {
	places := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("%d scrapes are under way: try again later", most), http.StatusServiceUnavailable)
		}
	})
}
