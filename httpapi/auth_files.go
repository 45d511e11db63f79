package httpapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Tokens returns an Authenticator for the header "Authorization: Bearer TOKEN". Each line of the file has a token of at least 16
// characters, the roles of the client with commas between them, and its name: 8f0c… produce,work billing. Empty lines and those that begin with # are
// skipped. The file is read again when it has changed; a file that is not valid then changes nothing, and is logged. When the line of a
// client is removed or has other roles, its streams and its requests that wait end.
func Tokens(path string, logger *slog.Logger) (Authenticator, error) {
	f, err := watchFile(path, logger, readTokens)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) (Identity, bool) {
		secret, ok := bearer(r)
		if !ok {
			return Identity{}, false
		}
		hash := sha256.Sum256([]byte(secret))
		var identity Identity
		valid := false
		for _, t := range f.get() { // compares all tokens, so that the time does not reveal the position of a match
			if subtle.ConstantTimeCompare(t.hash[:], hash[:]) == 1 {
				identity, valid = t.who, true
			}
		}
		identity.Valid = func() bool {
			return slices.ContainsFunc(f.get(), func(t token) bool { return t.hash == hash && t.who.same(identity) })
		}
		return identity, valid
	}, nil
}

// bearer returns the token of a request. It returns no token if the request has several Authorization headers.
func bearer(r *http.Request) (token string, ok bool) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	return token, ok && strings.EqualFold(scheme, "Bearer")
}

type token struct {
	hash [sha256.Size]byte
	who  Identity
}

func readTokens(text string) ([]token, error) {
	var tokens []token
	for number, words := range clientLines(text) {
		if len(words) != 3 || len(words[0]) < 16 {
			return nil, refusal.Invalid("token file", "has a line %d that is not a token of 16 or more characters, its roles and a name: write TOKEN read,produce NAME", number)
		}
		roles, err := ParseRoles(words[1])
		if err != nil {
			return nil, refusal.Invalid("token file", "has a line %d with wrong roles: %v", number, err)
		}
		t := token{sha256.Sum256([]byte(words[0])), Identity{Name: words[2], Roles: roles}}
		if slices.ContainsFunc(tokens, func(o token) bool { return o.hash == t.hash }) {
			return nil, refusal.Invalid("token file", "has the token of line %d twice", number)
		}
		tokens = append(tokens, t)
	}
	if tokens == nil {
		return nil, refusal.Invalid("token file", "has no token: write TOKEN read,produce NAME in a line")
	}
	return tokens, nil
}

// clientLines returns the words of each line that is neither empty nor a comment, by its number.
func clientLines(text string) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
			if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") && !yield(i+1, words) {
				return
			}
		}
	}
}

// ParseRoles reads roles with commas between them.
func ParseRoles(text string) ([]Role, error) {
	var list []Role
	for word := range strings.SplitSeq(text, ",") {
		if !slices.Contains(roles, Role(word)) {
			hint := names.Hint(word, []string{string(Read), string(Produce), string(Work), string(Operate)})
			return nil, refusal.Invalid("role", "%q must be read, produce, work or operate%s", refusal.Clip(word), hint)
		}
		list = append(list, Role(word))
	}
	return list, nil
}

// Basic returns an Authenticator for the header "Authorization: Basic …". Each line of the file has a name, a colon and a bcrypt hash, as
// `htpasswd -nB NAME` prints it, and after a space the roles: ada:$2y$10$… read,operate. The file is read again like the file of Tokens.
func Basic(path string, logger *slog.Logger) (Authenticator, error) {
	f, err := watchFile(path, logger, readPasswords)
	if err != nil {
		return nil, err
	}
	b := &basic{file: f, checked: map[[sha256.Size]byte]time.Time{}, busy: make(chan struct{}, 2), line: map[string]int{}}
	return b.identify, nil
}

type password struct {
	hash []byte
	who  Identity
}

func readPasswords(text string) (map[string]password, error) {
	passwords := map[string]password{}
	for number, words := range clientLines(text) {
		name, hash, ok := strings.Cut(words[0], ":")
		if cost, err := bcrypt.Cost([]byte(hash)); len(words) != 2 || !ok || name == "" || err != nil || cost > 14 {
			return nil, refusal.Invalid("password file", "has a line %d that is not NAME:HASH and roles: `htpasswd -nB NAME` prints the hash, with a cost of up to 14; write the roles behind it", number)
		}
		roles, err := ParseRoles(words[1])
		if err != nil {
			return nil, refusal.Invalid("password file", "has a line %d with wrong roles: %v", number, err)
		}
		if _, twice := passwords[name]; twice {
			return nil, refusal.Invalid("password file", "has the name of line %d twice", number)
		}
		passwords[name] = password{[]byte(hash), Identity{Name: name, Roles: roles}}
	}
	if len(passwords) == 0 {
		return nil, refusal.Invalid("password file", "has no name: write NAME:HASH and roles in a line")
	}
	return passwords, nil
}

// basic checks passwords. A check takes many milliseconds on purpose, so passwords that were right are remembered for a minute as a
// hash, and only two are checked at once. The others stand in line. Each address has few places there, so that a client that tries
// many passwords does not keep other clients waiting.
type basic struct {
	file    *clientFile[map[string]password]
	busy    chan struct{}
	mu      sync.Mutex
	checked map[[sha256.Size]byte]time.Time // of name, password and stored hash: until when
	line    map[string]int                  // requests in line, by address
	inLine  int                             // all of them
}

const (
	remembered       = time.Minute
	checksPerAddress = 4
	checksWaiting    = 64
)

