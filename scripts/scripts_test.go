// Package scripts_test runs the scripts on a PATH of stand-ins, so that they can be
// seen to install things without doing it.
package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/await"
)

// machine is a PATH of its own, with stand-ins for what the scripts would change. They
// write what they are asked into the folder log.
type machine struct {
	t      *testing.T
	dir    string
	policy string
}

// A stand-in for apt-get that tells how it was called and what it found.
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
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o755); err != nil {
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
		"POLICY_RC_D=" + m.policy, "DIR=" + m.dir, "TMPDIR=" + m.dir}
	cmd.Stdin = strings.NewReader("what a person would type")
	return cmd
}

// run runs a script, and returns whether it was content, what it said and what it did.
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

// installs is an apt-get that brings a redis-server along.
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
		{"a new enough one is left alone", map[string]string{"redis-server": version7, "apt-get": installs(version7)}, true, "", ""},
		{"a version of two digits is newer", map[string]string{"redis-server": version10, "apt-get": installs(version7)}, true, "", ""},
		{"without one it is installed", map[string]string{"apt-get": installs(version7)}, true,
			"installing redis-server with apt-get\n", installed("redis-server")},
		{"an old one is replaced", map[string]string{"redis-server": version6, "apt-get": installs(version7)}, true,
			"installing redis-server with apt-get\n", installed("redis-server")},
		{"a system that has only old ones", map[string]string{"apt-get": installs(version6)}, false,
			advice + " (found: 6): this system's packages have none, so install one from redis.io, see that it is on the PATH, and run this again.\n", installed("redis-server")},
		{"apt-get that fails is quoted", map[string]string{"apt-get": strings.ReplaceAll(aptGet, "INSTALL", "echo E: no space left; exit 100")}, false,
			"E: no space left\n" + advice + ": install one,", installed("redis-server")},
		{"an update that fails is no reason to stop", map[string]string{"apt-get": `case "$*" in *update) echo no network; exit 1 ;; esac` + "\n" + installs(version7)}, true,
			"no network\napt-get update failed; trying with the lists that are there\n", strings.TrimPrefix(installed("redis-server"), updated)},
		{"another user goes through sudo", map[string]string{"id": `[ -e "$DIR/sudone" ] && echo 0 || echo 1000`, "apt-get": installs(version7),
			"sudo": `echo "sudo $1" >>"$LOG"; [ "$2" = true ] && exit; touch "$DIR/sudone"; shift; [ "${1#*=}" = "$1" ] || export "$1"; shift; "$@"`}, true,
			"installing redis-server with apt-get\n", "sudo -n\nsudo -n\n" + installed("redis-server")},
		{"a user who would be asked for a password is told", map[string]string{"id": "echo 1000", "sudo": "exit 1", "apt-get": installs(version7)}, false,
			"redis-server cannot be installed without a password: run `sudo apt-get install redis-server`.\n", ""},
		{"a user without sudo is told", map[string]string{"id": "echo 1000", "apt-get": installs(version7)}, false,
			"run `sudo apt-get install redis-server`.\n", ""},
		{"a Mac uses brew", map[string]string{"uname": "echo Darwin",
			"brew": `echo "brew $*" >>"$LOG"; echo '#!/bin/sh' >"$DIR/bin/redis-server"; echo '` + version7 + `' >>"$DIR/bin/redis-server"; chmod 755 "$DIR/bin/redis-server"`}, true,
			"installing redis with brew", "brew install --quiet redis\n"},
		{"a Mac without brew is told", map[string]string{"uname": "echo Darwin"}, false, advice + ": install one with your system's package manager", ""},
		{"another system is told", nil, false, advice + ": install one with your system's package manager, see that it is on the PATH, and run this again.\n", ""},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, test.programs)
			ok, said, did := m.run("redis")
			if ok != test.ok || !strings.Contains(said, test.said) || (test.said == "" && said != "") || did != test.did {
				t.Errorf("ok %v, want %v; said\n%s\nwant\n%s\ndid\n%s\nwant\n%s", ok, test.ok, said, test.said, did, test.did)
			}
			if _, err := os.Stat(m.policy); err == nil {
				t.Error("it left its switch against services behind")
			}
		})
	}
}

