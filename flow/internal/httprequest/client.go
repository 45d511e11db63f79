package httprequest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Client makes requests. Its connections are shared by all requests.
type Client struct {
	http *http.Client
	most int // bytes of an answer
}

// refusedError is the error of a request that the client refuses to send.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// New returns a client that takes answers of up to so many bytes. It connects to public addresses and to those that are allowed:
// definitions may come from people who must not reach the servers next to the worker. If all addresses of a family are allowed,
// so are the proxies that the environment names, which connect to any address.
func New(allow []netip.Prefix, most int) *Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 100, MaxIdleConnsPerHost: 10,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeaders,
	}
	dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error { return permitted(allow, address) }
	if slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &Client{&http.Client{Transport: transport, CheckRedirect: checkRedirect}, most}
}

// permitted is called with each address that a name has, just before the connection is made. So a name cannot be checked
// with one address and used with another.
func permitted(allow []netip.Prefix, address string) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedError{fmt.Sprintf("the address %s cannot be read", address)}
	}
	a := host.Addr().Unmap().WithZone("")
	if !public(a) && !slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return &refusedError{fmt.Sprintf("%s is an address of a private network: start the worker with --http-allow %s/%d, or Config.Allow, if flows may reach it", a, a, a.BitLen())}
	}
	return nil
}

// shared are blocks that are neither public nor private by their name: shared by carriers, for protocols and for examples, reserved, and
// those in which an address of IPv4 can be written as one of IPv6. At 168.63.129.16 a cloud tells its machines their settings; the like of
// other clouds is link-local.
var shared = prefixes("0.0.0.0/8", "100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

func prefixes(all ...string) (list []netip.Prefix) {
	for _, text := range all {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, block := range shared {
		if block.Contains(a) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate()
}

// hostOf returns the host and port of a URL, however it writes them.
func hostOf(u *url.URL) string {
	return strings.ToLower(u.Hostname()) + ":" + cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// checkRedirect follows a redirect only within its scheme, so that nothing that was sent encrypted is sent openly. Headers of the
// definition, such as a key of an API, are for the host that it names, and no other host gets them.
func checkRedirect(next *http.Request, before []*http.Request) error {
	switch first := before[0].URL; {
	case len(before) > maxRedirects:
		return &refusedError{fmt.Sprintf("%s redirects more than %d times", first.Redacted(), maxRedirects)}
	case next.URL.Scheme != first.Scheme:
		return &refusedError{fmt.Sprintf("%s redirects to %s, which is not %s", first.Redacted(), next.URL.Redacted(), first.Scheme)}
	case hostOf(next.URL) == hostOf(first):
	case next.Body != nil:
		return &refusedError{fmt.Sprintf("%s redirects to %s, another host, which does not get the body", first.Redacted(), next.URL.Redacted())}
	default:
		next.Header = http.Header{}
	}
	return nil
}
