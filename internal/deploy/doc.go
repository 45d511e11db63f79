// Package deploy knows the alerts and the dashboard that the repository ships, and writes their files:
// rules and their tests for Prometheus, a dashboard for Grafana. It takes names and labels of metrics
// from the table in package metrics, and refuses to write an expression with a name that the table does not have.
//
// Command write in its folder writes the files.
package deploy
