package programs

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/httpapi"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/refusal"
)

const serveHelp = `Serves the API of JSON over HTTP (docs/how-to/http.md), /metrics, /healthz and /readyz, until SIGINT or SIGTERM. Then /readyz answers
with 503, requests that wait are answered, and those under way have --grace to end.

    curfew serve --namespace shop
    curfew serve --namespace shop,mail --listen 0.0.0.0:7420 --auth-token-file tokens --allow-host jobs.example.com

It listens on this machine only, where everybody may do everything. Another address needs --auth-token-file, --auth-basic-file,
--auth-proxy-header or --auth-none. A line of the token file is TOKEN ROLES NAME, and of the other NAME:HASH ROLES, where
"htpasswd -nB NAME" prints NAME:HASH. ROLES are read, produce, work and operate, with commas between them.
Give --namespace several names with commas between them. It starts and continues while Redis is away, and answers requests with 503.`

func Serve() *cli.Command {
	number := func(name string, least, most int, usage string) cli.Flag {
		return app.NumberFlag(name, 0, least, most, usage)
	}
	return &cli.Command{
		Name:        "serve",
		Usage:       "serve the HTTP API and the metrics of namespaces, until it is interrupted",
		Description: serveHelp,
		Flags: append(app.NamespaceFlags(),
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:7420", Usage: "the address and port to listen on"},
			&cli.BoolFlag{Name: "create", Usage: "create the namespaces that do not exist, with the defaults of curfew namespace create"},
			&cli.StringFlag{Name: "auth-token-file", Usage: "a file of tokens, roles and names; changes are noticed"},
			&cli.StringFlag{Name: "auth-basic-file", Usage: "a file of names, bcrypt hashes of passwords and roles; changes are noticed"},
			&cli.StringFlag{Name: "auth-proxy-header", Usage: "believe the name in this header, if the request is from --auth-proxy-from"},
			&cli.StringSliceFlag{Name: "auth-proxy-from", Usage: "an address or network of a proxy, such as 10.0.0.0/24; can be given again (default: this machine)"},
			&cli.StringFlag{Name: "auth-proxy-roles", Value: "read", Usage: "the roles of all clients of the proxy, separated by commas"},
			&cli.BoolFlag{Name: "auth-none", Usage: "let everybody who reaches the address do everything"},
			&cli.StringSliceFlag{Name: "allow-host", Usage: "a name of this server that clients use, besides localhost; * allows all; can be given again"},
			&cli.StringSliceFlag{Name: "allow-origin", Usage: "another site whose pages may send changes, such as https://ops.example.com; can be given again"},
			&cli.StringFlag{Name: "metrics-prefix", Value: metrics.DefaultPrefix, Usage: "the beginning of the names of all metrics"},
			&cli.BoolFlag{Name: "hide-payloads", Usage: "leave out what users have put into tasks in all answers but those to workers and agents"},
			number("max-body", 1024, 1<<30, "the largest body of a request in bytes (default: 8388608)"),
			number("max-requests", 1, 100_000, "how many requests are served at once, without those that wait (default: 256)"),
			number("max-waiting", 1, 1_000_000, "how many requests wait at once (default: 2000)"),
			app.DurationFlag("max-wait", time.Minute, "the longest wait of a request"),
			rateFlag(),
			&cli.StringFlag{Name: "tls-cert", Usage: "a file with the certificate, for HTTPS; needs --tls-key"},
			&cli.StringFlag{Name: "tls-key", Usage: "a file with the key of --tls-cert"},
			app.DurationFlag("grace", 10*time.Second, "how long requests that are under way may take when the command ends")),
		Action: func(c *cli.Context) error {
			if _, err := app.Arguments(c, app.Nothing); err != nil {
				return err
			}
			logger := app.ProgramLogger(c)
			config, err := serveConfig(c, logger)
			if err != nil {
				return err
			}
			rdb, err := app.Connect(c)
			if err != nil {
				return err
			}
			defer rdb.Close()
			return serve(c, rdb, config)
		},
	}
}

