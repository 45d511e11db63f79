package engine

import (
	"context"
	"reflect"

	"github.com/curfew-dev/curfew/refusal"
)

// Given returns [refusal.ErrInvalid] if the context is nil.
func Given(ctx context.Context) error {
	if IsNil(ctx) {
		return refusal.Invalid("context", "must not be nil: use context.Background()")
	}
	return nil
}

// IsNil reports whether v is nil or holds a nil pointer, func, map, slice or channel.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Interface, reflect.Chan:
		return r.IsNil()
	}
	return false
}
