package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/worker"
)

// Post sends each task to a URL. Handle is a worker.Handler.
type Post struct {
	// URL is where the payload is sent.
	URL *url.URL
	// MaxResult is how many bytes of a response are taken as the result.
	MaxResult int
	// Now is closed when all requests must end at once. Their tasks are given back.
	Now <-chan struct{}
	// Log gets a line for each attempt that failed.
	Log *slog.Logger

	client *http.Client
	lacked atomic.Bool // a request could not be sent because too many files were open
}

// NewPost returns a Post. atOnce is how many requests it will send at the same time.
func NewPost(to *url.URL, atOnce int) *Post {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = atOnce, atOnce
	return &Post{URL: to, MaxResult: 1 << 20, Log: slog.New(slog.DiscardHandler), client: &http.Client{
		Transport: transport,
		// A redirect would become a GET without the payload, or send the payload to a place
		// that nobody has named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Handle sends the payload, and returns the body of the response.
func (p *Post) Handle(ctx context.Context, payload []byte) ([]byte, error) {
	result, err := p.post(ctx, payload)
	if p.lacked.Load() {
		// An idle connection is a file, for a minute and a half. The worker may need it to reach Redis, or its leases end.
		p.client.CloseIdleConnections()
	}
	logFailure(ctx, p.Log, err)
	return result, err
}

func (p *Post) post(ctx context.Context, payload []byte) ([]byte, error) {
	if err := checkHeaders(worker.Info(ctx).Headers); err != nil {
		return nil, err
	}
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.Now:
			cancel()
		case <-calling.Done():
		}
	}()
	request, err := http.NewRequestWithContext(calling, http.MethodPost, p.URL.String(), bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	setHeaders(request.Header, ctx, payload)
	response, err := p.client.Do(request)
	if err != nil {
		return nil, p.callError(ctx, err)
	}
	defer response.Body.Close()
	body := &bounded{limit: p.MaxResult}
	if response.StatusCode != http.StatusSwitchingProtocols { // its body is the connection, and has no end
		// One byte more shows that there is too much. The rest is not read: closing the body ends
		// the response.
		_, err = io.Copy(body, io.LimitReader(response.Body, int64(p.MaxResult)+1))
	}
	// Of a refusal the status counts, also if its text is not complete.
	if err != nil && (done(response.StatusCode) || calling.Err() != nil) {
		return nil, p.callError(ctx, err)
	}
	if err := statusError(p.place(), response, body.bytes(), time.Now()); err != nil {
		return body.bytes(), err
	}
	if body.size > int64(p.MaxResult) {
		return nil, worker.Discard(fmt.Errorf("POST %s: the response has more than the %d bytes that a result can have: store the result elsewhere, and answer where it is", p.place(), p.MaxResult))
	}
	return body.bytes(), nil
}

// callError returns the error of a request that has no complete response.
func (p *Post) callError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("POST %s: the request was cancelled: %w", p.place(), cause)
	}
	select {
	case <-p.Now:
		return worker.Release(0)
	default:
	}
	if wrapped, ok := err.(*url.Error); ok {
		err = wrapped.Err // it names the whole URL, which may have a secret in its query
	}
	if lacks(err) {
		p.lacked.Store(true)
		return giveBack(ctx, p.Log, "The request cannot be sent", err)
	}
	return fmt.Errorf("POST %s: %w", p.place(), err)
}

// place returns the URL without the parts that can be secret.
func (p *Post) place() string {
	return (&url.URL{Scheme: p.URL.Scheme, Host: p.URL.Host, Path: p.URL.Path}).String()
}

// setHeaders describes the task in the headers of the request.
func setHeaders(to http.Header, ctx context.Context, payload []byte) {
	job := worker.Info(ctx)
	for _, f := range facts(ctx) {
		to.Set("Curfew-"+f.name, f.value)
	}
	to.Set("Content-Type", "application/octet-stream")
	if json.Valid(payload) {
		to.Set("Content-Type", "application/json")
	}
	to.Set("User-Agent", "curfew-work")
	// The same for one attempt and another for the next one, which must not be answered from
	// memory. It also lets the client send a request again whose idle connection was just closed.
	to.Set("Idempotency-Key", fmt.Sprintf("%s/%d", job.ID, job.Epoch))
	traced := spans.Carried(ctx) // the span of the attempt, in place of the sender's
	for name, value := range traced {
		to.Set(name, value)
	}
	if len(job.Headers) == 0 {
		return
	}
	to.Set("Curfew-Headers", headersAsJSON(job.Headers))
	for name, value := range job.Headers {
		switch {
		case !token(name) || !plain(value): // it is in Curfew-Headers
		case slices.Contains(traceHeaders, strings.ToLower(name)):
			if len(traced) == 0 {
				to.Set(name, value)
			}
		default:
			to.Set("Curfew-Header-"+name, value)
		}
	}
}
