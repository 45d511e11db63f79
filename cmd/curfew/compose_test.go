package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
)

// composeFile is what docker-compose.yml uses of the format. Another key is an error: it could be misspelled.
type composeFile struct {
	Common   service `yaml:"x-curfew"`
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       composeBuild
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Healthcheck struct {
		Test     []string
		Interval string
	}
	DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	Deploy    struct{ Replicas int }
	StopGrace string `yaml:"stop_grace_period"`
	Restart   string
	Profiles  []string
}

// composeBuild is a folder, or a folder and a stage of the Dockerfile.
type composeBuild struct{ Context, Target string }

func (b *composeBuild) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Decode(&b.Context)
	}
	type plain composeBuild
	return node.Decode((*plain)(b))
}

func readCompose(t *testing.T) (file composeFile) {
	t.Helper()
	text, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file
}

// stage is a stage of the Dockerfile: its instructions, without FROM.
type stage struct {
	name, from   string
	instructions [][2]string
}

func (s stage) all(instruction string) (values []string) {
	for _, i := range s.instructions {
		if i[0] == instruction {
			values = append(values, i[1])
		}
	}
	return values
}

func readDockerfile(t *testing.T) (stages []stage) {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		instruction, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "", "#":
		case "FROM":
			from, name, _ := strings.Cut(value, " AS ")
			stages = append(stages, stage{name: name, from: from})
		case "WORKDIR", "COPY", "RUN", "USER", "HEALTHCHECK", "ENTRYPOINT":
			last := &stages[len(stages)-1]
			last.instructions = append(last.instructions, [2]string{instruction, value})
		default:
			t.Errorf("the Dockerfile has an instruction that this test does not know: %s", line)
		}
	}
	return stages
}

// words returns the JSON array in an instruction. It ignores the text before the array.
func words(t *testing.T, value string) (list []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(value[strings.IndexByte(value, '['):]), &list); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return list
}

// aName is the name of an image on the usual registry, with a version.
var aName = regexp.MustCompile(`^([a-z0-9]+/)?[a-z0-9]+:v?[0-9][0-9.]*$`)

func TestTheImagesAreSmallAndNotRoots(t *testing.T) {
	t.Parallel()
	stages := readDockerfile(t)
	file := readCompose(t)
	names := map[string]bool{"": true}
	for i, s := range stages {
		names[s.name] = true
		if s.from != "scratch" && !aName.MatchString(s.from) {
			t.Errorf("the image %q must be a name and a version", s.from)
		}
		for _, value := range s.all("COPY") {
			sources := strings.Fields(value)
			if strings.HasPrefix(value, "--from=build ") {
				continue
			}
			for _, source := range sources[:len(sources)-1] {
				if _, err := os.Stat(filepath.Join("../..", source)); err != nil {
					t.Error(err)
				}
			}
		}
		if i == 0 {
			continue
		}
		if entry := s.all("ENTRYPOINT"); len(entry) != 1 || !slices.Equal(words(t, entry[0]), []string{"/bin/curfew"}) {
			t.Errorf("stage %d: ENTRYPOINT %q", i, entry)
		}
		if user := s.all("USER"); len(user) != 1 || !regexp.MustCompile(`^[1-9]\d+:[1-9]\d+$`).MatchString(user[0]) {
			t.Errorf("stage %d: USER %q", i, user)
		}
		if !slices.Contains(s.all("COPY"), "--from=build /curfew /bin/curfew") {
			t.Errorf("stage %d has no command: %q", i, s.all("COPY"))
		}
	}
	if last := stages[len(stages)-1]; last.from != "scratch" || last.name != "" {
		t.Errorf("the last stage, which is the default, is from %s", last.from)
	}
	for name, s := range file.Services {
		if (s.Image == "") == (s.Build.Context == "") || s.Image != "" && !aName.MatchString(s.Image) || !names[s.Build.Target] {
			t.Errorf("%s: image %q, build %+v", name, s.Image, s.Build)
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to other machines", name, port)
			}
		}
		for _, volume := range s.Volumes {
			volume, _, _ = strings.Cut(volume, ":")
			if path, ours := strings.CutPrefix(volume, "./"); ours {
				if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if _, known := file.Volumes[volume]; !known {
				t.Errorf("%s: no volume %s", name, volume)
			}
		}
		for other, on := range s.DependsOn {
			if on.Condition == "service_healthy" && len(file.Services[other].Healthcheck.Test) == 0 {
				t.Errorf("%s waits until %s is healthy, which has no health check", name, other)
			}
		}
	}
}

