package queue

import (
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// The checks below are those of lua/check/values.lua.

func checkKind(field, kind string) error {
	if !names.Valid(kind, "._-:/") {
		return refusal.Invalid(field, "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", refusal.Clip(kind))
	}
	return nil
}

func checkQueue(field, queue string) error {
	if !names.Valid(queue, "._-") {
		return refusal.Invalid(field, "%q must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", refusal.Clip(queue))
	}
	return nil
}

// CheckCall returns [refusal.ErrInvalid] for a name that a call cannot have.
func CheckCall(call string) error {
	if !names.Word(call) || len(call) > 100 {
		return refusal.Invalid("call", "%q must be one word of up to 100 bytes, in ASCII, that begins with a letter or digit: a new one for each change, and the same for a repeat", refusal.Clip(call))
	}
	return nil
}

func checkWorker(worker string) error {
	if !names.Word(worker) {
		return refusal.Invalid("worker", "%q must be one word of up to 640 bytes, in ASCII, that begins with a letter or digit", refusal.Clip(worker))
	}
	return nil
}
