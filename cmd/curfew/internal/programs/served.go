package programs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/httpapi"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// served holds the namespaces of `curfew serve`. Each is opened when it is first needed, and has
// collectors in the registry: until then one that reports Redis as unreachable, and from then on one
// for this process.
type served struct {
	rdb      redis.UniversalClient
	config   queue.Config // of each namespace, without its name
	metrics  metrics.Config
	registry *prometheus.Registry

	mu     sync.Mutex
	opened map[string]*queue.Queue
}

// scrapeTime is how long a scrape can take to read Redis, so that it is answered within a second.
const scrapeTime = 900 * time.Millisecond

func newServed(c *cli.Context, rdb redis.UniversalClient, config httpapi.Config) (*served, error) {
	metricsOptions, err := metricsConfig(c)
	if err != nil {
		return nil, err
	}
	s := &served{rdb: rdb, config: queue.Config{Existing: !c.Bool("create"), Logger: config.Logger}, metrics: metricsOptions,
		registry: prometheus.NewRegistry(), opened: map[string]*queue.Queue{}}
	if err := app.Trace(c, &s.config); err != nil {
		return nil, err
	}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, name := range config.Namespaces {
		open := func(ctx context.Context) (*queue.Queue, error) { return s.open(ctx, name) }
		if err := s.registry.Register(metrics.OpenNamespace(name, open, config.Logger, s.metrics)); err != nil {
			return nil, app.Usage("--namespace: %v", err)
		}
	}
	return s, nil
}

// open returns a namespace. It opens the namespace if necessary.
func (s *served) open(ctx context.Context, name string) (*queue.Queue, error) {
	s.mu.Lock()
	q := s.opened[name]
	s.mu.Unlock()
	if q != nil {
		return q, nil
	}
	config := s.config
	config.Namespace = name
	q, err := queue.Open(ctx, s.rdb, config)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if opened := s.opened[name]; opened != nil {
		return opened, nil
	}
	s.opened[name] = q
	if err := s.registry.Register(metrics.NewProcess(q, s.metrics)); err != nil {
		s.config.Logger.Error("The metrics of this process are not exported", "namespace", name, "error", fmt.Sprint(err))
	}
	return q, nil
}
