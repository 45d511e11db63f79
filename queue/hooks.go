package queue

import (
	"strings"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Hooks are the tasks that follow on another one's end, at most one of them. A hook is
// a root task of its own, its id the ended one's and "!success" or the like; it has
// 5 minutes unless its kind has a default, and no hooks. Its payload is the JSON of an
// [Ended].
type Hooks struct {
	OnSuccess, OnFailure, OnTimeout, OnCancel Hook // OnFailure runs for timeouts too if there is no OnTimeout
}

// Hook names the kind of a hook, and its queue if that is not "default".
type Hook struct{ Kind, Queue string }

// HookPayload is what a hook's payload says of the task that ended.
type HookPayload struct {
	Event       string      `json:"event"` // success, failure, timeout or cancel
	TaskID      string      `json:"task_id"`
	Kind        string      `json:"kind"`
	Queue       string      `json:"queue"`
	Status      Status      `json:"status"`
	Reason      Reason      `json:"reason,omitempty"`
	TimeoutType TimeoutType `json:"timeout_type,omitempty"`
	Error       string      `json:"error,omitempty"`
	Code        string      `json:"code,omitempty"`
	CreatedAt   int64       `json:"created_at"` // ms since 1970, as the others are
	StartedAt   int64       `json:"started_at,omitempty"`
	DeadlineAt  int64       `json:"deadline_at,omitempty"`
	CompletedAt int64       `json:"completed_at"`
}

func (h *Hooks) each(do func(event string, hook Hook)) {
	do("success", h.OnSuccess)
	do("failure", h.OnFailure)
	do("timeout", h.OnTimeout)
	do("cancel", h.OnCancel)
}

// readHooks reads them off a record.
func readHooks(f map[string]string) Hooks {
	read := func(event string) Hook {
		kind, queue, _ := strings.Cut(f["hook_"+event], " ")
		return Hook{Kind: kind, Queue: queue}
	}
	return Hooks{OnSuccess: read("success"), OnFailure: read("failure"), OnTimeout: read("timeout"), OnCancel: read("cancel")}
}

func (h *Hooks) check() (err error) {
	h.each(func(event string, hook Hook) {
		switch {
		case err != nil || hook == (Hook{}):
		case !names.Valid(hook.Kind, "._-:/"):
			err = refusal.Invalid("hook "+event, "%q is not a kind: it must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", refusal.Clip(hook.Kind))
		case hook.Queue != "" && !names.Valid(hook.Queue, "._-"):
			err = refusal.Invalid("hook "+event, "%q is not a queue: it must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", refusal.Clip(hook.Queue))
		}
	})
	return err
}

func (h *Hooks) fields(add func(string, any)) {
	if *h == (Hooks{}) {
		return
	}
	h.each(func(event string, hook Hook) {
		switch {
		case hook.Kind == "":
		case hook.Queue == "":
			add("hook_"+event, hook.Kind)
		default:
			add("hook_"+event, hook.Kind+" "+hook.Queue)
		}
	})
}
