package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/queue"
)

// use is a valid use of a command in a namespace of fillNamespace. LIVE, ENDED, PROMISE and AGENT stand for the ids of its tasks, and
// NAMESPACE for its name.
type use struct {
	args    string
	needs   string // the argument that is missing without arguments, "" if none is
	many    bool   // it takes any number of arguments
	claims  bool   // it needs the rights of a producer or more, channels included
	stores  bool   // a Redis that is full refuses it
	daemon  bool   // it runs until it is interrupted
	waits   bool   // a daemon that keeps running while Redis is away, and logs that
	reports bool   // it reports what is wrong with the server on stdout, and fails
	server  bool   // it is about the whole server
	slow    bool   // it measures, or keeps time: other tests show that it works
}

// uses has each command that is not hidden.
var uses = map[string]use{
	"dev":              {claims: true, daemon: true, slow: true},
	"demo":             {many: true, slow: true},
	"demo crash":       {claims: true, stores: true, slow: true},
	"demo fanout":      {claims: true, stores: true, slow: true},
	"work":             {args: "--kind render -- true", many: true, claims: true, daemon: true, slow: true},
	"reap":             {claims: true, daemon: true, waits: true, slow: true},
	"serve":            {args: "--listen 127.0.0.1:0", claims: true, daemon: true, waits: true, slow: true},
	"enqueue":          {args: "render {} --timeout 1h", needs: "the kind of the task", claims: true, stores: true},
	"get":              {args: "LIVE", needs: "the id of"},
	"ls":               {},
	"wait":             {args: "ENDED", needs: "the ids of one or more tasks", many: true, claims: true},
	"cancel":           {args: "LIVE", needs: "the ids of one or more tasks", many: true, claims: true},
	"retry":            {args: "ENDED", needs: "the ids of one or more tasks", many: true, claims: true, stores: true},
	"rm":               {args: "ENDED", needs: "the ids of one or more tasks", many: true, claims: true},
	"resolve":          {args: "PROMISE 1", needs: "the id of a promise", claims: true},
	"signal":           {args: "AGENT go 1", needs: "the id of an agent", claims: true},
	"events":           {},
	"explain":          {args: "LIVE", needs: "the ids of one or more tasks", many: true},
	"export":           {},
	"top":              {args: "--once"},
	"deadlines":        {},
	"queue ls":         {},
	"queue get":        {args: "mail", needs: "the names of", many: true},
	"queue pause":      {args: "mail", needs: "the name of one queue", claims: true},
	"queue resume":     {args: "mail", needs: "the name of one queue", claims: true},
	"queue drain":      {args: "mail --yes", needs: "the name of one queue", claims: true},
	"queue limit":      {args: "mail --running 2", needs: "--running, --rate or --length", claims: true},
	"kind ls":          {},
	"kind get":         {args: "render", needs: "the names of", many: true},
	"kind suggest":     {args: "render", needs: "the names of", many: true},
	"kind set":         {args: "render --timeout 5s", needs: "a default to set", claims: true},
	"worker ls":        {},
	"worker get":       {args: "w1", needs: "the ids of", many: true},
	"worker drain":     {args: "w1", needs: "the id of one worker", claims: true},
	"agent ls":         {},
	"agent get":        {args: "AGENT", needs: "the ids of", many: true},
	"agent export":     {many: true},
	"flow check":       {args: "DEFINITIONFILE", needs: "the names of one or more files", many: true},
	"flow put":         {args: "DEFINITIONFILE", needs: "the names of one or more files", many: true, claims: true, stores: true},
	"flow schema":      {},
	"flow ls":          {},
	"flow show":        {args: "publish", needs: "the name of one definition"},
	"flow run":         {args: "publish -p page=1", needs: "the name of one definition", claims: true, stores: true},
	"flow runs":        {args: "publish", needs: "the name of one definition"},
	"flow get":         {args: "RUN", needs: "the id of one run"},
	"flow graph":       {args: "RUN", needs: "a file, a definition or a run"},
	"flow resume":      {args: "RUN review", needs: "the id of one run, and the name of one of its nodes", claims: true},
	"flow cancel":      {args: "RUN", needs: "the ids of one or more runs", many: true, claims: true},
	"functions load":   {server: true},
	"functions ls":     {server: true},
	"functions show":   {args: "curfew", server: true},
	"functions prune":  {server: true},
	"namespace create": {args: "shop", needs: "the name of one namespace", server: true},
	"namespace ls":     {many: true, server: true},
	"namespace set":    {args: "NAMESPACE --events all", needs: "the name of one namespace", server: true},
	"namespace rm":     {args: "NAMESPACE --yes --force", needs: "the name of one namespace", server: true},
	"doctor":           {reports: true},
	"fsck":             {},
	"completion":       {args: "bash", needs: "bash, fish, powershell or zsh"},
	"version":          {},
	"help":             {many: true},
}

