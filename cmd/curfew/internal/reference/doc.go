// Package reference generates pages of docs/reference from the code: about metrics, the HTTP API and
// flows.
package reference
