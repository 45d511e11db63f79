// Package scripts_test runs the scripts with a PATH of fake programs, so that it can check
// what they would install.
package scripts_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
)

// machine is a folder with a PATH of fake programs for those that would change the system.
// They write how they were called to the file log.
type machine struct {
	t      *testing.T
	dir    string
	policy string
}

// A fake apt-get that logs how it was called, and the exit code of policy-rc.d.
const aptGet = `echo "apt-get $* DEBIAN_FRONTEND=$DEBIAN_FRONTEND stdin=$(cat)" >>"$LOG"
[ -x "$POLICY_RC_D" ] && { "$POLICY_RC_D" && code=0 || code=$?; echo "services: $code" >>"$LOG"; }
case "$*" in *install*) ` + "INSTALL" + ` ;; esac
`

func newMachine(t *testing.T, programs map[string]string) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	m.policy = filepath.Join(m.dir, "policy-rc.d")
	bin := filepath.Join(m.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"dirname", "sed", "rm", "mv", "mktemp", "chmod", "cat", "sleep", "touch", "awk"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	stand := map[string]string{"uname": "echo Linux", "id": "echo 0"}
	for name, body := range programs {
		stand[name] = body
	}
	for name, body := range stand {
		m.write(filepath.Join("bin", name), "#!/bin/sh\n"+body+"\n")
	}
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := redisproc.WriteProgram(filepath.Join(m.dir, name), text); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) command(script string, args ...string) *exec.Cmd {
	path, err := filepath.Abs(script)
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{path}, args...)...)
	cmd.Env = []string{"PATH=" + filepath.Join(m.dir, "bin"), "LOG=" + filepath.Join(m.dir, "log"),
		"POLICY_RC_D=" + m.policy, "DIR=" + m.dir, "TMPDIR=" + m.dir, "DEBIAN_PYTHON=python3"}
	cmd.Stdin = strings.NewReader("text that a script must not read")
	return cmd
}

// run runs a script. ok is whether it succeeded, said is its output, and did is the log of the fake
// programs.
func (m *machine) run(script string, args ...string) (ok bool, said, did string) {
	out, err := m.command(script, args...).CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(m.dir, "log"))
	return err == nil, string(out), string(log)
}

const (
	version7  = `echo "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=0"`
	version6  = `echo "Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=0"`
	version10 = `echo "Valkey server v=10.1.0 sha=00000000:0"`
)

// installs returns a fake apt-get that installs a redis-server of this version.
func installs(version string) string {
	return strings.ReplaceAll(aptGet, "INSTALL",
		`echo '#!/bin/sh' >"$DIR/bin/redis-server"; echo '`+version+`' >>"$DIR/bin/redis-server"; chmod 755 "$DIR/bin/redis-server"`)
}

const updated = `apt-get -q -o DPkg::Lock::Timeout=300 update DEBIAN_FRONTEND=noninteractive stdin=
services: 101
`

func installed(packages string) string {
	return updated + `apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install --no-install-recommends ` +
		packages + ` DEBIAN_FRONTEND=noninteractive stdin=
services: 101
`
}