// leaf is a command that does something itself.
type leaf struct {
	use
	name    string
	command *cli.Command
}

// leaves returns the commands that are not hidden. A command that is not in uses fails the test.
func leaves(t *testing.T) (all []leaf) {
	t.Helper()
	var walk func(above string, commands []*cli.Command)
	walk = func(above string, commands []*cli.Command) {
		for _, command := range commands {
			name := above + command.Name
			if command.Hidden {
				continue
			}
			walk(name+" ", command.Subcommands)
			if !app.Runs(command) {
				continue
			}
			u, known := uses[name]
			if !known {
				t.Errorf("curfew %s has no valid use in the table uses", name)
			}
			all = append(all, leaf{u, name, command})
		}
	}
	walk("", program().Commands)
	return all
}

// connects reports whether the command uses a server by itself.
func (l leaf) connects() bool {
	return app.HasFlag(l.command, "redis")
}

// words returns the command line of a valid use.
func (l leaf) words(ids *strings.Replacer, flags ...string) []string {
	return slices.Concat(strings.Fields(l.name), flags, strings.Fields(ids.Replace(l.args)))
}

// fillNamespace creates a namespace that has what uses name.
func fillNamespace(t *testing.T, rdb redis.UniversalClient, name string) *strings.Replacer {
	t.Helper()
	q := queuetest.Open(t, rdb, queue.Config{Namespace: name, Events: queue.EventsAll})
	live := queuetest.Enqueue(t, q, queue.Task{Kind: "render", Queue: "mail", Timeout: time.Hour}).ID
	ended := queuetest.Enqueue(t, q, queue.Task{Kind: "render"}).ID
	w := &queuetest.Taker{Q: q, Worker: "w1"}
	w.Settle(t, queue.Outcome{ID: ended, Epoch: w.Take(t, ended, "default").Epoch, Verb: queue.Complete, Result: []byte("1")})
	promise := queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
	if err := q.DefineKind(t.Context(), "render", queue.Defaults{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	agent := suspend(t, w, time.Hour, 0)
	if _, err := claim.Of(q).Heartbeat(t.Context(), 0, "w1", time.Hour, 0, nil); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("LIVE", live, "ENDED", ended, "PROMISE", promise, "AGENT", agent, "NAMESPACE", name, "RUN", startRun(t, q), "DEFINITIONFILE", definitionFile)
}

// badCase is an invocation that must fail, or that must not.
type badCase struct {
	invocation
	claim string
	code  int
	want  string // in stderr, or in stdout of a command that reports
	out   string // "none": stdout must be empty, "any": it may have something
	log   bool   // it writes a log to stderr
	lines bool   // lines before the error say more: those of a batch that are bad, or a question
	waits bool   // it waits, and takes no processor time meanwhile
}

// badCases runs cases, some at a time, and counts them. In a long run each is a process of its own.
type badCases struct {
	t     *testing.T
	all   sync.WaitGroup
	busy  chan struct{} // slots of cases that compute
	idle  chan struct{} // slots of cases that wait
	count atomic.Int64

	single sync.Mutex // held by a case that runs again, alone
}

func newBadCases(t *testing.T) *badCases {
	return &badCases{t: t, busy: make(chan struct{}, 3), idle: make(chan struct{}, 50)}
}

// secret is in all passwords here. No output may have it.
const secret = "geheim"

func (b *badCases) try(k badCase) {
	b.t.Helper()
	k.alone = k.alone || size.Long()
	slots := b.busy
	if k.waits {
		slots = b.idle
	}
	b.count.Add(1)
	b.all.Go(func() {
		slots <- struct{}{}
		e := k.run(b.t)
		<-slots
		if k.waits && len(k.faults(e)) > 0 {
			// Fifty programs that start at once can be so slow on a busy machine that five seconds are over before a server has
			// answered. So the case is judged by a run beside no other that waits.
			b.single.Lock()
			e = k.run(b.t)
			b.single.Unlock()
		}
		for _, fault := range k.faults(e) {
			b.t.Errorf("%s: curfew %.300q %s: exit %d after %v, stdout %.300q, stderr %.1000q; want exit %d and %q", k.claim, k.args, fault, e.code, e.took.Round(time.Millisecond), e.out, e.errs, k.code, k.want)
		}
	})
}

// internals matches what an error must not have: it says nothing to somebody who does not know the program.
var internals = regexp.MustCompile(`panic|goroutine |\.go:\d|%!|0x[0-9a-f]{6}|\*[a-z]+\.[A-Z]|context canceled|context deadline exceeded|i/o timeout|use of closed|EOF\)?: give|<nil>|\[\]uint8|map\[`)

// faults returns what is wrong with the end of a case.
func (k badCase) faults(e ending) (list []string) {
	fail := func(condition bool, text string) {
		if condition {
			list = append(list, text)
		}
	}
	fail(e.code != k.code, "has another exit code")
	fail(k.out == "none" && e.out != "", "writes to stdout")
	fail(!strings.Contains(e.errs+e.out, k.want), "does not say what is wrong")
	fail(strings.Contains(e.out+e.errs, secret), "tells a password")
	fail(internals.MatchString(e.errs), "tells of its internals")
	fail(strings.Contains(e.errs, "dial tcp") && !strings.Contains(e.errs, "check host and port"), "does not explain the error of the system")
	fail(strings.ContainsFunc(e.errs, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) || !utf8.ValidString(e.errs), "writes control characters or bytes to stderr")
	lines := strings.Count(e.errs, "\n")
	fail(k.code != 0 && !k.log && (lines < 1 || lines > 2 && !k.lines || !strings.HasPrefix(e.errs, "curfew: ") && !k.lines), "does not say one thing in one or two lines")
	fail(k.code == 0 && !k.log && e.errs != "", "succeeds and complains")
	fail(len(e.errs) > 900 && !k.log, "says too much")
	return list
}

// wait waits for all cases, and fails if there were fewer than a number.
func (b *badCases) wait(least int64) {
	b.t.Helper()
	b.all.Wait()
	if n := b.count.Load(); n < least {
		b.t.Errorf("%d cases, want %d or more", n, least)
	} else {
		b.t.Logf("cases: %d", n)
	}
}

// failing is something wrong with the server, the user or the namespace of a command.
type failing struct {
	claim     string
	url       string
	namespace string
	ids       *strings.Replacer
	code      int
	want      string
	waits     bool
	passes    bool // a program that runs for long waits for the end of it
	few       bool // commands fail in the same way, so each third command is enough
	applies   func(l leaf) bool
	differs   map[string]string // what some commands say
}

// configure changes a setting of a server.
func configure(t *testing.T, s *redistest.Server, name, value string) {
	t.Helper()
	if err := s.Client(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
}

// badServers starts servers, and returns what is wrong with them. real has a namespace that no case may change.
func badServers(t *testing.T, real *redistest.Server, ids *strings.Replacer) []failing {
	t.Helper()
	admin := real.Client(t)
	for user, rules := range map[string]string{"stranger": "~other* &* +@all", "deaf": "~* &other* +@all", "nobody": "+@connection"} {
		words := []any{"ACL", "SETUSER", user, "on", ">" + secret}
		for rule := range strings.FieldsSeq(rules) {
			words = append(words, rule)
		}
		if err := admin.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for name, version := range map[string]string{"later": "99", "earlier": "1", "going": "removing"} {
		queuetest.Open(t, admin, queue.Config{Namespace: name})
		if err := admin.HSet(t.Context(), name+":{0}", "version", version).Err(); err != nil {
			t.Fatal(err)
		}
	}
	replica := redistest.Start(t, "--replicaof", strings.Replace(real.Addr, ":", " ", 1))
	locked := redistest.Start(t)
	configure(t, locked, "requirepass", secret)
	full := redistest.Start(t)
	fullIDs := fillNamespace(t, full.Client(t), "curfew")
	configure(t, full, "maxmemory", "1")
	saying := func(line string) string {
		p := faultproxy.Start(t, real.Addr)
		p.Say(line)
		return p.Addr
	}
	at := func(addr string) string { return "redis://user:" + secret + "@" + addr }
	onNamespace := func(l leaf) bool { return app.HasFlag(l.command, "namespace") && l.name != "dev" }
	return []failing{
		{claim: "no server", url: at(nobody), code: app.ExitUnreachable, want: "check host and port", waits: true, passes: true},
		{claim: "a silent server", url: at(silent(t, func() {})), code: app.ExitUnreachable, want: "no answer in 5s", waits: true, passes: true},
		{claim: "a server that loads", url: "redis://" + saying("-LOADING Redis is loading the dataset in memory"), code: app.ExitUnreachable, want: "it is loading its data: wait", waits: true, passes: true},
		{claim: "TLS on a server without", url: "redis" + "s://" + real.Addr, code: app.ExitUnreachable, want: "write redis://, not rediss://", waits: true, few: true},
		{claim: "no TLS on a server with it", url: at(secureServer(t)), code: app.ExitUnreachable, want: "write rediss://, not redis://", few: true},
		{claim: "an unknown authority", url: strings.Replace(at(secureServer(t)), "redis", "rediss", 1), code: app.ExitUnreachable, want: "give the client the authority that signed it", few: true},
		{claim: "a server that is no Redis", url: "redis://" + saying("\x16\x03\x01 garbage\xff\x1b[2J"), code: app.ExitUnreachable, want: "the server is not a Redis: check host and port", few: true},
		{claim: "a web server", url: "redis://" + saying("HTTP/1.1 400 Bad Request"), code: app.ExitUnreachable, want: "the server is not a Redis: check host and port", few: true},
		{claim: "a server that is no cluster", url: "redis+cluster://stranger:" + secret + "@" + real.Addr, code: app.ExitUnreachable, want: "it is not a cluster", few: true},
		{claim: "a server that is no sentinel", url: "redis+sentinel://stranger:" + secret + "@" + real.Addr + "/master?sentinel_password=" + secret, code: app.ExitUnreachable, want: "the server is not a sentinel", few: true},
		{claim: "an unknown database", url: "redis://" + real.Addr + "/99", code: app.ExitUnreachable, want: "name a database that it has", few: true},
		{claim: "a wrong password", url: "redis://stranger:" + secret + "nis@" + real.Addr, code: app.ExitUnreachable, want: "the user or the password is wrong"},
		{claim: "no password", url: "redis://" + locked.Addr, code: app.ExitUnreachable, want: "it requires a password", few: true},
		{claim: "a user without any right", url: "redis://nobody:" + secret + "@" + real.Addr, code: app.ExitFailed, want: "ACL SETUSER nobody "},
		{claim: "a user without the keys", url: "redis://stranger:" + secret + "@" + real.Addr, code: app.ExitFailed, want: "ACL SETUSER stranger ~",
			applies: func(l leaf) bool { return !strings.HasPrefix(l.name, "functions ") && l.name != "namespace ls" }},
		{claim: "a user without the channels", url: "redis://deaf:" + secret + "@" + real.Addr, code: app.ExitFailed, want: "ACL SETUSER deaf &", applies: func(l leaf) bool { return l.claims || l.reports }},
		{claim: "a replica", url: "redis://" + replica.Addr, code: app.ExitUnreachable, want: "it is a replica: connect to its master " + real.Addr,
			differs: map[string]string{"doctor": "it is a replica"}},
		{claim: "a full server", url: "redis://" + full.Addr, ids: fullIDs, code: app.ExitFailed, want: "raise maxmemory", applies: func(l leaf) bool { return l.stores || l.reports }},
		{claim: "a later version", url: "redis://" + real.Addr, namespace: "later", code: app.ExitFailed, want: "newer version: upgrade this program", applies: onNamespace,
			differs: map[string]string{"doctor": "later has records of version 99"}},
		{claim: "an earlier version", url: "redis://" + real.Addr, namespace: "earlier", code: app.ExitFailed, want: "older version", applies: onNamespace, few: true,
			differs: map[string]string{"doctor": "earlier has records of version 1"}},
		{claim: "a namespace that is being removed", url: "redis://" + real.Addr, namespace: "going", code: app.ExitFailed, want: "is being removed", applies: onNamespace, few: true},
		{claim: "an unknown namespace", url: "redis://" + real.Addr, namespace: "crufew", code: app.ExitNotFound, want: `there is no namespace "crufew" on this Redis (did you mean curfew?): `, applies: onNamespace,
			differs: map[string]string{"doctor": "there is no namespace crufew"}},
		{claim: "a malformed namespace", url: "redis://" + real.Addr, namespace: "a{\x1b[2J", code: app.ExitUsage, want: `namespace "a{\x1b[2J" must be 1 to 128 of`, applies: onNamespace, few: true},
		{claim: "a URL without a scheme", url: "user:" + secret + "@localhost:6379", code: app.ExitUsage, want: "must begin with redis://", few: true},
		{claim: "a URL of another kind", url: "http://user:" + secret + "@localhost:6379", code: app.ExitUsage, want: "must begin with redis://", few: true},
		{claim: "a malformed URL", url: "redis://user:" + secret + "%zz@localhost:6379", code: app.ExitUsage, want: "is malformed", few: true},
		{claim: "a malformed URL of a cluster", url: "redis+cluster://user:" + secret + "@localhost:port,other", code: app.ExitUsage, want: "malformed", few: true},
		{claim: "a malformed URL of sentinels", url: "redis+sentinel://user:" + secret + "@localhost:26379?sentinel_password=" + secret, code: app.ExitUsage, want: "name", few: true},
		{claim: "an unknown option of a URL", url: at(nobody) + "?pool_size=many", code: app.ExitUsage, want: "pool_size", few: true},
	}
}

// secureServer starts a Redis that speaks TLS only on the address that it returns.
func secureServer(t *testing.T) (addr string) {
	t.Helper()
	any := httptest.NewTLSServer(nil) // for its certificate
	defer any.Close()
	certificate := any.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	public := write("crt", "CERTIFICATE", certificate.Certificate[0])
	admin := redistest.Start(t, "--tls-auth-clients", "no", "--tls-cert-file", public, "--tls-key-file", write("key", "PRIVATE KEY", key), "--tls-ca-cert-file", public).Client(t)
	await.Until(t, "Redis listens on a free port", func() bool { // another process may take the port before Redis does
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return false
		}
		addr = free.Addr().String()
		free.Close()
		return admin.ConfigSet(t.Context(), "tls-port", addr[strings.LastIndex(addr, ":")+1:]).Err() == nil
	})
	return addr
}

// Every command fails in the same way, with one error that says what to do, and changes nothing. Of the commands that fail for a
// reason, one runs in a process of its own.
func TestEveryCommandSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	b := newBadCases(t)
	real := redistest.Start(t)
	ids := fillNamespace(t, real.Client(t), "curfew")
	failings := badServers(t, real, ids)
	before := redistest.Dump(t, real.Client(t), "")
	all := leaves(t)
	for i, l := range all {
		b.tryWrongUse(l, ids, "redis://"+real.Addr, i == len(all)/2)
	}
	connecting := slices.DeleteFunc(all, func(l leaf) bool { return !l.connects() })
	for j, f := range failings {
		apply := slices.DeleteFunc(slices.Clone(connecting), func(l leaf) bool { return f.applies != nil && !f.applies(l) })
		for i, l := range apply {
			if alone := i == j%len(apply); alone || !f.few && !f.waits || i%3 == j%3 || size.Long() {
				b.tryFailing(l, f, ids, alone)
			}
		}
	}
	for _, l := range connecting {
		b.trySignals(t, l, ids)
	}
	b.wait(700)
	if changed := redistest.Diff(before, redistest.Dump(t, real.Client(t), "")); changed != "" {
		t.Errorf("something was changed:\n%s", changed)
	}
}

// tryWrongUse tries what cli and package app find before the command connects.
func (b *badCases) tryWrongUse(l leaf, ids *strings.Replacer, url string, alone bool) {
	var at []string
	if l.connects() {
		at = []string{"--redis", url}
	}
	wrong := func(claim, want string, words ...string) {
		b.try(badCase{claim: claim, invocation: invocation{args: words, alone: alone}, code: app.ExitUsage, want: want, out: "none"})
	}
	wrong("an unknown flag", "there is no flag --no-such-flag", l.words(ids, slices.Concat(at, []string{"--no-such-flag"})...)...)
	if l.connects() {
		wrong("a flag without a value", "--redis needs a value: see `curfew "+l.name+" --help`", append(strings.Fields(l.name), "--redis")...)
		wrong("an empty URL", "--redis", l.words(ids, "--redis=")...)
	}
	if app.HasFlag(l.command, "request-timeout") {
		wrong("a silence without a unit", `--request-timeout "5": `, l.words(ids, "--request-timeout", "5")...)
	}
	if f, is := app.FlagOf(l.command, "output").(*cli.StringFlag); is && app.ChoicesOf(f) != nil {
		wrong("an unknown format", `--output "yaml" must be `, l.words(ids, slices.Concat(at, []string{"-o", "yaml"})...)...)
	}
	if app.HasFlag(l.command, "timeout") {
		wrong("a time without a unit", "has no unit: write 30s", l.words(ids, slices.Concat(at, []string{"--timeout", "30"})...)...)
	}
	if len(l.name)%3 == 0 {
		wrong("no file of settings", "--config: open /nowhere/config", l.words(ids, "--config", "/nowhere/config")...)
	}
	if l.needs != "" {
		wrong("no argument", l.needs, slices.Concat(strings.Fields(l.name), at)...)
	}
	if !l.many {
		extra := slices.Concat(l.words(ids, at...), []string{"one", "two"})
		wrong("too many arguments", ", and got \"", extra...)
	}
}

// tryFailing tries a valid use where something else is wrong. A process of its own gets the URL and the namespace from the environment.
func (b *badCases) tryFailing(l leaf, f failing, ids *strings.Replacer, alone bool) {
	k := badCase{claim: f.claim, code: f.code, want: f.want, out: "none", waits: f.waits}
	if f.ids != nil {
		ids = f.ids
	}
	k.alone = alone && !strings.HasPrefix(l.name, "demo ") && l.name != "dev" // these do not read the environment
	if k.alone {
		k.args, k.env = l.words(ids), []string{"CURFEW_REDIS_URL=" + f.url, "REDIS_URL=redis://" + nobody}
		if f.namespace != "" {
			k.env = append(k.env, "CURFEW_NAMESPACE="+f.namespace)
		}
	} else {
		flags := []string{"--redis", f.url}
		if f.namespace != "" {
			flags = append(flags, "--namespace", f.namespace)
		}
		k.args = l.words(ids, flags...)
	}
	if want := f.differs[l.name]; want != "" {
		k.want = want
	}
	if l.daemon && l.name != "dev" {
		k.log = true
	}
	if l.reports && k.code != app.ExitUsage && (k.code != app.ExitUnreachable || f.differs[l.name] != "") { // what it finds is its output
		k.code, k.out = app.ExitFailed, "any"
	}
	if strings.HasPrefix(l.name, "demo ") {
		k.out = "any" // it says what it does
	}
	if strings.HasPrefix(f.want, "ACL SETUSER stranger") && (l.server || l.reports) {
		k.want = ":{*"
	}
	if strings.HasPrefix(f.want, "ACL SETUSER nobody") && l.server {
		k.want = "the Redis user lacks a right"
	}
	if l.waits && f.passes { // it runs until it is interrupted
		k.code, k.want, k.signal, k.said = 0, "trying again", syscall.SIGTERM, "trying again"
	}
	b.try(k)
}

// trySignals interrupts a command while it waits for its server.
func (b *badCases) trySignals(t *testing.T, l leaf, ids *strings.Replacer) {
	for i, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		alone := slices.Contains([]string{"ls", "serve", "demo fanout"}, l.name)
		if i == 1 && !alone && (len(l.name)%3 != 0 || !size.Long()) {
			continue
		}
		asked := make(chan struct{})
		k := badCase{claim: fmt.Sprint("the signal ", signal), code: app.ExitInterrupted, want: "curfew: interrupted", out: "none", waits: true}
		k.args = l.words(ids, "--redis", "redis://"+silent(t, func() { close(asked) }))
		k.alone, k.signal, k.when = alone, signal, asked
		if l.daemon {
			k.code, k.want, k.log = 0, "", true
		}
		if strings.HasPrefix(l.name, "demo ") {
			k.out = "any"
		}
		b.try(k)
	}
}

// Every valid use works on all servers, a full one included, and also if nobody reads what it prints.
func TestEveryCommandWorks(t *testing.T) {
	t.Parallel()
	b := newBadCases(t)
	full := redistest.Start(t)
	embedded := redistest.Embedded(t)
	for _, on := range []struct {
		claim, url string
		rdb        redis.UniversalClient
		full       bool
	}{
		{"a real Redis", "redis://" + redistest.Shared(t).Addr, redistest.Shared(t).Client(t), false},
		{"the embedded server", "redis://" + embedded.Addr(), embedded.Client(), false},
		{"a full Redis", "redis://" + full.Addr, full.Client(t), true},
	} {
		var all []badCase
		for i, l := range leaves(t) {
			// TestEveryCommandOnTheServerOfDev runs all of them on the embedded server.
			if on.claim == "the embedded server" && !size.Drawn(l.name, 4) {
				continue
			}
			if l.slow || l.reports || on.full && (l.stores || l.name == "namespace create") {
				continue
			}
			if on.claim == "the embedded server" && strings.HasPrefix(l.name, "functions ") || on.claim != "a real Redis" && !l.connects() {
				continue
			}
			name := redistest.Namespace(t)
			k := badCase{claim: on.claim, out: "any", invocation: invocation{gone: (i%2 == 0) == (on.claim == "a real Redis"), alone: i%10 < 2 && on.claim == "a real Redis"}}
			if l.connects() {
				flags := []string{"--redis", on.url}
				if app.HasFlag(l.command, "namespace") {
					flags = append(flags, "--namespace", name)
				}
				k.args = l.words(fillNamespace(t, on.rdb, name), flags...)
			} else {
				k.args = l.words(strings.NewReplacer("DEFINITIONFILE", definitionFile))
			}
			k.log = slices.Contains([]string{"ls", "fsck", "agent ls", "flow runs"}, l.name) // they say on stderr how far they looked
			all = append(all, k)
		}
		if on.full {
			configure(t, full, "maxmemory", "1")
		}
		for _, k := range all {
			b.try(k)
		}
	}
	b.wait(80)
}
