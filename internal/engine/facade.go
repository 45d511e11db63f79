package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// OfferFacade loads the façade, which programs in other languages call, into each master that
// has none or an older one. If the server has no Functions, or the user has no right to load
// them, OfferFacade does nothing. It logs other errors.
func (e *Engine) OfferFacade(ctx context.Context) {
	if !e.library.Functions() {
		return
	}
	offer := func(ctx context.Context, node *redis.Client) error {
		if _, err := LoadFacade(ctx, node); err != nil && !Denied(err) {
			e.logger.Warn("Cannot load the functions for programs in other languages", "library", lua.FacadeName, "error", err)
		}
		return nil
	}
	switch rdb := e.rdb.(type) {
	case *redis.Client:
		offer(ctx, rdb)
	case *redis.ClusterClient:
		rdb.ForEachMaster(ctx, offer)
	}
}

// LoadFacade loads the façade into a server that has none or an older one. It reports whether it did.
func LoadFacade(ctx context.Context, rdb *redis.Client) (loaded bool, err error) {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return false, err
	}
	if build, err := FacadeBuild(ctx, rdb); err != nil || build >= facade.Build() {
		return false, err
	}
	return LoadFacadeText(ctx, rdb, facade.Text())
}

// LoadFacadeText loads the text of a façade if the server has none, or an older one. It reports
// whether it did.
//
// Programs of several versions can load at once, and FUNCTION LOAD has no condition. But one
// transaction returns what it replaced. A program that replaced a newer façade loads that again.
func LoadFacadeText(ctx context.Context, rdb *redis.Client, text string) (loaded bool, err error) {
	old, err := textOf(ctx, rdb, lua.FacadeName)
	if err != nil || old != "" && !lua.Supersedes(text, old) {
		return false, err
	}
	newest := text
	for range 10 { // each turn ends with a newer one
		replaced, err := ReplaceFacade(ctx, rdb, newest)
		if err != nil {
			return false, err
		}
		if replaced == "" || !lua.Supersedes(replaced, newest) {
			return newest == text, nil
		}
		newest = replaced
	}
	return false, fmt.Errorf("%w: other programs keep replacing the library %s", refusal.ErrUnavailable, lua.FacadeName)
}

// FacadeBuild returns the build number of the server's façade, or 0.
func FacadeBuild(ctx context.Context, rdb redis.Cmdable) (int, error) {
	reply, err := rdb.FCallRO(ctx, "curfew_about", nil).Slice()
	if lua.UnknownFunction(err) {
		return 0, nil
	}
	for i := 0; i+1 < len(reply); i += 2 {
		if Text(reply[i]) == "build" {
			return int(Number(reply[i+1])), err
		}
	}
	return 0, err
}

// textOf returns the source of a library on the server, or "".
func textOf(ctx context.Context, rdb redis.Cmdable, library string) (string, error) {
	return codeOf(rdb.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: library, WithCode: true}))
}

func codeOf(list *redis.FunctionListCmd) (string, error) {
	for _, library := range list.Val() {
		return library.Code, list.Err()
	}
	return "", list.Err()
}

// ReplaceFacade loads a façade in place of any other version of it, and of the library that has only
// its calls. It returns the text of the façade that was there. If another program's library of the same name
// was there, ReplaceFacade puts that back, and returns an error.
func ReplaceFacade(ctx context.Context, rdb *redis.Client, text string) (replaced string, err error) {
	calls := lua.CallsIn(text)
	old, err := rdb.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: calls}).Result()
	if err != nil {
		return "", err
	}
	var list *redis.FunctionListCmd
	var load *redis.StringCmd
	_, err = rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		list = tx.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: lua.FacadeName, WithCode: true})
		if len(old) > 0 {
			tx.FunctionDelete(ctx, calls) // fails if another program has replaced it, too
		}
		load = tx.FunctionLoadReplace(ctx, text)
		return nil
	})
	if redis.HasErrorPrefix(err, "EXECABORT") {
		// Redis does not give the reason here. Loading an empty library has no effect, and its error gives the reason.
		return "", cmp.Or(rdb.FunctionLoad(ctx, "#!lua name="+lua.FacadeName+"\n").Err(), err)
	}
	if err := cmp.Or(list.Err(), load.Err()); err != nil {
		return "", err
	}
	replaced, err = codeOf(list)
	if _, _, ours := lua.VersionsIn(replaced); ours || replaced == "" || err != nil {
		return replaced, err
	}
	if err := rdb.FunctionLoadReplace(ctx, replaced).Err(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%w: the library %s belongs to another program", refusal.ErrUnfit, lua.FacadeName)
}
