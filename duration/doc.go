// Package duration parses and formats durations as people write them: 500ms, 1h30m, 1d12h.
package duration
