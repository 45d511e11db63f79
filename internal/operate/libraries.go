package operate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// LibraryKind is the purpose of a function library.
type LibraryKind string

// The kinds of libraries.
const (
	Facade  LibraryKind = "facade"  // the functions for programs in other languages, and the calls of a Go program
	Calls   LibraryKind = "calls"   // the calls of a Go program alone
	Foreign LibraryKind = "foreign" // of another program, with a name like ours
)

// Library is a library of functions on a server, whose name is curfew or curfew_<digest>.
type Library struct {
	Name      string
	Kind      LibraryKind
	Build     int      // of a façade: a number that is greater in newer versions
	Records   []string // of a façade: the versions of records that it works with
	Functions int
	Mine      bool // it is the one that this program loads
	Text      string
}

// Libraries are the libraries of one master, sorted by name.
type Libraries struct {
	Node string
	Has  []Library
	Err  error // why they could not be read
}

var callsName = regexp.MustCompile(`^curfew_[0-9a-f]{12}$`)

// Libraries lists the libraries of each master. It leaves out those whose name is neither curfew nor
// curfew_<digest>: they belong to other programs.
func (s *Server) Libraries(ctx context.Context) []Libraries {
	var list []Libraries
	for _, m := range s.masters {
		has, err := s.librariesOf(ctx, m)
		list = append(list, Libraries{Node: m.name, Has: has, Err: err})
	}
	return list
}

func (s *Server) librariesOf(ctx context.Context, m master) ([]Library, error) {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return nil, err
	}
	list, err := m.rdb.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: lua.FacadeName + "*", WithCode: true}).Result()
	if err != nil {
		return nil, s.explainFunctions(ctx, err)
	}
	var has []Library
	for _, l := range list {
		if l.Name == lua.FacadeName || callsName.MatchString(l.Name) {
			has = append(has, read(l, facade))
		}
	}
	slices.SortFunc(has, func(a, b Library) int { return strings.Compare(a.Name, b.Name) })
	return has, nil
}

// read classifies a library by its text. The name is not enough, because another program can have chosen it.
func read(l redis.Library, facade *lua.Facade) Library {
	library := Library{Name: l.Name, Kind: Foreign, Functions: len(l.Functions), Text: l.Code}
	if l.Name == lua.FacadeName {
		if build, records, ok := lua.VersionsIn(l.Code); ok {
			library.Kind, library.Build, library.Records, library.Mine = Facade, build, records.Words(), l.Code == facade.Text()
		}
		return library
	}
	ours := len(l.Functions) > 0 && strings.HasPrefix(l.Code, "#!lua name="+l.Name+"\nlocal files = {}\n")
	for _, f := range l.Functions {
		ours = ours && strings.HasPrefix(f.Name, l.Name+"_")
	}
	if ours {
		library.Kind, library.Mine = Calls, l.Name == lua.CallsIn(facade.Text())
	}
	return library
}

var errBuiltIn = errors.New("the embedded server of `curfew dev` has the functions built in: FCALL works, and none can be listed, loaded or removed")

// explainFunctions is like explain, for commands about functions.
func (s *Server) explainFunctions(ctx context.Context, err error) error {
	if errors.Is(err, refusal.ErrUnfit) || errors.Is(err, refusal.ErrUnavailable) { // of package engine
		return err
	}
	if err != nil && !engine.Denied(err) && lua.MayNotRun(err) {
		facts := map[string]string{}
		engine.ReadInfo(facts, s.masters[0].rdb.Info(ctx, "server").Val())
		if engine.Embedded(facts) {
			return errBuiltIn
		}
		return wrapped(refusal.ErrUnfit, "it has no functions: programs in Go send scripts instead, and programs in other languages need Redis 7", err)
	}
	if err != nil && strings.Contains(err.Error(), "No functions registered") { // what engine.ReplaceFacade asked did not tell
		return wrapped(refusal.ErrNoRight, "the user needs +function|list +function|load +function|delete +multi +exec", err)
	}
	err = s.explain(ctx, err)
	if errors.Is(err, refusal.ErrNoRight) {
		return fmt.Errorf("%w; all that this needs: +function|list +function|load +function|delete +multi +exec", err)
	}
	return err
}

// LoadWord is the outcome of Load on a master.
type LoadWord string

// What Load can come to.
const (
	LoadedNew      LoadWord = "loaded"   // there was none
	LoadedReplaced LoadWord = "replaced" // another one was there
	LoadedSame     LoadWord = "same"     // it was there already
	LeftNewer      LoadWord = "newer"    // a newer one is there, and was left
	LeftOther      LoadWord = "other"    // one is there that this program's cannot stand in for, and was left
	LeftForeign    LoadWord = "foreign"  // the library belongs to another program, and was left
)