func TestACompilerIsThereAfterwardsOrAdviceIsGiven(t *testing.T) {
	// A stand-in that "compiles" to a program which does nothing.
	const compiles = `echo '#!/bin/sh' >"$2"; chmod 755 "$2"`
	const brings = `echo '#!/bin/sh' >"$DIR/bin/gcc"; echo 'echo "#!/bin/sh" >"$2"; chmod 755 "$2"' >>"$DIR/bin/gcc"; chmod 755 "$DIR/bin/gcc"`
	for _, test := range []struct {
		claim    string
		programs map[string]string
		ok       bool
		said     string
		did      string
	}{
		{"one that works is left alone", map[string]string{"gcc": compiles, "apt-get": aptGet}, true, "", ""},
		{"without one it is installed", map[string]string{"apt-get": strings.ReplaceAll(aptGet, "INSTALL", brings)}, true,
			"installing gcc libc6-dev with apt-get\n", installed("gcc libc6-dev")},
		{"one without headers is mended", map[string]string{"gcc": "exit 1", "apt-get": strings.ReplaceAll(aptGet, "INSTALL", brings)}, true,
			"installing gcc libc6-dev with apt-get\n", installed("gcc libc6-dev")},
		{"one that cannot be mended", map[string]string{"gcc": "exit 1", "apt-get": strings.ReplaceAll(aptGet, "INSTALL", ":")}, false,
			"gcc is there and does not work", installed("gcc libc6-dev")},
		{"a Mac is told", map[string]string{"uname": "echo Darwin"}, false, "These tests need a C compiler: run xcode-select --install, and run this again.\n", ""},
		{"another system is told", nil, false, "install gcc with your system's package manager", ""},
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

func TestASwitchAgainstServicesThatWasThereComesBack(t *testing.T) {
	const theirs = "#!/bin/sh\nexit 104 # theirs\n"
	for _, test := range []struct {
		claim, install string
		interrupted    bool
	}{
		{"after an installation", ":", false},
		{"after a failure", "exit 100", false},
		{"after an interruption", `touch "$DIR/begun"; sleep 1`, true},
	} {
		t.Run(test.claim, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, map[string]string{"apt-get": strings.ReplaceAll(aptGet, "INSTALL", test.install)})
			m.write("policy-rc.d", theirs)
			cmd := m.command("apt", "hello")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if test.interrupted {
				m.await("begun")
				cmd.Process.Signal(os.Interrupt)
			}
			if err := cmd.Wait(); (err == nil) != (test.install == ":") {
				t.Errorf("exit: %v", err)
			}
			if got, err := os.ReadFile(m.policy); string(got) != theirs {
				t.Errorf("the switch is now %q (%v), want what was there", got, err)
			}
			if log, _ := os.ReadFile(filepath.Join(m.dir, "log")); !strings.Contains(string(log), "services: 101") {
				t.Errorf("services could start meanwhile:\n%s", log)
			}
			if left, _ := filepath.Glob(m.policy + ".*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func (m *machine) await(name string) {
	m.t.Helper()
	await.Until(m.t, name+" is there", func() bool {
		_, err := os.Stat(filepath.Join(m.dir, name))
		return err == nil
	})
}

func TestFuzzRunsEachTarget(t *testing.T) {
	// A stand-in for go, which lists as go test -list does.
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
		{"all that pass", list, true, "m/x FuzzA\nm/x FuzzB\nm/w FuzzC\n", all},
		{"the first that fails ends it", list + "echo found a crasher; exit 1", false, "m/x FuzzA\nfound a crasher\n", fmt.Sprintf(fuzzed, "FuzzA", "m/x")},
		{"none", "echo 'ok  	m/x	0.1s'", true, "no fuzz targets\n", ""},
		{"what does not compile", "echo undefined: x; exit 1", false, "undefined: x\n", ""},
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
