// Package metrics exports metrics of a namespace and its programs to Prometheus. It provides
// collectors for the prometheus.Registerer of a program; it runs no server.
//
// Totals and histograms of tasks, waits and timeouts are counted in Redis, by the call that changes
// a task. So every exporter of a namespace returns the same values, and a query takes the max over
// exporters, never the sum. Each process exports its own values, such as its slots or the time of
// its calls.
package metrics