func TestRedisIsThereAfterwardsOrAdviceIsGiven(t *testing.T) {
	const advice = "The tests need a redis-server of version 7 or newer"
	for _, test := range []struct {
		claim    string
		programs map[string]string
		ok       bool
		said     string
		did      string
	}{
		{"a new enough server is left alone", map[string]string{"redis-server": version7, "apt-get": installs(version7)}, true, "", ""},
		{"a major version of two digits is newer", map[string]string{"redis-server": version10, "apt-get": installs(version7)}, true, "", ""},
		{"a missing server is installed", map[string]string{"apt-get": installs(version7)}, true,
			"installing redis-server with apt-get\n", installed("redis-server")},
		{"an old server is replaced", map[string]string{"redis-server": version6, "apt-get": installs(version7)}, true,
			"installing redis-server with apt-get\n", installed("redis-server")},
		{"a system that has only old packages gets advice", map[string]string{"apt-get": installs(version6)}, false,
			advice + " (found: 6): this system has no such package, so install one from redis.io, put it on the PATH, and run this again.\n", installed("redis-server")},
		{"the output of a failed apt-get is printed", map[string]string{"apt-get": strings.ReplaceAll(aptGet, "INSTALL", "echo E: no space left; exit 100")}, false,
			"E: no space left\n" + advice + ": install one,", installed("redis-server")},
		{"a failed update does not stop the installation", map[string]string{"apt-get": `case "$*" in *update) echo no network; exit 1 ;; esac` + "\n" + installs(version7)}, true,
			"no network\napt-get update failed; trying with the present package lists\n", strings.TrimPrefix(installed("redis-server"), updated)},
		{"another user installs with sudo", map[string]string{"id": `[ -e "$DIR/sudone" ] && echo 0 || echo 1000`, "apt-get": installs(version7),
			"sudo": `echo "sudo $1" >>"$LOG"; [ "$2" = true ] && exit; touch "$DIR/sudone"; shift; [ "${1#*=}" = "$1" ] || export "$1"; shift; "$@"`}, true,
			"installing redis-server with apt-get\n", "sudo -n\nsudo -n\n" + installed("redis-server")},
		{"a user whose sudo needs a password gets advice", map[string]string{"id": "echo 1000", "sudo": "exit 1", "apt-get": installs(version7)}, false,
			"redis-server cannot be installed without a password: run `sudo apt-get install redis-server`.\n", ""},
		{"a user without sudo gets advice", map[string]string{"id": "echo 1000", "apt-get": installs(version7)}, false,
			"run `sudo apt-get install redis-server`.\n", ""},
		{"a Mac uses brew", map[string]string{"uname": "echo Darwin",
			"brew": `echo "brew $*" >>"$LOG"; echo '#!/bin/sh' >"$DIR/bin/redis-server"; echo '` + version7 + `' >>"$DIR/bin/redis-server"; chmod 755 "$DIR/bin/redis-server"`}, true,
			"installing redis with brew", "brew install --quiet redis\n"},
		{"a Mac without brew gets advice", map[string]string{"uname": "echo Darwin"}, false, advice + ": install one with your system's package manager", ""},
		{"another system gets advice", nil, false, advice + ": install one with your system's package manager, put it on the PATH, and run this again.\n", ""},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, test.programs)
			ok, said, did := m.run("redis")
			if ok != test.ok || !strings.Contains(said, test.said) || (test.said == "" && said != "") || did != test.did {
				t.Errorf("ok %v, want %v; said\n%s\nwant\n%s\ndid\n%s\nwant\n%s", ok, test.ok, said, test.said, did, test.did)
			}
			if _, err := os.Stat(m.policy); err == nil {
				t.Error("it did not remove its policy-rc.d")
			}
		})
	}
}

func TestACompilerIsThereAfterwardsOrAdviceIsGiven(t *testing.T) {
	// A fake compiler whose output is a program that does nothing.
	const compiles = `echo '#!/bin/sh' >"$2"; chmod 755 "$2"`
	const brings = `echo '#!/bin/sh' >"$DIR/bin/gcc"; echo 'echo "#!/bin/sh" >"$2"; chmod 755 "$2"' >>"$DIR/bin/gcc"; chmod 755 "$DIR/bin/gcc"`
	for _, test := range []struct {
		claim    string
		programs map[string]string
		ok       bool
		said     string
		did      string
	}{
		{"a compiler that works is left alone", map[string]string{"gcc": compiles, "apt-get": aptGet}, true, "", ""},
		{"a missing compiler is installed", map[string]string{"apt-get": strings.ReplaceAll(aptGet, "INSTALL", brings)}, true,
			"installing gcc libc6-dev with apt-get\n", installed("gcc libc6-dev")},
		{"a compiler without headers is installed again", map[string]string{"gcc": "exit 1", "apt-get": strings.ReplaceAll(aptGet, "INSTALL", brings)}, true,
			"installing gcc libc6-dev with apt-get\n", installed("gcc libc6-dev")},
		{"a compiler that still fails gets advice", map[string]string{"gcc": "exit 1", "apt-get": strings.ReplaceAll(aptGet, "INSTALL", ":")}, false,
			"gcc is installed but does not work", installed("gcc libc6-dev")},
		{"a Mac gets advice", map[string]string{"uname": "echo Darwin"}, false, "These tests need a C compiler: run xcode-select --install, and run this again.\n", ""},
		{"another system gets advice", nil, false, "install gcc with your system's package manager", ""},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			ok, said, did := newMachine(t, test.programs).run("gcc")
			if ok != test.ok || !strings.Contains(said, test.said) || (test.said == "" && said != "") || did != test.did {
				t.Errorf("ok %v, want %v; said\n%s\nwant\n%s\ndid\n%s\nwant\n%s", ok, test.ok, said, test.said, did, test.did)
			}
		})
	}
}