// Loaded describes the outcome of Load on one master.
type Loaded struct {
	Node   string
	Word   LoadWord
	Build  int // of this program's library
	Before int // build of the library that was there
	Err    error
}

// Load loads the functions for programs in other languages into each master that has none or an older version. With force it
// also replaces a newer version, but never a library of another program.
func (s *Server) Load(ctx context.Context, force bool) []Loaded {
	var list []Loaded
	for _, m := range s.masters {
		did := Loaded{Node: m.name}
		for range 5 {
			did.Err = s.load(ctx, m, force, &did)
			// A Go program has loaded its calls since Load looked, and a function cannot be in two libraries.
			if did.Err == nil || !strings.Contains(did.Err.Error(), "already exists") {
				break
			}
		}
		list = append(list, did)
	}
	return list
}

func (s *Server) load(ctx context.Context, m master, force bool, did *Loaded) error {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return err
	}
	did.Build = facade.Build()
	old, err := s.facadeOf(ctx, m)
	if err != nil {
		return err
	}
	if old != nil {
		did.Before = old.Build
	}
	switch {
	case old == nil || lua.Supersedes(facade.Text(), old.Text):
		return s.loadNewer(ctx, m, facade, old, did)
	case old.Kind == Foreign:
		did.Word = LeftForeign
	case old.Mine:
		did.Word = LoadedSame
	case force:
		did.Word = LoadedReplaced
		_, err := engine.ReplaceFacade(ctx, m.rdb, facade.Text())
		return s.explainFunctions(ctx, err)
	case old.Build > facade.Build():
		did.Word = LeftNewer
	default:
		did.Word = LeftOther
	}
	return nil
}

// loadNewer loads the library if the server has none or an older one. Another program can load a newer one meanwhile.
func (s *Server) loadNewer(ctx context.Context, m master, facade *lua.Facade, old *Library, did *Loaded) error {
	loaded, err := engine.LoadFacadeText(ctx, m.rdb, facade.Text())
	if err != nil {
		return s.explainFunctions(ctx, err)
	}
	did.Word = LoadedNew
	if old != nil {
		did.Word = LoadedReplaced
	}
	if loaded {
		return nil
	}
	now, err := s.facadeOf(ctx, m)
	if err != nil {
		return err
	}
	switch {
	case now == nil:
		return wrapped(refusal.ErrUnavailable, "somebody removes its functions at the same time: run the command again", errors.New("the library "+lua.FacadeName+" is gone"))
	case now.Mine:
		did.Word = LoadedSame
	case now.Kind == Foreign:
		did.Word = LeftForeign
	default:
		did.Word = LeftNewer
	}
	did.Before = now.Build
	return nil
}

// facadeOf returns the library curfew of a master, nil if it has none.
func (s *Server) facadeOf(ctx context.Context, m master) (*Library, error) {
	has, err := s.librariesOf(ctx, m)
	if err != nil || len(has) == 0 || has[0].Name != lua.FacadeName {
		return nil, err
	}
	return &has[0], nil
}

// Unused returns the libraries that Prune deletes from a master: the calls of Go programs of other versions than this
// one. Redis does not record whether such programs still run.
func (l Libraries) Unused() (unused []Library) {
	for _, library := range l.Has {
		if library.Kind == Calls && !library.Mine {
			unused = append(unused, library)
		}
	}
	return unused
}

// Prune deletes the unused libraries that it is given, on their masters. It returns those that it deleted. A program that still
// needs one loads it again with its next call.
func (s *Server) Prune(ctx context.Context, from []Libraries) (deleted []Libraries) {
	for _, l := range from {
		did := Libraries{Node: l.Node, Err: l.Err}
		m := slices.IndexFunc(s.masters, func(m master) bool { return m.name == l.Node })
		for _, library := range l.Unused() {
			if m < 0 || did.Err != nil {
				break
			}
			err := s.masters[m].rdb.FunctionDelete(ctx, library.Name).Err()
			if err == nil {
				did.Has = append(did.Has, library)
			} else if !strings.Contains(err.Error(), "Library not found") { // somebody else deleted it
				did.Err = s.explainFunctions(ctx, err)
			}
		}
		deleted = append(deleted, did)
	}
	return deleted
}

// wrapped returns an error of a kind, with its cure and the reply of Redis.
func wrapped(kind error, cure string, err error) error { return &curedError{kind, cure, err} }

type curedError struct {
	kind  error
	cure  string
	cause error
}

func (e *curedError) Error() string {
	return e.kind.Error() + ": " + e.cure + " (" + e.cause.Error() + ")"
}

func (e *curedError) Unwrap() []error { return []error{e.kind, e.cause} }
