// Package reference writes pages of docs/reference that are made from the code: of the metrics, of the HTTP API and of flows.
package reference
