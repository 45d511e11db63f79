package queue

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"strings"
)

// certificates are the TLS options of a URL.
type certificates struct {
	authorities *x509.CertPool    // nil: those of the system
	own         []tls.Certificate // sent if the server requires one
}

// addTo adds the certificates to a client's TLS config, which is nil unless the URL begins with rediss.
func (c *certificates) addTo(config *tls.Config) {
	if config != nil && c != nil {
		config.RootCAs, config.Certificates = c.authorities, c.own
	}
}

// takeCertificates reads the files that the TLS options of a URL name. rest is the URL without these
// options, because go-redis refuses options that it does not know.
func takeCertificates(address string) (rest string, c *certificates, err error) {
	server, query, hasQuery := strings.Cut(address, "?")
	if !hasQuery || !strings.Contains(query, "tls_") {
		return address, nil, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", nil, badURL(malformed)
	}
	ca, cert, key := values.Get("tls_ca"), values.Get("tls_cert"), values.Get("tls_key")
	for _, name := range []string{"tls_ca", "tls_cert", "tls_key"} {
		values.Del(name)
	}
	switch {
	case !strings.HasPrefix(server, "rediss"):
		return "", nil, badURL("names certificates but does not use TLS: begin with rediss://")
	case (cert == "") != (key == ""):
		return "", nil, badURL("must name both tls_cert and tls_key, or neither")
	}
	c = &certificates{}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if c.authorities = x509.NewCertPool(); err != nil || !c.authorities.AppendCertsFromPEM(text) {
			return "", nil, badURL("names a file as tls_ca that cannot be read or contains no certificate in PEM format")
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return "", nil, badURL("names files as tls_cert and tls_key that cannot be read or do not match: use a certificate and its key in PEM format")
		}
		c.own = []tls.Certificate{pair}
	}
	if len(values) == 0 {
		return server, c, nil
	}
	return server + "?" + values.Encode(), c, nil
}
