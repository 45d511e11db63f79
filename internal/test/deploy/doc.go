// Package deploy tests the files of the folder deploy: the alerts and their stories for Prometheus, and the dashboard for Grafana.
// Each metric and label in them must be in the table of package metrics, and `make doors` plays them on a real Prometheus.
package deploy