// rateFlag returns the flag --rate. It refuses 0 with advice, because 0 removes the other limits of
// the command.
func rateFlag() cli.Flag {
	flag := app.NumberFlag("rate", 0, 1, 1_000_000, "how many requests a second a client can make; without it there is no limit")
	check := flag.Action
	flag.Action = func(c *cli.Context, n int) error {
		if n == 0 {
			return app.UsageOf(c, "--rate 0 would let no request in: leave it out for no limit")
		}
		return check(c, n)
	}
	return flag
}

// serveConfig reads the flags. It makes all checks that need no call to Redis.
func serveConfig(c *cli.Context, logger *slog.Logger) (config httpapi.Config, err error) {
	config = httpapi.Config{Namespaces: strings.Split(c.String("namespace"), ","), HidePayloads: c.Bool("hide-payloads"), Origins: c.StringSlice("allow-origin"),
		Hosts:   append([]string{"localhost", "127.0.0.1", "::1"}, c.StringSlice("allow-host")...),
		MaxBody: int64(c.Int("max-body")), MaxRequests: c.Int("max-requests"), MaxWaiting: c.Int("max-waiting"), MaxWait: app.DurationOf(c, "max-wait"), Rate: c.Int("rate"), Logger: logger}
	for i, name := range config.Namespaces {
		if name == "" {
			return config, app.Usage("--namespace must not be empty")
		}
		if slices.Contains(config.Namespaces[:i], name) {
			return config, app.UsageOf(c, "--namespace names %s twice: name it once", refusal.Clip(name))
		}
	}
	for name, limit := range map[string]time.Duration{"max-wait": time.Hour, "grace": time.Hour} {
		if d := app.DurationOf(c, name); d < time.Millisecond || d > limit {
			return config, app.Usage("--%s %v must be from 1ms to %v", name, duration.Duration(d), duration.Duration(limit))
		}
	}
	if (c.String("tls-cert") == "") != (c.String("tls-key") == "") {
		return config, app.UsageOf(c, "--tls-cert and --tls-key need each other")
	}
	if config.Auth, err = authOf(c, logger); err != nil {
		return config, err
	}
	public, err := isPublic(c.String("listen"))
	switch {
	case err != nil:
		return config, app.Usage("--listen %q: %v", c.String("listen"), err)
	case c.Bool("auth-none") && config.Auth != nil:
		return config, app.UsageOf(c, "--auth-none lets everybody in: leave it out, or the other --auth flags")
	case public && config.Auth == nil && !c.Bool("auth-none"):
		return config, app.UsageOf(c, "--listen %s can be reached from other machines: give --auth-token-file, --auth-basic-file or --auth-proxy-header, or --auth-none if everybody may do everything", c.String("listen"))
	case public && config.Auth != nil && c.String("tls-cert") == "":
		logger.Warn("Passwords and tokens are sent in clear: give --tls-cert and --tls-key, or let a proxy do TLS", "listen", c.String("listen"))
	}
	config.Public = config.Auth == nil
	return config, nil
}

