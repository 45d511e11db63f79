package facade

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/vocabulary"
)

// The vectors of docs/vectors show what each function does, without any program in Go.
// docs/vectors/README.md describes the format. The names of all replies are on docs/reference/protocol.md.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../../../docs/vectors/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("files of vectors: %v, %v; want 5 or more", files, err)
	}
	page := described(t)
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		if client, ok := rdb.(*redis.Client); ok && rdb.Do(t.Context(), "FUNCTION", "STATS").Err() == nil {
			if _, err := engine.LoadFacade(t.Context(), client); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range files {
			group := readVectors(t, file)
			for n, c := range group.Cases {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+c.Name, func(t *testing.T) {
					t.Parallel()
					namespace := fmt.Sprintf("%s-%s-%d", redistest.Namespace(t), strings.TrimSuffix(filepath.Base(file), ".json"), n)
					v := vector{T: t, rdb: rdb, page: page, known: map[string]string{"namespace": namespace, "root": namespace + ":{0}"}}
					v.step(step{Do: []string{"FCALL", "curfew_open", "1", "${root}"}, Reply: "$_"})
					for _, s := range c.Steps {
						v.step(s)
					}
				})
			}
		}
	})
}

type group struct {
	Description string
	Cases       []struct {
		Name  string
		Steps []step
	}
}

// step is a command with its reply or error, or a time to wait.
type step struct {
	Do      []string
	Reply   any
	Error   string
	SleepMS int `json:"sleep_ms"`
}

func readVectors(t *testing.T, file string) group {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var g group
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&g); err != nil || g.Description == "" || len(g.Cases) == 0 {
		t.Fatalf("%s: %v, with %d cases", file, err, len(g.Cases))
	}
	return g
}

// vector is a case that is being played. known has the values of its variables.
type vector struct {
	*testing.T
	rdb   redis.UniversalClient
	page  map[string]function
	known map[string]string
}

func (v *vector) step(s step) {
	v.Helper()
	switch {
	case s.SleepMS > 0:
		time.Sleep(time.Duration(s.SleepMS) * time.Millisecond) // sleeps: the clock is that of the server
		return
	case len(s.Do) == 0 || (s.Reply == nil) == (s.Error == ""):
		v.Fatalf("the step %+v needs a command, and either a reply or an error", s)
	}
	words := make([]any, len(s.Do))
	for i, word := range s.Do {
		words[i] = v.fill(word)
	}
	reply, err := v.rdb.Do(v.Context(), words...).Result()
	switch {
	case s.Error != "" && (err == nil || !strings.HasPrefix(err.Error(), s.Error)):
		v.Fatalf("%q\nreturned %v and the error %v\nwant an error that begins with %s", words, reply, err, s.Error)
	case s.Error == "" && err != nil:
		v.Fatalf("%q: %v", words, err)
	case s.Error == "":
		if err := vocabulary.CheckReply(reply); err != nil && strings.HasPrefix(fmt.Sprint(words[min(1, len(words)-1)]), "curfew_") {
			v.Errorf("%q\nreturned %v\n%v", words[1], reply, err)
		}
		if why := v.match(s.Reply, reply); why != "" {
			v.Fatalf("%q\nreturned %v\n%s", words, reply, why)
		}
		if unknown := unknownNames(v.page, fmt.Sprint(words[1]), reply); len(unknown) > 0 {
			v.Errorf("%q\nreturned %v\nwith names that %s does not have: %v", words, reply, page, unknown)
		}
	}
}

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// fill replaces the variables in a word.
func (v *vector) fill(word string) string {
	return variable.ReplaceAllStringFunc(word, func(name string) string {
		value, known := v.known[name[2:len(name)-1]]
		if !known {
			v.Fatalf("%q: the variable %s has no value yet", word, name)
		}
		return value
	})
}

var (
	stored = regexp.MustCompile(`^\$(\w+)$`)
	sum    = regexp.MustCompile(`^(\d+)\+(\d+)$`)
)

// match reports why a reply is not the one that is wanted, or "".
func (v *vector) match(want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		fields := named(got)
		for _, name := range inOrder(want) {
			value := want[name]
			field, there := fields[name]
			if !there {
				return fmt.Sprintf("it has no %q", name)
			}
			if why := v.match(value, field); why != "" {
				return name + ": " + why
			}
		}
		return ""
	case []any:
		list, is := got.([]any)
		if !is || len(list) != len(want) {
			return fmt.Sprintf("%v is not a list of %d", got, len(want))
		}
		for i := range want {
			if why := v.match(want[i], list[i]); why != "" {
				return fmt.Sprintf("%d: %s", i+1, why)
			}
		}
		return ""
	}
	return v.matchText(fmt.Sprint(want), got)
}

// inOrder returns the names of an object. Those whose values are stored come first, since others use them.
func inOrder(object map[string]any) []string {
	return slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		stores := func(name string) int {
			if text, is := object[name].(string); is && stored.MatchString(text) {
				return 0
			}
			return 1
		}
		return cmp.Or(stores(a)-stores(b), strings.Compare(a, b))
	})
}

func (v *vector) matchText(want string, got any) string {
	if want == "$_" {
		return ""
	}
	text := fmt.Sprint(got)
	if name := stored.FindStringSubmatch(want); name != nil {
		v.known[name[1]] = text
		return ""
	}
	wanted := v.fill(strings.ReplaceAll(want, "$$", "$"))
	if parts := sum.FindStringSubmatch(wanted); parts != nil && strings.Contains(want, "${") {
		a, _ := strconv.ParseInt(parts[1], 10, 64)
		b, _ := strconv.ParseInt(parts[2], 10, 64)
		wanted = fmt.Sprint(a + b)
	}
	if text != wanted {
		return fmt.Sprintf("%q is not %q", text, wanted)
	}
	return ""
}
