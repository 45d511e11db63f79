package queue

import (
	"fmt"
	"net/url"

	"github.com/redis/go-redis/v9"
)

// Connect makes a client for a URL (redis://user:password@host:6379/0, rediss://
// for TLS, unix:///path), with the options that Curfew works best with. No error of
// it holds the URL, which may hold a password.
func Connect(address string) (redis.UniversalClient, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%w: the Redis URL is malformed: write redis://user:password@host:6379/0, and special characters of a password as %%XX", ErrInvalid)
	}
	switch parsed.Scheme {
	case "redis", "rediss", "unix":
	default:
		parsed.Opaque = "another scheme"
	}
	if parsed.Opaque != "" || parsed.Scheme != "unix" && parsed.Host == "" {
		return nil, fmt.Errorf("%w: the Redis URL must begin with redis://, rediss:// or unix://, and name a host or a socket", ErrInvalid)
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("%w: the Redis URL has a part that is not understood: write redis://user:password@host:6379/0, and nothing after ? that go-redis does not know", ErrInvalid)
	}
	// Without it a context's deadline does not end a read, and a hung server holds
	// a call for as long as the read limit says.
	options.ContextTimeoutEnabled = true
	return redis.NewClient(options), nil
}