func TestPythonAndNodeAreThereAfterwardsOrAdviceIsGiven(t *testing.T) {
	const (
		python = "exit 0" // it has the package redis
		bare   = "exit 1"
		node20 = "echo v20.1.0"
		node16 = "echo v16.20.2"
		npm    = `echo "npm $*" >>"$LOG"; mkdir node_modules`
	)
	brings := func(program, body string) string {
		return strings.ReplaceAll(aptGet, "INSTALL", `printf '#!/bin/sh\n`+body+`\n' >"$DIR/bin/`+program+`"; chmod 755 "$DIR/bin/`+program+`"`)
	}
	const ci = "npm ci --silent --ignore-scripts --no-audit --no-fund\n"
	for _, test := range []struct {
		claim     string
		programs  map[string]string
		installed bool // the packages of examples/node
		ok        bool
		said      string
		did       string
	}{
		{"what is there is left alone", map[string]string{"python3": python, "node": node20, "npm": npm, "apt-get": aptGet}, true, true, "", ""},
		{"missing packages of Node are installed", map[string]string{"python3": python, "node": node20, "npm": npm}, false, true,
			"installing the packages of examples/node with npm\n", ci},
		{"a Python without redis gets Debian's package", map[string]string{"python3": bare, "node": node20, "npm": npm, "apt-get": brings("python3", "exit 0")}, true, true,
			"installing python3-redis with apt-get\n", installed("python3-redis")},
		{"a missing Node is installed", map[string]string{"python3": python, "npm": npm, "apt-get": brings("node", "echo v18.20.4")}, true, true,
			"installing nodejs with apt-get\n", installed("nodejs")},
		{"an old Node gets advice", map[string]string{"python3": python, "node": node16, "npm": npm, "apt-get": aptGet}, true, false,
			"These tests need Node 18 or newer with npm: put it on the PATH, and run this again.\n", ""},
		{"a system without apt-get gets advice", map[string]string{"python3": bare, "node": node20, "npm": npm}, true, false,
			"These tests need Python 3 with the package redis of version 4.2 or newer: install it, and run this again.\n", ""},
		{"a failed npm gets advice", map[string]string{"python3": python, "node": node20, "npm": "exit 1"}, false, false,
			"These tests need the packages of examples/node: run npm ci there, and run this again.\n", ""},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			programs := map[string]string{"prometheus": "", "promtool": ""}
			maps.Copy(programs, test.programs)
			m := newMachine(t, programs)
			m.doors(test.installed)
			ok, said, did := m.run(filepath.Join(m.dir, "scripts", "doors"))
			if ok != test.ok || !strings.Contains(said, test.said) || (test.said == "" && said != "") || did != test.did {
				t.Errorf("ok %v, want %v; said\n%s\nwant\n%s\ndid\n%s\nwant\n%s", ok, test.ok, said, test.said, did, test.did)
			}
			if ok, said, did := m.run(filepath.Join(m.dir, "scripts", "doors")); test.ok && (!ok || said != "" || did != test.did) {
				t.Errorf("the second run: ok %v, said %q, did\n%s", ok, said, did)
			}
		})
	}
}

