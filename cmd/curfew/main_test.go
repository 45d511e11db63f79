package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
)

func curfew(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), append([]string{"curfew"}, args...), &out, &err)
	return code, out.String(), err.String()
}

// nobody is an address at which no server listens. The port of a server that has ended can be that of the next one.
const nobody = "127.0.0.1:1"

// Wrong use exits with code 2, writes nothing to stdout, and says on stderr what to do. The rows here are of single commands:
// bad_input_test.go has what is wrong in the same way everywhere.
func TestWrongUseSaysWhatToDo(t *testing.T) {
	for _, test := range []struct {
		args string
		want string
	}{
		{"bogus", `no command "bogus"`},
		{"demo now", "there is no scene `curfew demo now`: write crash or fanout, or none"},
		{"demo crahs", "(did you mean crash?)"},
		{"demo crash now", `demo crash takes no argument, and got "now"`},
		{"demo crash --timeout 10ms", "--timeout 10ms must be from 100ms to 1m: see `curfew demo crash --help`"},
		{"demo fanout --timeout 2m", "--timeout 2m must be from 100ms to 1m"},
		{"demo fanout --redis localhost", "must begin with redis://"},
		{"demo fanout --redis=", "--redis is empty"},
		{"demo fanout --prot 1", "there is no flag --prot"},
		{"demo --timeout 5", "has no unit: write 5s: see `curfew demo --help`"},
		{"demo --timeout -1s", "is negative"},
		{"demo --timeout 1d", "--timeout 1d must be from 10ms to 1m"},
		{"demo --timeout 0s", "--timeout 0s must be from 10ms to 1m"},
		{"demo --bogus", "bogus"},
		{"bench nothing", "there is no command `curfew bench nothing`: write throughput, dispatch, detect, memory, longest, commands, idle, counts, micro, functions, agents, flow, failover, recovery, scrape, dev or http; see `curfew bench --help`"},
		{"bench dev --runs 0", "--runs 0 must be from 1"},
		{"bench dev --timeout 1ms", "--timeout 1ms must be from 100ms to 1m"},
		{"bench memory --runs 0", "--runs 0 must be from 1"},
		{"bench memory --tasks -5", "--tasks -5 must be from 1"},
		{"bench throughput --partitions 0", "--partitions 0 must be from 1"},
		{"bench throughput --vs river", `--vs "river" must be asynq`},
		{"bench throughput --vs asynq --partitions 4", "leave one of them out"},
		{"bench throughput --vs asynq --full", "leave one of them out"},
		{"bench throughput --vs asynq --runs 0", "--runs 0 must be from 1"},
		{"bench throughput --vs asynq --servers 0", "--servers 0 must be from 1"},
		{"bench throughput --servers 2", "add --vs asynq"},
		{"bench dispatch --pause 1s", "add --vs asynq"},
		{"bench dispatch --vs asynq --tasks 0", "--tasks 0 must be from 1"},
		{"bench dispatch --vs sidekiq", `--vs "sidekiq" must be asynq`},
		{"bench detect --running 5", "add --vs asynq"},
		{"bench detect --vs asynq --running 5000", "--running 5000 must be from 1 to 1000"},
		{"bench recovery --within 5s", "add --vs asynq"},
		{"bench recovery --vs asynq --lease 2s", "leave one of them out"},
		{"bench recovery --vs asynq --within 1ms", "--within 1ms must be from 1s to 1h"},
		{"bench recovery --vs asynq --kills 500", "--kills 500 must be from 1 to 100"},
		{"bench recovery --kills 500", "--kills 500 must be from 1 to 100"},
		{"bench throughput --redis redis://localhost", "add --vs asynq"},
		{"bench throughput --threshold drain>=1", "add --vs asynq"},
		{"bench throughput --vs asynq --namespace x", "add --redis"},
		{"bench throughput --vs asynq --redis redis://localhost --aof", "leave one of them out"},
		{"bench throughput --vs asynq --redis redis://localhost --namespace=", "--namespace must not be empty"},
		{"bench throughput --vs asynq --redis localhost:6379", "must begin with redis://"},
		{"bench throughput --vs asynq --redis redis+cluster://localhost:6379", "and not a cluster or sentinels"},
		{"bench throughput --vs asynq --threshold drain", "write enqueue_and_drain>=50000"},
		{"bench throughput --vs asynq --threshold drained>=5", "the figures are enqueue_16, enqueue_64, enqueue_lists, drain, enqueue_and_drain"},
		{"bench detect --vs asynq --threshold detect_pending_p99>=2x", "asynq never does this"},
		{"bench dispatch --vs asynq --threshold dispatch_p99<=10", "write dispatch_max<=20ms"},
		{"bench idle --workers 0", "needs a worker or a reaper"},
		{"bench micro --runs 0", "--runs 0 must be from 1"},
		{"bench micro --tasks 0", "--tasks 0 must be from 1"},
		{"bench micro -o csv", "table or json"},
		{"bench micro now", `got "now"`},
		{"bench memory -o xml", "table or json"},
		{"bench detect --over -1s", "is negative"},
		{"bench detect --over 1e3", "write 1000s"},
		{"bench detect --over 0s --others -1", "--others -1 must not be negative"},
		{"bench detect --over 1d --runs 0", "--runs 0 must be from 1"},
		{"bench memory extra", `got "extra"`},
		{"--bogus", "there is no flag --bogus: see `curfew --help`"},
		{"help nothing", "there is no command `curfew nothing`: see `curfew --help`"},
		{"help functions lod", "there is no command `curfew functions lod` (did you mean load?): see `curfew functions --help`"},
		{"completion", "completion needs bash, fish, powershell or zsh: see `curfew completion --help`"},
		{"completion bsh", "there is no script for \"bsh\" (did you mean bash?): write bash, fish, powershell or zsh"},
		{"version now", "version takes no argument, and got \"now\""},
		{"version -o yaml", `--output "yaml" must be text, json or jsonl`},
		{"work --knd k -- true", "there is no flag --knd (did you mean --kind?): see `curfew work --help`"},
		{"work --kind", "--kind needs a value: see `curfew work --help`"},
		{"explain", "explain needs the ids of one or more tasks: see `curfew explain --help`"},
		{"explain 0-a --jsn", "there is no flag --jsn (did you mean --json?): see `curfew explain --help`"},
		{"explain 0-a --json=maybe", "--json takes no value, and got \"maybe\""},
		{"explain 0-a --namespace", "--namespace needs a value"},
		{"explain --json -- --namespace", "id"},
		{"events -n many", "-n \"many\" must be a whole number: see `curfew events --help`"},
		{"events -n -1", "-n -1 must not be negative"},
		{"events -o xml", "--output \"xml\" must be text, json or jsonl"},
		{"events shop", "events takes no argument, and got \"shop\": give the namespace with --namespace: see"},
		{"export --ouput x", "there is no flag --ouput (did you mean --output?): see `curfew export --help`"},
		{"namespaces", `no command "namespaces" (did you mean namespace?)`},
		{"reap now", "reap takes no argument, and got \"now\": give the namespace with --namespace: see `curfew reap --help`"},
		{"reap --namespace=", "--namespace must not be empty"},
		{"reap --batch 251", "--batch 251 must be from 1 to 250"},
		{"reap --batch -1", "--batch -1 must be from 1 to 250"},
		{"reap --fallback 0s", "--fallback 0s must be from 1ms to 1h"},
		{"reap --fallback 2h", "--fallback 2h must be from 1ms to 1h"},
		{"reap --fallback 5", "has no unit: write 5s"},
		{"reap --fallbak 5s", "there is no flag --fallbak (did you mean --fallback?): see `curfew reap --help`"},
		{"reap --log-format xml", `--log-format "xml" must be text or json`},
		{"reap --redis http://x", "must begin with redis://"},
		{"flow chek", "there is no command `curfew flow chek` (did you mean check?): write check, schema, put, ls, show, run, runs, get, graph, resume or cancel; see `curfew flow --help`"},
		{"flow check --explian x", "there is no flag --explian (did you mean --explain?)"},
		{"flow run a --input 5", "--input must be an object"},
		{"flow graph a --version=", "--version must not be empty"},
		{"work --flows --kind flow.a -- true", "which --flows runs: leave one of them out"},
		{"functions lod", "there is no command `curfew functions lod` (did you mean load?): write load, ls, show or prune; see `curfew functions --help`"},
		{"functions remove", "there is no command `curfew functions remove`: write load"},
		{"functions load all", "functions load takes no argument, and got \"all\": see `curfew functions load --help`"},
		{"functions load -- --force", "functions load takes no argument, and got \"--force\""},
		{"functions ls --force", "there is no flag --force: see"},
		{"functions ls -o xml", `--output "xml" must be text, json or jsonl`},
		{"functions ls --redis localhost", "must begin with redis://"},
		{"functions prune --yse", "(did you mean --yes?)"},
		{"functions show a b", `functions show takes the name of one library, and got "b" too`},
		{"functions show a --redis", "--redis needs a value"},
		{"namespace list", "there is no command `curfew namespace list`: write create, set, ls or rm"},
		{"namespace remove x", "there is no command `curfew namespace remove`: write create, set, ls or rm"},
		{"namespace creat x", "(did you mean create?)"},
		{"namespace create", "namespace create needs the name of one namespace: see `curfew namespace create --help`"},
		{"namespace create a b", `namespace create takes the name of one namespace, and got "b" too`},
		{"namespace create a --partitions 0", "--partitions 0 must be from 1 to 999"},
		{"namespace create a --partitions 1000", "--partitions 1000 must be from 1 to 999"},
		{"namespace create a --partitions many", `--partitions "many" must be a whole number`},
		{"namespace create a --partitions=", `--partitions "" must be a whole number`},
		{"namespace create --events some a", `--events "some" must be all, terminal or none`},
		{"namespace create a --event-mib 0", "--event-mib 0 must be from 1 to 65536"},
		{"namespace create a --figures maybe", `--figures "maybe" must be on or off`},
		{"namespace set", "namespace set needs the name of one namespace: see `curfew namespace set --help`"},
		{"namespace set a", "namespace set needs --events, --event-mib or --figures"},
		{"namespace set --events all", "namespace set needs the name of one namespace"},
		{"namespace set a b --events all", `namespace set takes the name of one namespace, and got "b" too`},
		{"namespace set a --events some", `--events "some" must be all, terminal or none`},
		{"namespace set a --event-mib 0", "--event-mib 0 must be from 1 to 65536"},
		{"namespace set a --figures maybe", `--figures "maybe" must be on or off`},
		{"namespace set a --partitions 2", "there is no flag --partitions"},
		{"ls --before yesterday", `--before "yesterday" must be an instant`},
		{"ls --before=", "--before must not be empty"},
		{"namespace ls --keys -1", "--keys -1 must not be negative"},
		{"namespace rm", "namespace rm needs the name of one namespace"},
		{"namespace rm a --rate -1", "--rate -1 must not be negative"},
		{"namespace rm a --yes --dry-run", "leave one of them out"},
		{"namespace rm a --forse", "(did you mean --force?)"},
	} {
		code, out, errs := curfew(t, strings.Fields(test.args)...)
		if code != app.ExitUsage || !strings.Contains(errs, test.want) || out != "" {
			t.Errorf("curfew %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", test.args, code, errs, out, test.want)
		}
	}
}

