// Package metrics exports what a namespace and its programs do to Prometheus. It has collectors for a
// prometheus.Registerer of the program that uses it; it runs no server.
//
// Totals and histograms of tasks, waits and timeouts are counted in Redis by the call that changes a
// task. So every exporter of a namespace has the same values, and a query takes the max over
// exporters, never the sum. What only one process knows, such as its slots or the time of its calls, is exported
// by that process.
package metrics
