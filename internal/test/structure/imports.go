package structure

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/curfew-dev/curfew"

// rooms lists the rooms of the module, each with the rooms that it may import. A room is a top
// folder, or a folder of internal. The order is that of the layers: a row names only rooms
// above it.
var rooms = []struct {
	name string
	may  []string
}{
	{"lua", nil},
	{"internal/clip", nil},
	{"refusal", []string{"internal/clip"}},
	{"internal/names", []string{"refusal"}},
	{"duration", []string{"refusal"}},
	{"internal/expr", []string{"internal/clip", "internal/names", "refusal"}},
	{"internal/field", nil},
	{"internal/vocabulary", []string{"internal/field"}},
	{"internal/logonce", nil},
	{"internal/engine", []string{"internal/clip", "lua", "refusal", "internal/names"}},
	{"internal/spans", []string{"internal/clip", "internal/names", "refusal"}},
	{"reaper", []string{"internal/engine", "internal/logonce", "internal/names", "internal/spans", "refusal"}},
	{"queue", []string{"internal/field", "lua", "refusal", "internal/names", "internal/spans", "internal/expr", "internal/engine"}},
	{"internal/claim", []string{"internal/engine", "internal/expr", "internal/names", "internal/spans", "queue", "refusal"}},
	{"internal/jsonx", []string{"internal/field", "internal/vocabulary", "duration", "internal/names", "refusal", "queue"}},
	{"events", []string{"queue", "internal/engine", "internal/names", "internal/jsonx", "refusal"}},
	{"internal/operate", []string{"lua", "refusal", "duration", "internal/names", "internal/engine", "queue"}},
	{"internal/audit", []string{"refusal", "queue", "internal/engine", "internal/names"}},
	{"inspect", []string{"internal/claim", "queue", "events", "internal/audit", "internal/engine", "internal/names", "internal/jsonx", "duration", "refusal"}},
	{"internal/doctor", []string{"refusal", "duration", "internal/engine", "internal/operate", "queue", "inspect"}},
	{"worker", []string{"internal/claim", "internal/clip", "internal/logonce", "internal/spans", "internal/jsonx", "internal/names", "refusal", "reaper", "queue", "internal/expr", "duration"}},
	{"agentwait", []string{"internal/claim", "internal/clip", "internal/spans", "internal/jsonx", "internal/names", "refusal", "worker", "queue", "lua", "internal/expr"}},
	{"flow", []string{"internal/claim", "internal/clip", "refusal", "duration", "internal/expr", "internal/names", "internal/jsonx", "internal/engine", "queue", "inspect", "worker", "agentwait"}},
	{"internal/lines", []string{"queue", "inspect", "internal/jsonx", "flow"}},
	{"typed", []string{"internal/jsonx", "refusal", "queue", "worker", "agentwait"}},
	{"internal/processgroup", nil},
	{"internal/command", []string{"duration", "internal/processgroup", "internal/spans", "queue", "worker"}},
	{"internal/embedded", []string{"lua"}},
	{"internal/redisproc", []string{"internal/processgroup"}},
	{"internal/demo", []string{"queue", "events", "inspect", "reaper", "worker", "agentwait", "internal/embedded"}},
	{"curfewtest", []string{"refusal", "lua", "queue", "inspect", "reaper", "worker", "agentwait", "typed", "internal/embedded"}},
	{"metrics", []string{"internal/spans", "queue", "inspect", "reaper", "worker", "internal/engine", "internal/names", "refusal"}},
	{"httpapi", []string{"internal/claim", "internal/field", "internal/clip", "flow", "internal/logonce", "internal/spans", "lua", "refusal", "duration", "queue", "events", "inspect", "reaper", "worker", "agentwait", "metrics", "internal/engine", "internal/names", "internal/vocabulary", "internal/jsonx", "internal/operate", "internal/lines", "internal/doctor"}},
	{"dashboard", []string{"queue", "metrics", "httpapi"}},
	{"bench", []string{"internal/claim", "refusal", "lua", "internal/engine", "queue", "inspect", "events", "reaper", "worker", "agentwait", "internal/redisproc", "curfewtest", "metrics", "httpapi", "flow", "dashboard"}},
	{"cmd", []string{"internal/field", "internal/clip", "internal/names", "internal/lines", "internal/jsonx", "refusal", "duration", "events", "lua", "queue", "inspect", "reaper", "worker", "agentwait", "typed", "internal/operate", "internal/doctor", "internal/demo", "internal/command", "internal/embedded", "curfewtest", "metrics", "httpapi", "flow", "dashboard", "bench"}},
	{"examples", []string{"refusal", "events", "lua", "queue", "inspect", "reaper", "worker", "agentwait", "typed", "curfewtest", "metrics", "httpapi", "flow", "dashboard"}},
	{"scripts", nil},
}

