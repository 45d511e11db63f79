package metrics

import "slices"

// Buckets returns the upper bounds of the classic buckets of a histogram. Metrics of [FromNamespace]
// have the bounds with which Redis counts.
func (m Metric) Buckets() []float64 { return slices.Clone(buckets[m.Name]) }

var (
	times = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200,
		21600, 43200, 86400}
	lags = []float64{0.001, 0.002, 0.003, 0.004, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60}

	buckets = map[string][]float64{
		"task_duration_seconds":         times,
		"task_wait_seconds":             times,
		"task_time_used_ratio":          {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
		"timeout_detection_lag_seconds": lags,
		"wait_wake_lag_seconds":         lags,
		"worker_handler_seconds":        {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
		"script_duration_seconds":       {0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
	}
)
