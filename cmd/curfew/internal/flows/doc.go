// Package flows has the commands about flows: definitions, and their runs.
package flows