// Prometheus scrapes the address at which the exporter listens, by a name that the exporter accepts. Grafana reads that Prometheus.
func TestPrometheusAndGrafanaFindWhatTheyShow(t *testing.T) {
	t.Parallel()
	file := readCompose(t)
	read := func(path string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("../../deploy", path))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	after := func(service, flag string) string {
		t.Helper()
		command := file.Services[service].Command
		at := slices.Index(command, flag)
		if at < 0 || at+1 == len(command) {
			t.Fatalf("the service %s has no %s: %q", service, flag, command)
		}
		return command[at+1]
	}
	mounted := func(service, path, inside string) {
		t.Helper()
		if want := "./deploy/" + path + ":" + inside + ":ro"; !slices.Contains(file.Services[service].Volumes, want) {
			t.Errorf("%s has the volumes %q, want %s", service, file.Services[service].Volumes, want)
		}
	}

	var scrapes struct {
		Jobs []struct {
			Authorization map[string]string
			Static        []struct{ Targets []string } `yaml:"static_configs"`
			DNS           []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	read("prometheus/prometheus.yml", &scrapes)
	_, port, _ := strings.Cut(after("exporter", "--listen"), ":")
	if got := scrapes.Jobs[0].Static[0].Targets; !slices.Equal(got, []string{"exporter:" + port}) || after("exporter", "--allow-host") != "exporter" {
		t.Errorf("prometheus scrapes %q, and the exporter accepts %q at port %s", got, after("exporter", "--allow-host"), port)
	}
	processes := scrapes.Jobs[1].DNS[0]
	for _, name := range processes.Names {
		if got, want := after(name, "--metrics-listen"), fmt.Sprint("0.0.0.0:", processes.Port); got != want {
			t.Errorf("prometheus scrapes the port %d of each %s, which listens on %s", processes.Port, name, got)
		}
	}
	if !slices.Equal(processes.Names, []string{"worker", "reaper"}) {
		t.Errorf("prometheus scrapes the processes %q", processes.Names)
	}
	mounted("prometheus", "prometheus", "/etc/prometheus")
	if got := scrapes.Jobs[0].Authorization["credentials_file"]; got != "/secrets/prometheus/token" {
		t.Errorf("prometheus reads its token from %q", got)
	}

	var sources struct{ Datasources []struct{ URL string } }
	read("grafana/provisioning/datasources/prometheus.yml", &sources)
	if got := sources.Datasources[0].URL; got != "http://prometheus:9090" || file.Services["prometheus"].Image == "" {
		t.Errorf("grafana reads %s", got)
	}
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read("grafana/provisioning/dashboards/curfew.yml", &boards)
	mounted("grafana", "grafana/provisioning", "/etc/grafana/provisioning")
	mounted("grafana", "grafana/curfew.json", boards.Providers[0].Options.Path+"/curfew.json")
}

// composed is the services as processes of this machine, with the program that the Dockerfile builds, or in a usual run with this one.
type composed struct {
	*testing.T
	file    composeFile
	server  *redistest.Server
	program string
	secrets string // the folder in place of /secrets
}

// startComposed runs the command of the Dockerfile that builds the program, makes up the secrets, and starts Redis with the settings
// of the compose file.
func startComposed(t *testing.T) *composed {
	t.Helper()
	c := &composed{T: t, file: readCompose(t), program: filepath.Join(t.TempDir(), "curfew"), secrets: t.TempDir()}
	runs := readDockerfile(t)[0].all("RUN")
	command := runs[len(runs)-1]
	if !strings.Contains(command, " -o /curfew ") {
		t.Fatalf("RUN %s", command)
	}
	command = strings.Replace(command, "-o /curfew", "-o "+c.program, 1)
	if !size.Long() { // the build is only planned
		command = strings.Replace(command, "go build ", "go build -n ", 1)
		c.program = os.Args[0]
	}
	build := exec.Command("/bin/sh", "-c", command)
	build.Dir = "../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v, %s", command, err, said)
	}
	c.makeSecrets()
	settings := c.here(c.file.Services["redis"].Command)
	if settings[0] != "redis-server" || settings[1] != "--include" {
		t.Fatal(settings)
	}
	c.server = redistest.Start(t, settings[3:]...)
	included, err := os.ReadFile(settings[2])
	if err != nil {
		t.Fatal(err)
	}
	name, password, _ := strings.Cut(strings.TrimSpace(string(included)), " ")
	if err := c.server.Client(t).ConfigSet(t.Context(), name, password).Err(); err != nil || name != "requirepass" {
		t.Fatalf("set %s: %v", name, err)
	}
	config := filepath.Join(c.secrets, "curfew/config")
	text := strings.Replace(c.read("curfew/config"), "redis:6379", c.server.Addr, 1)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// here returns arguments as they are on this machine.
func (c *composed) here(args []string) (changed []string) {
	for _, arg := range args {
		changed = append(changed, strings.NewReplacer("/secrets", c.secrets, "$$", "$").Replace(arg))
	}
	return changed
}

// read returns the text of a secret.
func (c *composed) read(name string) string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.secrets, name))
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}