func TestPrometheusIsThereAfterwardsOrAdviceIsGiven(t *testing.T) {
	const brings = `for p in prometheus promtool; do echo '#!/bin/sh' >"$DIR/bin/$p"; chmod 755 "$DIR/bin/$p"; done`
	for _, test := range []struct {
		claim, promtool, install string
		ok                       bool
		said                     string
	}{
		{"a missing Prometheus is installed", "", brings, true, "installing prometheus with apt-get\n"},
		{"promtool alone is not enough", "exit 0", brings, true, "installing prometheus with apt-get\n"},
		{"a package that lacks it gets advice", "", ":", false, "These tests need prometheus and promtool: put them on the PATH, and run this again.\n"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			programs := map[string]string{"python3": "exit 0", "node": "echo v20.1.0", "npm": "exit 1", "apt-get": strings.ReplaceAll(aptGet, "INSTALL", test.install)}
			if test.promtool != "" {
				programs["promtool"] = test.promtool
			}
			m := newMachine(t, programs)
			m.doors(true)
			ok, said, did := m.run(filepath.Join(m.dir, "scripts", "doors"))
			if ok != test.ok || !strings.Contains(said, test.said) || did != installed("prometheus") {
				t.Errorf("ok %v, want %v; said\n%s\nwant\n%s\ndid\n%s", ok, test.ok, said, test.said, did)
			}
		})
	}
}

// doors copies the script to a tree whose examples/node has its packages or not, since it installs them there.
func (m *machine) doors(installed bool) {
	m.t.Helper()
	for _, tool := range []string{"cmp", "cp", "mkdir"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.dir, "bin", tool)); err != nil {
			m.t.Fatal(err)
		}
	}
	node := filepath.Join("examples", "node")
	for _, folder := range []string{"scripts", node} {
		if err := os.MkdirAll(filepath.Join(m.dir, folder), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, name := range []string{"doors", "apt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			m.t.Fatal(err)
		}
		m.write(filepath.Join("scripts", name), string(text))
	}
	m.write(filepath.Join(node, "package-lock.json"), "{}")
	if installed {
		if err := os.Mkdir(filepath.Join(m.dir, node, "node_modules"), 0o755); err != nil {
			m.t.Fatal(err)
		}
		m.write(filepath.Join(node, "node_modules", ".installed"), "{}")
	}
}

