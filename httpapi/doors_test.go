package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// needs has the role of each route, by id. It is written out, so that a route cannot change its role unseen.
var needs = map[Role]string{
	Read: `explainTask getAgent listAgents listQueues getQueue listKinds getKind listWorkers getWorker countDeadlines listOverdue getStats
		getTask getResult listTasks getEvents listFlows getFlow checkFlow listRuns getRun getRunGraph`,
	Produce: `enqueueTask enqueueTasks cancelTask retryTask resolvePromise rejectPromise resumeTask signalAgent startRun resumeRun`,
	Work: `fetchTasks heartbeat settleTasks describeWorker suspendAgent scheduleAgentTasks getAgentTaskResults cancelAgentTask checkpointAgent
		getAgentCheckpoint`,
	Operate: `setKind pauseQueue resumeQueue limitQueue drainQueue drainWorker cancelTasks deleteTask putFlow`,
}

func TestEachRouteHasTheRoleThatIsWrittenHere(t *testing.T) {
	left := map[string]Role{}
	for role, names := range needs {
		for _, id := range strings.Fields(names) {
			left[id] = role
		}
	}
	for _, r := range table() {
		if left[r.ID] != r.Role {
			t.Errorf("%s needs the role %q, want %q", r.ID, r.Role, left[r.ID])
		}
		delete(left, r.ID)
	}
	if len(left) > 0 {
		t.Errorf("there are no routes %v", left)
	}
}

// includes has the roles that each role includes, and those of a client with two.
var includes = map[string][]Role{"read": {Read}, "produce": {Read, Produce}, "work": {Read, Work}, "operate": {Read, Produce, Work, Operate}, "produce,work": {Read, Produce, Work}}

// change changes a request, such as by a header that says who sends it.
type change = func(*http.Request)

// door is a way to say who a client is, with a client for each key of includes.
type door struct {
	name    string
	config  func(t *testing.T, roles string) Config // the server to which a client with these roles sends its requests
	client  func(roles string) change
	nobody  []change // what does not make a client known
	secrets []string // what no log line may have
}

// clientOf returns the name of the client with these roles.
func clientOf(roles string) string { return "one-who-may-" + strings.ReplaceAll(roles, ",", "-") }

