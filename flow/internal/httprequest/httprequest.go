// Package httprequest makes the requests of nodes of the type http_request.
package httprequest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/expr/value"
	"github.com/curfew-dev/curfew/worker"
)

// Request is the request of a node.
type Request struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"` // GET, or POST with a body
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"` // a text, or a value that is sent as it is written
}

// Response is the output parameters of a node.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // their names in lower case
	Body    any               `json:"body"`    // the value of an answer that says it is JSON, else its text
}

// The limits of a request.
const (
	maxHeaders   = 64 << 10
	maxRedirects = 10
)

// Do makes a request. What it returns as an error says whether another attempt makes sense: no answer, and the statuses 408,
// 425, 429 and 5xx can be tried again, any other status from 300 on cannot. The code of the error is the status.
func (c *Client) Do(ctx context.Context, in Request) (*Response, error) {
	r, err := newRequest(ctx, in)
	if err != nil {
		return nil, worker.Discard(err)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, failure(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(c.most)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer of %s broke off: %w", r.URL.Redacted(), err)
	case answer.StatusCode >= 300:
		return nil, refused(r, answer, body)
	case len(body) > c.most:
		return nil, worker.Discard(fmt.Errorf("the answer of %s has more than %d bytes, the limit", r.URL.Redacted(), c.most))
	}
	out := &Response{answer.StatusCode, headersOf(answer), valueOf(answer, body)}
	text, err := json.Marshal(out)
	switch {
	case err != nil:
		return nil, worker.Discard(fmt.Errorf("the answer of %s cannot be a result: %w", r.URL.Redacted(), err))
	case len(text) > c.most:
		return nil, worker.Discard(fmt.Errorf("the answer of %s has %d bytes as JSON with its headers, the limit is %d", r.URL.Redacted(), len(text), c.most))
	}
	return out, nil
}

func newRequest(ctx context.Context, in Request) (*http.Request, error) {
	u, err := url.Parse(in.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the url cannot be read: %w", errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the url must begin with http:// or https://, and is %q", clip.Text(in.URL, 200))
	case u.Host == "":
		return nil, fmt.Errorf("the url %q names no host", clip.Text(in.URL, 200))
	}
	body, isJSON, err := bodyOf(in.Body)
	if err != nil {
		return nil, err
	}
	method := strings.ToUpper(in.Method)
	if method == "" {
		method = http.MethodGet
		if body != nil {
			method = http.MethodPost
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("the method %q is not one", clip.Text(in.Method, 200))
	}
	if isJSON {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		if !goodHeader(name, in.Headers[name]) {
			return nil, fmt.Errorf("the header %q is not one", clip.Text(name, 200))
		}
		if strings.EqualFold(name, "Host") {
			r.Host = in.Headers[name]
		}
		r.Header.Set(name, in.Headers[name])
	}
	return r, nil
}

func goodHeader(name, value string) bool {
	const others = "!#$%&'*+-.^_`|~"
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(others, c)) {
			return false
		}
	}
	return name != "" && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// bodyOf returns a reader of a body, or nil if the request has no body.
func bodyOf(v json.RawMessage) (body io.Reader, isJSON bool, err error) {
	switch {
	case len(v) == 0, string(v) == "null":
		return nil, false, nil
	case v[0] != '"':
		return bytes.NewReader(v), true, nil
	}
	var text string
	err = json.Unmarshal(v, &text)
	return strings.NewReader(text), false, err
}

// failure is the error of a request without an answer. What the client itself refuses is not tried again.
func failure(err error) error {
	if refusal := (*refusedError)(nil); errors.As(err, &refusal) {
		return worker.Discard(refusal)
	}
	return err
}

// refused is the error of an answer whose status is not a success.
func refused(r *http.Request, answer *http.Response, body []byte) error {
	status := answer.StatusCode
	err := worker.Fail(status, fmt.Errorf("%s %s: %s%s", r.Method, r.URL.Redacted(), answer.Status, excerpt(body)))
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		if pause, ok := retryAfter(answer.Header.Get("Retry-After")); ok {
			return worker.RetryAfter(pause, err)
		}
		return err
	}
	return worker.Discard(err)
}

// retryAfter reads the header Retry-After: seconds, or an instant.
func retryAfter(text string) (time.Duration, bool) {
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 && seconds <= 24*3600 {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), 24*time.Hour), true
	}
	return 0, false
}

func headersOf(answer *http.Response) map[string]string {
	headers := map[string]string{}
	for name, values := range answer.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return headers
}

func valueOf(answer *http.Response, body []byte) (v any) {
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	if (kind == "application/json" || strings.HasSuffix(kind, "+json")) && value.Decode(body, &v, false) == nil {
		return v
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// excerpt returns the beginning of a body for the text of an error.
func excerpt(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(body), "\uFFFD")), "\n")
	if line == "" {
		return ""
	}
	return ": " + clip.Text(line, 200)
}
