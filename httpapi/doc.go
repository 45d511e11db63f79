// Package httpapi lets programs without a connection to Redis take part: an API of JSON over HTTP, with health checks
// and room for metrics. `curfew serve` runs it. A program mounts it in a server of its own:
//
//	api, err := httpapi.New(httpapi.Config{Queues: []*queue.Queue{q}, Auth: []httpapi.Authenticator{auth}, Hosts: []string{"jobs.example.com"}})
//	mux.Handle("/api/v1/", api)
//
// docs/how-to/http.md is a guide, docs/reference/http.md lists the routes, and docs/reference/openapi.json describes
// them for programs.
//
// One table has all routes (table.go). The mux, the reference and the checks of requests are made from it. An answer is the
// output of the commands with -o json, but payloads and results are JSON values, or base64 under payload_base64 and
// result_base64 if they are not JSON.
package httpapi

// The names of the files begin with their rooms:
//
//   - auth: the identity, the roles and the limits of a client
//   - stream: long polls and event streams, and the state that waiting requests share
//   - the others, the API itself: the table of routes, how requests are read, answered and logged, and the routes themselves
//
// They are one package. The types of auth are exported, and the routes and streams share call and failure: as packages, the first would be
// aliases without documentation here, and the others would need a fourth package below them.
