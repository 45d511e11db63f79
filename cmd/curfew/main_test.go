package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
)

// run runs the command with these arguments and outputs, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runWith(ctx, args, os.Stdin, stdout, stderr)
}

// runWith is run with another input.
func runWith(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return program().Run(ctx, args, stdin, stdout, stderr)
}

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
		{"bench", "the benchmarks are a program of their own, curfew-bench: "},
		{"bench throughput --vs asynq -o json", "`go run ./cmd/curfew-bench` runs it in a clone"},
		{"bench counts --gate --help", "curfew-bench"},
		{"help bench", "curfew-bench"},
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
		{"namespace set a", "namespace set needs --events, --event-mib, --figures or --default-timeout"},
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
