// Package telemetry has one test: a fleet of real processes plays a script, and its event streams, records, metrics, log lines
// and spans must all have the same numbers as the script.
package telemetry
