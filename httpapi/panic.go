package httpapi

import (
	"errors"
	"fmt"
	"net/http"
)

// answering notes whether an answer has begun.
type answering struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader writes the status. One below 200 is not the answer yet.
func (a *answering) WriteHeader(status int) {
	a.begun = a.begun || status >= http.StatusOK
	a.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (a *answering) Write(text []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(text)
}

// Unwrap lets http.ResponseController set deadlines and flush.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// afterPanic answers with 500. If the answer has begun, or a handler wants the connection to end, the connection ends instead: the client
// then sees that the answer is not whole.
func (s *Server) afterPanic(w *answering, r *http.Request, v any) {
	if v != http.ErrAbortHandler {
		s.log.Error("HTTP request failed", "method", r.Method, "path", r.URL.Path, "error", fmt.Sprint(v))
	}
	if v == http.ErrAbortHandler || w.begun {
		panic(http.ErrAbortHandler)
	}
	s.answerError(w, failureOf(errors.New("panic")))
}