func TestAnExistingPolicyFileIsRestored(t *testing.T) {
	const theirs = "#!/bin/sh\nexit 104 # theirs\n"
	for _, test := range []struct {
		claim, install string
		interrupted    bool
	}{
		{"after an installation", ":", false},
		{"after a failure", "exit 100", false},
		{"after an interruption", `touch "$DIR/begun"; until [ -e "$DIR/go" ]; do sleep 0.05; done`, true},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, map[string]string{"apt-get": strings.ReplaceAll(aptGet, "INSTALL", test.install)})
			m.write("policy-rc.d", theirs)
			cmd := m.command("apt", "hello")
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if test.interrupted {
				await.Until(t, "the installation has begun or ended", func() bool { return m.has("begun") || len(ended) > 0 })
				cmd.Process.Signal(os.Interrupt)
				m.write("go", "")
			}
			if err := await.Receive(t, ended, "the end"); (err == nil) != (test.install == ":") {
				t.Errorf("exit: %v; said\n%s", err, said.String())
			}
			if got, err := os.ReadFile(m.policy); string(got) != theirs {
				t.Errorf("policy-rc.d is now %q (%v), want what it was before", got, err)
			}
			if log, _ := os.ReadFile(filepath.Join(m.dir, "log")); !strings.Contains(string(log), "services: 101") {
				t.Errorf("a service could start during the installation:\n%s", log)
			}
			if left, _ := filepath.Glob(m.policy + ".*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func (m *machine) has(name string) bool {
	_, err := os.Stat(filepath.Join(m.dir, name))
	return err == nil
}

func TestFuzzRunsEachTarget(t *testing.T) {
	// A fake go, which lists targets as go test -list does.
	const list = `if [ "$2" = -list ]; then printf '%s\n' FuzzA FuzzB 'ok  	m/x	0.1s' '?   	m/y	[no test files]' 'ok  	m/z	0.1s' FuzzC 'ok  	m/w	0.1s'; exit; fi
echo "$*" >>"$LOG"
`
	const fuzzed = "test -run ^$ -fuzz ^%s$ -fuzztime 5s -fuzzminimizetime 5s %s\n"
	all := fmt.Sprintf(fuzzed+fuzzed+fuzzed, "FuzzA", "m/x", "FuzzB", "m/x", "FuzzC", "m/w")
	for _, test := range []struct {
		claim, goes string
		ok          bool
		said, did   string
	}{
		{"all targets pass", list, true, "m/x FuzzA\nm/x FuzzB\nm/w FuzzC\n", all},
		{"the first failure ends the script", list + "echo found a crasher; exit 1", false, "m/x FuzzA\nfound a crasher\n", fmt.Sprintf(fuzzed, "FuzzA", "m/x")},
		{"a target that fails at its own time limit runs again", list + `[ -e "$LOG.ran" ] || { : >"$LOG.ran"; echo "    context deadline exceeded"; exit 1; }`, true, "m/x FuzzA\nm/x FuzzB\nm/w FuzzC\n",
			fmt.Sprintf(fuzzed+fuzzed+fuzzed+fuzzed, "FuzzA", "m/x", "FuzzA", "m/x", "FuzzB", "m/x", "FuzzC", "m/w")},
		{"a target that always fails at its time limit", list + "echo '    context deadline exceeded'; exit 1", false, "m/x FuzzA\n    context deadline exceeded\n",
			fmt.Sprintf(fuzzed+fuzzed, "FuzzA", "m/x", "FuzzA", "m/x")},
		{"a failing input", list + "echo '    context deadline exceeded'; echo Failing input written; exit 1", false,
			"m/x FuzzA\n    context deadline exceeded\nFailing input written\n", fmt.Sprintf(fuzzed, "FuzzA", "m/x")},
		{"there are no targets", "echo 'ok  	m/x	0.1s'", true, "no fuzz targets\n", ""},
		{"a package does not compile", "echo undefined: x; exit 1", false, "undefined: x\n", ""},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			ok, said, did := newMachine(t, map[string]string{"go": test.goes}).run("fuzz", "5s")
			if ok != test.ok || said != test.said || did != test.did {
				t.Errorf("ok %v, want %v; said\n%s\nwant\n%s\ndid\n%s\nwant\n%s", ok, test.ok, said, test.said, did, test.did)
			}
		})
	}
}

// With -quick the targets run in the folder of their package, in a test binary that go builds as for other tests.
func TestQuickFuzzRunsPlainBinaries(t *testing.T) {
	const goes = `case "$1 $2" in
"test -list") printf '%s\n' FuzzA FuzzB 'ok  	m/x	0.1s' ;;
"list -f") echo "$DIR" ;;
"test -c") printf '%s\n' '#!/bin/sh' 'echo "$PWD $*" >>"$LOG"' 'echo ENDS; exit CODE' >"$4"; chmod +x "$4" ;;
*) echo "go $*" >>"$LOG" ;;
esac`
	for _, test := range []struct {
		claim, code string
		ok          bool
		said        string
		runs        int
	}{
		{"all targets pass", "0", true, "m/x FuzzA\nm/x FuzzB\n", 2},
		{"the first failure ends the script", "1", false, "m/x FuzzA\nENDS\n", 1},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, map[string]string{"go": strings.Replace(goes, "CODE", test.code, 1)})
			ok, said, did := m.run("fuzz", "-quick", "5s")
			runs := strings.Split(strings.TrimSpace(did), "\n")
			if ok != test.ok || said != test.said || len(runs) != test.runs {
				t.Errorf("ok %v, want %v; said\n%s\nwant\n%s\ndid\n%s", ok, test.ok, said, test.said, did)
			}
			if want := m.dir + " -test.run ^$ -test.fuzz ^FuzzA$ -test.fuzztime 5s "; !strings.HasPrefix(runs[0], want) {
				t.Errorf("did %q, want it to begin with %q", runs[0], want)
			}
		})
	}
}