// kept lists modules that only some rooms may import, with all their packages.
var kept = map[string][]string{
	"github.com/hibiken/asynq":         {"bench"},             // the competitor
	"github.com/alicebob/miniredis/v2": {"internal/embedded"}, // so that it is set up in one place
	"github.com/expr-lang/expr":        {"internal/expr"},     // the language of expressions
	"go.yaml.in/yaml/v3":               {"flow"},              // the second spelling of what users write
}

// room returns the room that a folder belongs to.
func room(folder string) string {
	parts := strings.Split(folder, "/")
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// imports finds imports that no row allows. What is in internal/test is for tests, and what is in internal/tool for those who develop
// Curfew: only tests and packages of these two rooms may import them. A test may import the rooms above
// its own. A test in a package x_test may import any room but cmd.
func imports(fsys fs.FS) ([]string, error) {
	sources, err := goFiles(fsys)
	var found []string
	for _, s := range sources {
		from := room(path.Dir(s.name))
		row, known := mayImport(from)
		helper := from == "internal/test" || from == "internal/tool"
		if !known && !helper {
			found = append(found, fmt.Sprintf("%s: the room %s has no row in internal/test/structure/imports.go", s.name, from))
			continue
		}
		for _, spec := range s.file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			refuse := func(why string) {
				found = append(found, fmt.Sprintf("%s:%d: %s imports %s: %s", s.name, s.line(spec.Pos()), from, imported, why))
			}
			if may := keepers(imported); may != nil && !slices.Contains(may, from) && !s.test() {
				refuse("only " + strings.Join(may, " and ") + " may")
			}
			folder, ours := strings.CutPrefix(imported, module+"/")
			to := room(folder)
			_, public := mayImport(to)
			if s.test() && strings.HasPrefix(path.Base(s.name), "example") && strings.HasPrefix(folder, "internal/") {
				refuse("users copy examples, and their programs cannot import internal")
				continue
			}
			switch {
			case !ours || to == from || slices.Contains(row, to):
			case to == "cmd":
				refuse("no package may")
			case s.test() && (strings.HasSuffix(s.file.Name.Name, "_test") || before(to, from)):
			case !public && !helper && !s.test():
				refuse("it is for tests only")
			case public && !helper && to != "internal/embedded":
				refuse("its row in internal/test/structure/imports.go does not allow it")
			case to == "internal/embedded" && !helper && !s.test():
				refuse("its row in internal/test/structure/imports.go does not allow it")
			}
		}
	}
	return found, err
}

func mayImport(name string) (may []string, known bool) {
	for _, r := range rooms {
		if r.name == name {
			return r.may, true
		}
	}
	return nil, false
}

// keepers returns the rooms that may import a package of another module, nil if all may.
func keepers(imported string) []string {
	for module, may := range kept {
		if imported == module || strings.HasPrefix(imported, module+"/") {
			return may
		}
	}
	return nil
}

// before reports whether a room is above another.
func before(name, other string) bool {
	for _, r := range rooms {
		if r.name == name || r.name == other {
			return r.name == name && name != other
		}
	}
	return false
}
