package command

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/worker"
)

// done reports whether a status means that the task is done.
func done(code int) bool { return code >= 200 && code < 300 }

// statusError returns the error that a status means, nil for 2xx.
func statusError(place string, response *http.Response, body []byte, now time.Time) error {
	code := response.StatusCode
	if done(code) {
		return nil
	}
	what := strings.TrimSpace(fmt.Sprintf("POST %s: status %d %s", place, code, http.StatusText(code)))
	if code >= 300 && code < 400 {
		what += ", a redirect, which is not followed: give the URL where it leads"
	}
	err := worker.Fail(code, withText(what, clean(body[:min(len(body), tailBytes)])))
	switch code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if delay, ok := retryAfterHeader(response.Header.Get("Retry-After"), now); ok {
			return worker.RetryAfter(delay, err)
		}
		return err
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return err
	}
	if code >= 400 && code < 500 {
		return worker.Discard(err)
	}
	return err
}