func doors(t *testing.T) []door {
	quiet := slog.New(slog.DiscardHandler)
	token := func(roles string) string { return "token-of-" + clientOf(roles) }
	hash, err := bcrypt.GenerateFromPassword([]byte("pass-of-all"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var tokens, passwords strings.Builder
	for roles := range includes {
		fmt.Fprintf(&tokens, "%s %s %s\n", token(roles), roles, clientOf(roles))
		fmt.Fprintf(&passwords, "%s:%s %s\n", clientOf(roles), hash, roles)
	}
	plain := func(*http.Request) {}
	basic := func(name, secret string) change {
		return func(r *http.Request) { r.SetBasicAuth(name, secret) }
	}
	return []door{
		{"token", func(t *testing.T, _ string) Config {
			auth, err := Tokens(tokenFile(t, tokens.String()), quiet)
			return Config{Auth: authenticators(t, auth, err)}
		}, func(roles string) change { return header("Authorization", "Bearer "+token(roles)) },
			[]change{plain, header("Authorization", "Bearer token-of-nobody-at-all"), basic(clientOf("operate"), token("operate")), header("X-Remote-User", clientOf("operate"))},
			[]string{"token-of"}},
		{"password", func(t *testing.T, _ string) Config {
			auth, err := Basic(tokenFile(t, passwords.String()), quiet)
			return Config{Auth: authenticators(t, auth, err)}
		}, func(roles string) change { return basic(clientOf(roles), "pass-of-all") },
			[]change{plain, basic(clientOf("operate"), "wrong"), header("Authorization", "Bearer pass-of-all"), header("X-Remote-User", clientOf("operate"))},
			[]string{"pass-of-all", string(hash)}},
		// All clients of a proxy have the same roles, so there is a server for each role.
		{"proxy", func(t *testing.T, text string) Config {
			roles, err := ParseRoles(text)
			if err != nil {
				t.Fatal(err)
			}
			auth, err := Proxy("X-Remote-User", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, roles)
			return Config{Auth: authenticators(t, auth, err)}
		}, func(roles string) change { return header("X-Remote-User", clientOf(roles)) },
			[]change{plain, header("X-Remote-User", ""), header("X-Remote-User", "ada", "root"), header("X-Forwarded-User", "ada"), basic("ada", "pass-of-all")},
			nil},
	}
}

func authenticators(t *testing.T, auth Authenticator, err error) []Authenticator {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return []Authenticator{auth}
}

// Every route as nobody and as each role, through each door. The paths beside the API too.
func TestEachDoorLetsInThoseWithTheRole(t *testing.T) {
	scraped := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"scraped":true}`) })
	for _, d := range doors(t) {
		for roles, may := range includes {
			t.Run(d.name+"/"+roles, func(t *testing.T) {
				config := d.config(t, roles)
				config.Metrics = scraped
				s := newStage(t, config)
				for _, r := range table() {
					path, body := sample(r)
					for i, nobody := range d.nobody {
						if a := s.do(r.Method, path, body, nobody); a.status != 401 || a.word() != "unauthorized" || len(a.header.Values("WWW-Authenticate")) != 2 {
							t.Errorf("%s as nobody %d: %d %s", r.ID, i, a.status, a.body)
						}
					}
					a := s.do(r.Method, path, body, d.client(roles))
					if allowed := slices.Contains(may, r.Role); allowed == (a.status == 403) || a.status == 401 || a.status >= 500 {
						t.Errorf("%s, which needs %s: %d %s", r.ID, r.Role, a.status, a.body)
					} else if !allowed && (a.word() != "forbidden" || !strings.Contains(a.sentence(), "the role "+string(r.Role))) {
						t.Errorf("%s is refused with %s", r.ID, a.body)
					}
				}
				s.besideTheAPI(d, roles)
				s.changesHaveNames(d, roles, may)
			})
		}
	}
}

// besideTheAPI checks that health is for everybody, and that metrics are for those who may read.
func (s *stage) besideTheAPI(d door, roles string) {
	s.t.Helper()
	for _, who := range append(d.nobody, d.client(roles)) {
		s.want(200, "GET", "/healthz", "", who)
		s.want(200, "HEAD", "/readyz", "", who)
		s.want(405, "POST", "/healthz", "", who)
	}
	for _, nobody := range d.nobody {
		s.want(401, "GET", "/metrics", "", nobody)
	}
	if a := s.want(200, "GET", "/metrics", "", d.client(roles)); a.json["scraped"] != true {
		s.t.Errorf("/metrics is answered with %s", a.body)
	}
	if a := s.want(405, "POST", "/metrics", "", d.client(roles)); a.header.Get("Allow") != "GET, HEAD" {
		s.t.Errorf("/metrics allows %q", a.header.Get("Allow"))
	}
	if a := s.want(403, "GET", "/metrics", "", d.client(roles), func(r *http.Request) { r.Host = "evil.example" }); a.word() != "wrong_host" {
		s.t.Errorf("/metrics under another name is answered with %s", a.body)
	}
}

// changesHaveNames checks that the log has a change of the client under its name, if it may make one, and no secret.
func (s *stage) changesHaveNames(d door, roles string, may []Role) {
	s.t.Helper()
	text := s.log.String()
	change := fmt.Sprintf(`msg="HTTP change" who=%s method=POST route=tasks namespace=%s task_id=0-`, clientOf(roles), s.q.Namespace())
	if slices.Contains(may, Produce) != strings.Contains(text, change) {
		s.t.Errorf("the log is %.600s", text)
	}
	for _, secret := range d.secrets {
		if strings.Contains(text, secret) {
			s.t.Errorf("the log has %q: %.600s", secret, text)
		}
	}
}

// A probe by an address that is not allowed is refused, whatever it asks. With the header Host: localhost it is not.
func TestProbesNeedAnAllowedHost(t *testing.T) {
	for _, row := range []struct {
		hosts  []string
		host   string
		status int
	}{
		{nil, "10.1.2.3:7420", 403},
		{nil, "localhost", 200},
		{nil, "localhost:7420", 200},
		{nil, "[::1]:7420", 200},
		{[]string{"10.1.2.3"}, "10.1.2.3:7420", 200},
		{[]string{"10.1.2.3"}, "10.1.2.3", 200},
		{[]string{"jobs.example.com"}, "jobs.example.com:8443", 200},
		{[]string{"jobs.example.com"}, "jobs.example.com.evil.example", 403},
		{[]string{"*"}, "anything.example", 200},
	} {
		scraped := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
		s := newStage(t, Config{Hosts: row.hosts, Metrics: scraped})
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "queues"} {
			if a := s.do("GET", path, "", func(r *http.Request) { r.Host = row.host }); a.status != row.status {
				t.Errorf("GET %s of %s, with %q allowed: %d %s, want %d", path, row.host, row.hosts, a.status, a.body, row.status)
			}
		}
	}
}

// An old browser says only the origin of its page. That is compared with the Host, so a proxy must pass the Host with its port.
func TestTheOriginOfAPageIsComparedWithHostAndPort(t *testing.T) {
	s := newStage(t, Config{Hosts: []string{"jobs.example.com"}})
	for host, status := range map[string]int{"jobs.example.com:8443": 201, "jobs.example.com": 403} {
		a := s.do("POST", "tasks", `{"kind":"k"}`, header("Origin", "https://jobs.example.com:8443"), func(r *http.Request) { r.Host = host })
		if a.status != status {
			t.Errorf("the Host %s: %d %s, want %d", host, a.status, a.body, status)
		}
	}
}