// unknownUserHash is checked for names that do not exist, so that the time of an answer does not show which names exist.
var unknownUserHash = sync.OnceValue(func() []byte {
	hash, _ := bcrypt.GenerateFromPassword([]byte("nobody"), bcrypt.DefaultCost)
	return hash
})

func (b *basic) identify(r *http.Request) (Identity, bool) {
	name, secret, ok := r.BasicAuth()
	if !ok || len(r.Header.Values("Authorization")) != 1 || len(secret) > 72 { // the most that bcrypt reads
		return Identity{}, false
	}
	stored, exists := b.file.get()[name]
	hash := stored.hash
	if !exists {
		hash = unknownUserHash()
	}
	key := sha256.Sum256([]byte(name + "\x00" + secret + "\x00" + string(hash)))
	stored.who.Valid = func() bool {
		now, exists := b.file.get()[name]
		return exists && bytes.Equal(now.hash, hash) && now.who.same(stored.who)
	}
	if exists && b.remembers(key) {
		return stored.who, true
	}
	leave, free := b.enterLine(clientAddress(r))
	if !free {
		return Identity{busy: true}, false
	}
	defer leave()
	select {
	case b.busy <- struct{}{}:
		defer func() { <-b.busy }()
	case <-r.Context().Done():
		return Identity{}, false
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(secret)) != nil || !exists {
		return Identity{}, false
	}
	b.remember(key)
	return stored.who, true
}

// enterLine takes a place in the line of passwords to check, if there is one.
func (b *basic) enterLine(address string) (leave func(), free bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line[address] >= checksPerAddress || b.inLine >= checksWaiting {
		return nil, false
	}
	b.line[address]++
	b.inLine++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.inLine--
		if b.line[address]--; b.line[address] == 0 {
			delete(b.line, address)
		}
	}, true
}

func (b *basic) remembers(key [sha256.Size]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.checked[key])
}

func (b *basic) remember(key [sha256.Size]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for hash, until := range b.checked {
		if now.After(until) {
			delete(b.checked, hash)
		}
	}
	b.checked[key] = now.Add(remembered)
}

// Proxy returns an Authenticator that trusts a proxy in front: the header has the name of the client. All clients of the
// proxy have the same roles. The header counts only if the request is from one of the trusted addresses.
func Proxy(header string, trusted []netip.Prefix, roles []Role) (Authenticator, error) {
	if header == "" || strings.ContainsFunc(header, func(c rune) bool { return c <= ' ' || c > '~' || c == ':' }) {
		return nil, refusal.Invalid("header", "%q must be the name of a header, such as X-Remote-User", refusal.Clip(header))
	}
	if len(trusted) == 0 {
		return nil, refusal.Invalid("trusted", "is empty: name the addresses of the proxies")
	}
	if len(roles) == 0 {
		return nil, refusal.Invalid("roles", "is empty: say what the clients of the proxy may do")
	}
	return func(r *http.Request) (Identity, bool) {
		address, err := netip.ParseAddr(clientAddress(r))
		values := r.Header.Values(header)
		if err != nil || len(values) != 1 || values[0] == "" || len(values[0]) > 256 ||
			!slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(address.Unmap()) }) {
			return Identity{}, false
		}
		return Identity{Name: values[0], Roles: roles}, true
	}, nil
}

// clientFile is a file of clients, which is read again when it has changed.
type clientFile[T any] struct {
	path   string
	read   func(text string) (T, error)
	logger *slog.Logger

	mu     sync.Mutex
	value  T
	seen   os.FileInfo
	looked time.Time
	gone   time.Time // since when there is no file
	fault  string    // of the last look, so that it is logged once
}

const (
	reloadAfter = time.Second     // the time between two looks at a file
	replaced    = 3 * time.Second // how long a file may be missing while it is replaced
)

func watchFile[T any](path string, logger *slog.Logger, read func(string) (T, error)) (*clientFile[T], error) {
	if logger == nil {
		logger = slog.Default()
	}
	w := &clientFile[T]{path: path, read: read, logger: logger}
	if err := w.reload(); err != nil {
		return nil, err
	}
	return w, nil
}

// get returns the newest value that was valid.
func (w *clientFile[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) > reloadAfter {
		err := w.reload()
		if err != nil && err.Error() != w.fault {
			w.logger.Error("Cannot read the file of clients again: the clients of before stay", "file", w.path, "error", err)
		}
		w.fault = ""
		if err != nil {
			w.fault = err.Error()
		}
	}
	return w.value
}

func (w *clientFile[T]) reload() error {
	w.looked = time.Now()
	info, err := os.Stat(w.path)
	switch {
	case errors.Is(err, os.ErrNotExist) && w.seen != nil && w.gone.IsZero():
		w.gone = time.Now() // it may be being replaced
		return nil
	case errors.Is(err, os.ErrNotExist) && time.Since(w.gone) < replaced:
		return nil
	case err != nil:
		return err
	}
	w.gone = time.Time{}
	if w.seen != nil && info.ModTime().Equal(w.seen.ModTime()) && info.Size() == w.seen.Size() && info.Mode() == w.seen.Mode() && os.SameFile(info, w.seen) {
		return nil
	}
	w.seen = info
	if info.Mode().Perm()&0o077 != 0 {
		w.logger.Warn("Other users can read the file of clients: use chmod 600", "file", w.path)
	}
	text, err := os.ReadFile(w.path)
	if err != nil {
		return err
	}
	value, err := w.read(string(text))
	if err == nil {
		w.value = value
	}
	return err
}