// authOf returns the configured authenticators, nil if no flag configures one.
func authOf(c *cli.Context, logger *slog.Logger) (all []httpapi.Authenticator, err error) {
	for _, file := range []struct {
		flag string
		open func(string, *slog.Logger) (httpapi.Authenticator, error)
	}{{"auth-token-file", httpapi.Tokens}, {"auth-basic-file", httpapi.Basic}} {
		if !c.IsSet(file.flag) {
			continue
		}
		auth, err := file.open(c.String(file.flag), logger)
		var unread *fs.PathError
		if errors.As(err, &unread) {
			err = unread.Err // the path is said already
		}
		if err != nil {
			return nil, app.Usage("--%s %s: %v", file.flag, c.String(file.flag), err)
		}
		all = append(all, auth)
	}
	if !c.IsSet("auth-proxy-header") {
		if c.IsSet("auth-proxy-from") || c.IsSet("auth-proxy-roles") {
			return nil, app.UsageOf(c, "--auth-proxy-from and --auth-proxy-roles need --auth-proxy-header")
		}
		return all, nil
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	if c.IsSet("auth-proxy-from") {
		trusted = nil
	}
	for _, text := range c.StringSlice("auth-proxy-from") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				return nil, app.UsageOf(c, "--auth-proxy-from %q must be an address or a network, such as 10.0.0.0/24", text)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		trusted = append(trusted, prefix)
	}
	roles, err := httpapi.ParseRoles(c.String("auth-proxy-roles"))
	if err != nil {
		return nil, app.UsageOf(c, "--auth-proxy-roles: %v", err)
	}
	proxy, err := httpapi.Proxy(c.String("auth-proxy-header"), trusted, roles)
	if err != nil {
		return nil, app.UsageOf(c, "--auth-proxy-header: %v", err)
	}
	return append(all, proxy), nil
}

// isPublic reports whether other machines can reach an address.
func isPublic(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, err
	}
	if host == "localhost" {
		return false, nil
	}
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback(), nil
}

// tlsOf returns how connections are encrypted. It is nil without --tls-cert.
func tlsOf(c *cli.Context) (*tls.Config, error) {
	cert, key := c.String("tls-cert"), c.String("tls-key")
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, app.Usage("--tls-cert %s and --tls-key %s must be a certificate and its key in PEM: %v", cert, key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// unanswered is how long Redis may take to answer at the start until requests are answered without it. Clients can connect before.
const unanswered = 500 * time.Millisecond

func serve(c *cli.Context, rdb redis.UniversalClient, config httpapi.Config) error {
	secure, err := tlsOf(c)
	if err != nil {
		return err
	}
	served, err := newServed(c, rdb, config)
	if err != nil {
		return err
	}
	config.Open, config.Metrics, config.Traces = served.open, metrics.Handler(served.registry), served.config.Tracing.Provider
	server, err := httpapi.New(config)
	if err != nil {
		return app.Failure(c, err)
	}
	listener, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return app.Usage("--listen: %v", err)
	}
	defer listener.Close()
	ctx, fail := context.WithCancelCause(c.Context)
	defer fail(nil)
	opened := make(chan error, 1)
	go func() { opened <- openServed(c, rdb, config) }()
	select {
	case err := <-opened:
		if err != nil {
			return app.Endless(c, err)
		}
	case <-time.After(unanswered):
		config.Logger.Warn("Redis does not answer yet: trying again, and requests are answered with 503; give its address with --redis or REDIS_URL")
		go func() {
			if err := <-opened; err != nil {
				fail(err)
			}
		}()
	}
	scheme := "http"
	if secure != nil {
		listener = tls.NewListener(listener, secure)
		scheme = "https"
	}
	config.Logger.Info("The server runs", "url", scheme+"://"+listener.Addr().String(), "namespaces", strings.Join(config.Namespaces, ","))
	err = server.Serve(ctx, listener, app.DurationOf(c, "grace"))
	config.Logger.Info("The server stopped")
	if c.Context.Err() == nil && err == nil {
		err = context.Cause(ctx)
	}
	return app.Endless(c, err)
}

// openServed opens each namespace once, so that a wrong name or password ends the command. Those that cannot be opened because Redis is
// away are opened when they are needed.
func openServed(c *cli.Context, rdb redis.UniversalClient, config httpapi.Config) error {
	for _, name := range config.Namespaces {
		switch _, err := config.Open(c.Context, name); {
		case err == nil || app.IsAway(err):
		case errors.Is(err, refusal.ErrNoNamespace):
			return app.NoNamespace(c.Context, rdb, "give namespaces with --namespace, and the server with --redis or REDIS_URL, or create one with `curfew namespace create` or --create", name)
		default:
			return err
		}
	}
	return nil
}
