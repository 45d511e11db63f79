package httprequest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Client makes requests. Its connections are shared by all requests.
type Client struct {
	http *http.Client
	most int // bytes of an answer
}

// refusedError is what the client refuses, whatever the server would answer.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// New returns a client that takes answers of up to so many bytes. With publicOnly it connects to no address of a private network: definitions may come from people who
// must not reach the servers next to the worker.
func New(publicOnly bool, most int) *Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 100, MaxIdleConnsPerHost: 10,
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeaders,
	}
	if publicOnly {
		dialer.ControlContext = refusePrivate
		transport.Proxy = nil // a proxy would connect to any address
	}
	return &Client{&http.Client{Transport: transport, CheckRedirect: checkRedirect}, most}
}

// refusePrivate is called with each address that a name has, just before the connection is made. So a name cannot be checked
// with one address and used with another.
func refusePrivate(_ context.Context, network, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedError{fmt.Sprintf("the address %s cannot be read", address)}
	}
	if !public(host.Addr()) {
		return &refusedError{fmt.Sprintf("%s is an address of a private network, and this worker connects to public ones only", host.Addr())}
	}
	return nil
}

// shared are blocks that are neither public nor private by their name: shared by carriers, for protocols and for examples, reserved, and those
// in which an address of IPv4 can be written as one of IPv6.
var shared = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10")

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

// checkRedirect follows a redirect only within its scheme, so that nothing that was sent encrypted is sent openly.
func checkRedirect(next *http.Request, before []*http.Request) error {
	switch first := before[0].URL; {
	case len(before) > maxRedirects:
		return &refusedError{fmt.Sprintf("%s redirects more than %d times", first.Redacted(), maxRedirects)}
	case next.URL.Scheme != first.Scheme:
		return &refusedError{fmt.Sprintf("%s redirects to %s, which is not %s", first.Redacted(), next.URL.Redacted(), first.Scheme)}
	}
	return nil
}