// makeSecrets runs the service that makes up the secrets, twice, as when the services start again.
func (c *composed) makeSecrets() {
	c.Helper()
	for _, volume := range c.file.Services["secrets"].Volumes {
		_, path, _ := strings.Cut(volume, ":")
		if err := os.MkdirAll(c.here([]string{path})[0], 0o755); err != nil {
			c.Fatal(err)
		}
	}
	command := c.here(c.file.Services["secrets"].Command)
	var first string
	for range 2 {
		if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil || len(said) > 0 {
			c.Fatalf("%q: %v, %s", command, err, said)
		}
		password, token := c.read("redis/password"), c.read("prometheus/token")
		if len(password) != 64 || len(token) != 64 || password == token || first != "" && password != first {
			c.Fatalf("the password of Redis is %q after %q, and the token of Prometheus %q", password, first, token)
		}
		first = password
	}
}

func (c *composed) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(c.program, c.here(args)...)
	cmd.Env = []string{commandVariable + "=1"}
	for variable, value := range c.file.Services[name].Environment {
		cmd.Env = append(cmd.Env, variable+"="+c.here([]string{value})[0])
	}
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	return cmd
}

// start starts all replicas of a service, and returns when each has logged a text.
func (c *composed) start(name, ready string) (replicas []*redisproc.Child) {
	c.Helper()
	for range max(c.file.Services[name].Deploy.Replicas, 1) {
		log := &harness.Logs{}
		args := slices.Clone(c.file.Services[name].Command)
		if at := slices.Index(args, "--metrics-listen"); at >= 0 {
			args[at+1] = "127.0.0.1:0" // replicas have one machine, and no network of their own
		}
		cmd := c.command(name, args...)
		cmd.Stderr = log
		child, err := redisproc.Spawn(cmd)
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(child.Kill)
		await.Until(c, name+" logs: "+ready, func() bool { return strings.Contains(log.String(), ready) })
		replicas = append(replicas, child)
	}
	return replicas
}

