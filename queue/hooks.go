package queue

import "strings"

// Hooks names the tasks to enqueue when a task ends. At most one of them is enqueued. A hook is a
// root task. Its id is the ended task's id followed by ! and the event, as in "!success". Its
// timeout is 5 minutes unless its kind has a default, and it has no hooks, even if its kind has some. Its
// payload is the JSON of a [HookPayload].
type Hooks struct {
	OnSuccess, OnFailure, OnTimeout, OnCancel Hook // OnFailure is for timeouts too if there is no OnTimeout
}

// Hook is the kind of a hook, and its queue. Queue defaults to "default".
type Hook struct{ Kind, Queue string }

// HookPayload is the payload of a hook. It describes the task that ended.
type HookPayload struct {
	Event       string      `json:"event"` // success, failure, timeout or cancel
	TaskID      string      `json:"task_id"`
	Kind        string      `json:"kind"`
	Queue       string      `json:"queue"`
	Status      Status      `json:"status"`
	Reason      Reason      `json:"reason,omitempty"`
	TimeoutType TimeoutType `json:"timeout_type,omitempty"`
	Error       string      `json:"error,omitempty"`
	Code        int         `json:"code,omitempty"` // exit code of the attempt that failed, if there was one
	CreatedAt   int64       `json:"created_at"`     // in ms since 1970, like the other instants
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

// ReadHooks reads the hooks among the fields of a record, or among the defaults of a kind: hook_success, hook_failure,
// hook_timeout and hook_cancel. Each is a kind, or a kind, a space and a queue.
func ReadHooks(f map[string]string) Hooks {
	read := func(event string) Hook {
		kind, queue, _ := strings.Cut(f["hook_"+event], " ")
		return Hook{Kind: kind, Queue: queue}
	}
	return Hooks{OnSuccess: read("success"), OnFailure: read("failure"), OnTimeout: read("timeout"), OnCancel: read("cancel")}
}

func (h *Hooks) check() (err error) {
	h.each(func(event string, hook Hook) {
		if err != nil || hook == (Hook{}) {
			return
		}
		err = checkKind("kind of hook "+event, hook.Kind)
		if err == nil && hook.Queue != "" {
			err = checkQueue("queue of hook "+event, hook.Queue)
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