func TestBenchWritesJSON(t *testing.T) {
	code, out, errs := curfew(t, "bench", "memory", "--tasks", "1000", "--runs", "1", "-o", "json")
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || report.Value("memory a pending task") <= 0 {
		t.Errorf("exit %d, %v, %s%s", code, err, out, errs)
	}
}

// It fails if a filter does not find its tasks.
func TestBenchMeasuresCommands(t *testing.T) {
	t.Setenv(commandVariable, "yes") // this program is the command
	code, out, errs := curfew(t, "bench", "commands", "--tasks", "500", "--ended", "200", "-o", "json")
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || report.Value("ls --error") <= 0 || report.Value("rm --all-matching") <= 0 {
		t.Errorf("exit %d, %v, %s%s", code, err, out, errs)
	}
}

// The server is a process of its own.
func TestBenchMeasuresHTTP(t *testing.T) {
	t.Setenv(commandVariable, "yes") // this program is the command
	code, out, errs := curfew(t, "bench", "http", "--tasks", "100", "--waiting", "20", "--runs", "1", "-o", "json")
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil || report.Value("enqueue over HTTP") <= 0 || report.Value("a result over HTTP p99") <= 0 {
		t.Errorf("exit %d, %v, %s%s", code, err, out, errs)
	}
}

func TestAnInterruptedBenchmarkSaysSo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, command := range []string{"memory", "micro"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := run(ctx, []string{"curfew", "bench", command}, &out, &errs)
			if want := "curfew: interrupted: a measurement that is not complete has no figures\n"; code != app.ExitInterrupted || out.Len() > 0 || errs.String() != want {
				t.Errorf("exit %d, stdout %q, stderr %q; want exit %d and %q", code, &out, &errs, app.ExitInterrupted, want)
			}
		})
	}
}