// run runs the service for single commands, as docker compose run does.
func (c *composed) run(args ...string) (code int, out, errs string) {
	c.Helper()
	cmd := c.command("curfew", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// exports starts the service that Prometheus scrapes, at a port of this machine, and checks that it shows what the workers did.
func (c *composed) exports(t *testing.T) {
	t.Helper()
	args := slices.Clone(c.file.Services["exporter"].Command)
	at := slices.Index(args, "0.0.0.0:7420")
	if at < 0 {
		t.Fatalf("the exporter has the arguments %q, want it to listen at 0.0.0.0:7420", args)
	}
	args[at] = "0.0.0.0:0"
	log := &harness.Logs{}
	cmd := c.command("exporter", args...)
	cmd.Stderr = log
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Kill)
	port := regexp.MustCompile(`url=http://\S+:(\d+)`)
	await.Until(t, "the exporter listens", func() bool { return port.MatchString(log.String()) })
	url := "http://127.0.0.1:" + port.FindStringSubmatch(log.String())[1]
	ask := func(method, path, body, token string) (status int, text string) {
		t.Helper()
		r, err := http.NewRequest(method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "exporter:7420" // as Prometheus asks
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(answer)
	}
	token := c.read("prometheus/token")
	if status, text := ask("GET", "/metrics", "", ""); status != 401 {
		t.Errorf("without the token the exporter answers %d, %s", status, text)
	}
	if status, text := ask("POST", "/api/v1/demo/tasks", `{"kind": "shout"}`, token); status != 403 {
		t.Errorf("whoever has the token of Prometheus can enqueue a task: %d, %s", status, text)
	}
	var text string
	await.Until(t, "the exporter shows the tasks that ended", func() bool {
		var status int
		status, text = ask("GET", "/metrics", "", token)
		return status == 200 && regexp.MustCompile(`curfew_tasks_finished_total{kind="shout",namespace="demo".*status="COMPLETED"} 10\n`).MatchString(text)
	})
	if !strings.Contains(text, `curfew_up{namespace="demo"} 1`) {
		t.Errorf("the exporter shows %.500s", text)
	}
}

func TestTheServicesOfTheComposeFileWork(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	t.Parallel()
	c := startComposed(t)
	if err := c.server.Client(t).Set(t.Context(), "anything", 1, 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("a write without the password of Redis: %v, want NOAUTH", err)
	}
	health := func() int {
		stages := readDockerfile(t)
		check := words(t, stages[len(stages)-1].all("HEALTHCHECK")[0])
		code, _, _ := c.run(check[1:]...)
		return code
	}
	if health() == 0 {
		t.Error("the health check finds nothing wrong before there is a namespace")
	}
	reapers := c.start("reaper", "The reaper runs")
	workers := c.start("worker", "The worker takes tasks")
	if len(reapers) != 2 || len(workers) != 2 {
		t.Fatalf("%d reapers, %d workers", len(reapers), len(workers))
	}
	shout := func() {
		t.Helper()
		for i := range 5 {
			code, out, errs := c.run("enqueue", "shout", fmt.Sprintf(`"hello %d"`, i), "--timeout", "30s", "--wait")
			if want := fmt.Sprintf(`"HELLO %d"`, i); code != 0 || strings.TrimSpace(out) != want {
				t.Errorf("exit %d, %q, %q, want %s", code, out, errs, want)
			}
		}
	}
	shout()
	if code := health(); code != 0 {
		t.Errorf("the health check exits with %d", code)
	}
	reapers[0].Kill()
	shout()
	c.exports(t)
	if code, _, errs := c.run("enqueue", "nobody", `1`, "--timeout", "200ms", "--wait"); code != app.ExitTimedOut {
		t.Errorf("a task that nobody takes: exit %d, %q", code, errs)
	}
	if code, out, errs := c.run("fsck"); code != 0 {
		t.Errorf("fsck: exit %d, %s %s", code, out, errs)
	}
	for _, child := range append(workers, reapers[1]) {
		child.Signal(os.Interrupt)
		if !child.Succeeded() {
			t.Error("a service that was told to stop failed")
		}
	}
	c.server.Kill()
	if code := health(); code == 0 {
		t.Error("the health check finds nothing wrong without Redis")
	}
}
